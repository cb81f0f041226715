"""Phases of the class `default`: ObjectSetPhases that another controller serves, with the outcomes of all phases."""

from collections.abc import Awaitable, Callable

import pytest

from lamina.families.objectset.labels import PHASE_CLASS
from lamina.objects import meta
from tests.bed.scenarios import check
from tests.scenarios.objectset import (
    test_archiving_a_set,
    test_collisions,
    test_handover,
    test_mapping,
    test_numbers,
    test_pause,
    test_rollout,
    test_updates,
)
from tests.scenarios.objectset.stage import (
    Stage,
    condition,
    controlled,
    controller,
    has_condition,
    is_archived,
    is_available,
    message,
    owners,
    revision_of,
)
from tests.scenarios.objectset.widgets import served_widgets

pytestmark = pytest.mark.asyncio(loop_scope="session")

Story = Callable[[Stage], Awaitable[None]]

STORIES: list[Story] = [
    test_rollout.test_a_phase_waits_for_the_one_before_it,
    test_rollout.test_the_next_phase_is_written_once_the_first_one_passes,
    test_rollout.test_what_has_succeeded_stays_so_while_it_is_unavailable,
    test_rollout.test_managed_objects_are_marked_and_have_one_controller_and_one_field_manager,
    test_rollout.test_the_package_labels_of_a_set_are_copied_to_its_objects,
    test_rollout.test_listed_fields_are_restored_and_what_others_added_stays,
    test_rollout.test_a_field_that_another_manager_applied_is_restored,
    test_rollout.test_an_object_that_is_deleted_by_hand_is_created_again,
    test_updates.test_an_object_is_updated_in_place_and_the_old_revision_archived,
    test_handover.test_objects_are_handed_over_in_the_order_of_the_phases,
    test_handover.test_what_the_old_set_still_controls_is_reconciled_by_it,
    test_handover.test_the_old_set_never_takes_an_object_back,
    test_pause.test_a_paused_set_observes_and_writes_nothing_until_it_is_active_again,
    test_pause.test_availability_is_probed_while_a_set_is_paused,
    test_archiving_a_set.test_the_objects_of_the_last_phase_are_deleted_first,
    test_archiving_a_set.test_a_held_object_of_a_later_phase_keeps_the_earlier_ones,
    test_collisions.check_siblings_adopt,
    test_collisions.check_siblings_collide,
    test_collisions.check_siblings_yield,
    test_numbers.check_concurrent,
]


@check("OS-45")
@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.__name__.removeprefix("test_"))
async def test_a_phase_of_the_default_class_is_like_any_other(class_stage: Stage, story: Story) -> None:
    await story(class_stage)


@check("OS-45")
@pytest.mark.parametrize(("protection", "has_controller", "takes"), test_collisions.MATRIX)
async def test_the_collision_protection_holds_in_a_phase_with_a_class(
    class_stage: Stage, protection: str, has_controller: bool, takes: bool
) -> None:
    await test_collisions.check_collision(class_stage, protection, has_controller, takes)


@check("OS-45")
@pytest.mark.parametrize(
    "story", [test_mapping.check_mapping, test_mapping.check_mapping_while_paused], ids=["active", "paused"]
)
async def test_conditions_are_mapped_from_a_phase_with_a_class(
    class_stage: Stage, story: Callable[[Stage, str], Awaitable[None]]
) -> None:
    async with served_widgets(class_stage.client) as group:
        await story(class_stage, group)


@check("OS-45")
async def test_a_set_has_an_object_set_phase_for_each_phase_with_a_class(class_stage: Stage) -> None:
    stage = class_stage
    async with stage.running():
        made = stage.object_set(
            "v1",
            stage.phase("p1", stage.config_map("cm-a")),
            {**stage.phase("p2", stage.config_map("cm-b")), "class": ""},
            stage.phase("p3", stage.config_map("cm-c")),
        )
        await stage.client.create(meta.with_metadata(made, labels={"team": "red"}, annotations={"note": "x"}))
        found = await stage.until_set("v1")
        await stage.settled()

        for phase in ("p1", "p3"):
            one = await stage.client.get(stage.phase_ref("v1", phase))
            assert meta.name(one) == f"v1-{phase}"
            assert meta.labels(one) == {"team": "red", PHASE_CLASS: "default"}
            assert meta.annotations(one) == {"note": "x"}
            assert owners(one) == {"v1": True}
            assert one["spec"]["revision"] == 1
            assert is_available(one)
        assert await stage.get(stage.phase_ref("v1", "p2")) is None
        listed = {one["name"]: one["uid"] for one in found["status"]["remotePhases"]}
        assert listed == {
            f"v1-{phase}": meta.uid(await stage.client.get(stage.phase_ref("v1", phase)))
            for phase in ("p1", "p3")
        }
        assert controlled(found) == ["cm-a", "cm-b", "cm-c"]
        assert owners(await stage.live("cm-a")) == {"v1-p1": True}
        assert owners(await stage.live("cm-b")) == {"v1": True}

        await stage.client.delete(stage.set_ref("v1"))
        await stage.until_gone(stage.set_ref("v1"))

        assert await stage.listed(("v1", "ConfigMap")) == []


@check("OS-45")
@pytest.mark.parametrize(
    ("old", "new"), [("", "default"), ("default", "")], ids=["to-the-class", "from-the-class"]
)
async def test_objects_are_handed_over_between_phases_with_a_class_and_without(
    stage: Stage, old: str, new: str
) -> None:
    def owner(name: str, class_: str) -> str:
        return f"{name}-p1" if class_ else name

    async with stage.running(), stage.recording() as record:
        first = stage.phase("p1", stage.config_map("cm", key="v1"))
        await stage.given_set("v1", {**first, "class": old})
        await stage.until_set("v1")
        before = await stage.live("cm")
        assert controller(before) == owner("v1", old)

        second = stage.phase("p1", stage.config_map("cm", key="v2"))
        await stage.given_set("v2", {**second, "class": new}, previous=["v1"])
        await stage.until_set("v2")
        await stage.until_set("v1", lambda now: controlled(now) == [])
        await stage.settled()
        await record.caught_up()

        after = await stage.live("cm")
        assert meta.uid(after) == meta.uid(before)
        assert owners(after) == {owner("v1", old): False, owner("v2", new): True}
        assert (after["data"], revision_of(after)) == ({"key": "v2"}, "2")
        order = [owner("v1", old), owner("v2", new)]
        found = test_numbers.controllers_at_every_version(record, "cm")
        assert found == order
        await test_numbers.check_no_errors(stage, record)


@check("OS-45")
@pytest.mark.parametrize(
    ("old", "new"), [("", "default"), ("default", "")], ids=["to-the-class", "from-the-class"]
)
async def test_a_deployment_changes_the_class_of_a_phase_without_losing_an_object(
    stage: Stage, old: str, new: str
) -> None:
    async with stage.running():
        kept, dropped = stage.config_map("kept"), stage.config_map("dropped")
        await stage.given_deployment("web", {**stage.phase("p1", kept, dropped), "class": old})
        await stage.until_rolled_out("web", 1)
        before = meta.uid(await stage.live("kept"))

        kept = stage.config_map("kept", healthy=False, key="v2")
        await stage.want("web", {**stage.phase("p1", kept), "class": new})
        await stage.until_object("kept", lambda now: revision_of(now) == "2")
        await stage.settled()
        first, second = await stage.revisions("web")
        assert not is_archived(first)
        assert condition(second, "Available") == ("False", "ProbeFailure")
        assert (await stage.live("dropped"))["data"] == {"key": "value"}

        await stage.heal("kept")
        first, second = await stage.until_rolled_out("web", 2)

        after = await stage.live("kept")
        assert meta.uid(after) == before
        assert owners(after) == {f"{meta.name(second)}-p1" if new else meta.name(second): True}
        assert await stage.object("dropped") is None


@check("OS-45")
async def test_preflight_errors_of_a_phase_with_a_class_have_the_same_reason(class_stage: Stage) -> None:
    stage = class_stage
    bad = {**stage.config_map("cm-b"), "data": ["no", "map"]}
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm-a"), bad))
        found = await stage.until_set(
            "v1", lambda now: condition(now, "Available") == ("False", "PreflightError")
        )
        await stage.settled()

        assert 'Phase "p1"' in message(found, "Available")
        assert "cm-b" in message(found, "Available")
        assert await stage.object("cm-a") is None


@check("OS-45")
@pytest.mark.parametrize("name", ["Not_A_Label", "p" * 64], ids=["letters", "length"])
async def test_a_phase_whose_name_does_not_fit_is_reported(class_stage: Stage, name: str) -> None:
    stage = class_stage
    async with stage.running():
        await stage.given_set("v1", stage.phase(name, stage.config_map("cm")))
        found = await stage.until_set("v1", lambda now: has_condition(now, "Available"))
        await stage.settled()

        assert condition(found, "Available") == ("False", "PreflightError")
        assert f'Phase "{name}"' in message(found, "Available")
        assert await stage.object("cm") is None


@check("OS-45")
async def test_the_namespace_of_an_object_in_a_phase_with_a_class_is_that_of_the_set(
    class_stage: Stage,
) -> None:
    stage = class_stage
    async with stage.running():
        elsewhere = stage.config_map("cm")
        elsewhere["metadata"]["namespace"] = "default"
        await stage.given_set("v1", stage.phase("p1", elsewhere))
        found = await stage.until_set(
            "v1", lambda now: condition(now, "Available") == ("False", "PreflightError")
        )

        assert "metadata.namespace must be" in message(found, "Available")


@check("OS-45")
async def test_an_object_set_phase_that_the_set_does_not_control_is_a_collision(class_stage: Stage) -> None:
    stage = class_stage
    foreign = {
        "apiVersion": "package-operator.run/v1alpha1",
        "kind": "ObjectSetPhase",
        "metadata": {"name": "v1-p1", "namespace": stage.namespace, "labels": {PHASE_CLASS: "another"}},
        "spec": {"revision": 1, "objects": []},
    }
    await stage.client.create(foreign)
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")))
        found = await stage.until_set(
            "v1", lambda now: condition(now, "Available") == ("False", "CollisionDetected")
        )
        assert "v1-p1" in message(found, "Available")
        await stage.settled()

        await stage.client.delete(stage.phase_ref("v1", "p1"))
        await stage.until_set("v1")
