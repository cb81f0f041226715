"""The rollout of one set: its phases in order, its conditions, and what it keeps as it is."""

import pytest

from lamina.families.objectset.labels import CACHED, MANAGER
from lamina.objects import meta
from lamina.objects.types import Made
from lamina.testing.waiting import eventually
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import (
    TIMEOUT,
    Stage,
    condition,
    controlled,
    controller,
    has_condition,
    is_available,
    is_finished,
    message,
    owners,
    revision_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def given_waiting_set(stage: Stage) -> Made:
    """A set whose first phase is not healthy, and whose second phase waits for it."""
    await stage.given_set(
        "v1",
        stage.phase("p1", stage.config_map("cm-a", healthy=False)),
        stage.phase("p2", stage.config_map("cm-b")),
    )
    await stage.until_set("v1", lambda now: condition(now, "Available") is not None)
    await stage.settled()
    return await stage.set("v1")


async def given_finished_set(stage: Stage) -> Made:
    await stage.given_set(
        "v1",
        stage.phase("p1", stage.config_map("cm-a", colour="red")),
        stage.phase("p2", stage.config_map("cm-b", colour="blue")),
    )
    await stage.until_set("v1")
    await stage.settled()
    return await stage.set("v1")


def assert_managed(stage: Stage, live: Made, owner: str, revision: int) -> None:
    """Assert the label, the annotation, the owner and the field manager of a managed object."""
    assert meta.labels(live)[CACHED] == "True"
    assert revision_of(live) == str(revision)
    (controlling,) = [one for one in meta.owner_refs(live) if one.get("controller")]
    assert (controlling["name"], controlling.get("blockOwnerDeletion")) == (owner, True)
    ours = [one["operation"] for one in live["metadata"]["managedFields"] if one["manager"] == MANAGER]
    assert ours == ["Apply"]


@check("OS-1")
async def test_a_phase_waits_for_the_one_before_it(stage: Stage) -> None:
    async with stage.running():
        found = await given_waiting_set(stage)

    assert await stage.object("cm-a") is not None
    assert await stage.object("cm-b") is None
    assert condition(found, "Available") == ("False", "ProbeFailure")
    assert message(found, "Available").startswith('Phase "p1" failed: ')
    assert f"ConfigMap {stage.place('cm-a')}/cm-a" in message(found, "Available")
    assert condition(found, "InTransition") == ("True", "InTransition")
    assert not has_condition(found, "Succeeded")
    assert controlled(found) == ["cm-a"]


@check("OS-2")
async def test_the_next_phase_is_written_once_the_first_one_passes(stage: Stage) -> None:
    async with stage.running():
        await given_waiting_set(stage)
        await stage.heal("cm-a")
        await stage.until_object("cm-b")
        await stage.until_set("v1")
        await stage.settled()

    found = await stage.set("v1")
    assert condition(found, "Available") == ("True", "Available")
    assert condition(found, "Succeeded") == ("True", "RolloutSuccess")
    assert not has_condition(found, "InTransition")
    assert controlled(found) == ["cm-a", "cm-b"]


@check("OS-3")
async def test_what_has_succeeded_stays_so_while_it_is_unavailable(stage: Stage) -> None:
    async with stage.running():
        await given_waiting_set(stage)
        await stage.heal("cm-a")
        await stage.until_set("v1", is_finished)

        await stage.hurt("cm-a")
        broken = await stage.until_set(
            "v1", lambda now: condition(now, "Available") == ("False", "ProbeFailure")
        )
        assert condition(broken, "Succeeded") == ("True", "RolloutSuccess")
        await stage.settled()
        broken = await stage.set("v1")
        assert condition(broken, "Available") == ("False", "ProbeFailure")
        assert controlled(broken) == ["cm-a", "cm-b"], "those of later phases, too"

        await stage.heal("cm-a")
        repaired = await stage.until_set("v1", is_available)
        assert condition(repaired, "Succeeded") == ("True", "RolloutSuccess")


@check("OS-4")
async def test_managed_objects_are_marked_and_have_one_controller_and_one_field_manager(stage: Stage) -> None:
    async with stage.running():
        await given_finished_set(stage)

    for phase, name in (("p1", "cm-a"), ("p2", "cm-b")):
        live = await stage.live(name)
        assert_managed(stage, live, stage.owner_of("v1", phase), 1)
        assert list(owners(live)) == [stage.owner_of("v1", phase)]


@check("OS-4")
async def test_the_package_labels_of_a_set_are_copied_to_its_objects(stage: Stage) -> None:
    marked = {"package-operator.run/package": "web", "package-operator.run/instance": "web-1", "team": "red"}
    made = stage.object_set("v1", stage.phase("p1", stage.config_map("cm-a")))
    async with stage.running():
        await stage.client.create(meta.with_metadata(made, labels=marked))
        await stage.until_set("v1")

    assert meta.labels(await stage.live("cm-a")) == {
        CACHED: "True",
        "package-operator.run/package": "web",
        "package-operator.run/instance": "web-1",
    }


@check("OS-5")
async def test_listed_fields_are_restored_and_what_others_added_stays(stage: Stage) -> None:
    async with stage.running():
        await given_finished_set(stage)
        await stage.edit(
            stage.object_ref("cm-a"),
            {
                "metadata": {
                    "labels": {"team": "red", CACHED: "no"},
                    "annotations": {"note": "by hand", "package-operator.run/revision": "7"},
                },
                "data": {"colour": "green", "size": "big"},
            },
        )
        await stage.until_object("cm-a", lambda now: now["data"]["colour"] == "red")
        await stage.settled()

    live = await stage.live("cm-a")
    assert live["data"] == {"colour": "red", "size": "big"}
    assert meta.labels(live) == {CACHED: "True", "team": "red"}
    assert meta.annotations(live) == {
        "name": "cm-a",
        "note": "by hand",
        "package-operator.run/revision": "1",
    }
    assert_managed(stage, live, stage.owner_of("v1", "p1"), 1)


@check("OS-5")
async def test_a_field_that_another_manager_applied_is_restored(stage: Stage) -> None:
    async with stage.running():
        await given_finished_set(stage)
        applied = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cm-b", "namespace": stage.place("cm-b")},
            "data": {"colour": "green", "size": "big"},
        }
        await stage.client.apply(applied, manager="another", force=True)
        await stage.until_object("cm-b", lambda now: now["data"] == {"colour": "blue", "size": "big"})
        await stage.settled()

    live = await stage.live("cm-b")
    assert live["data"] == {"colour": "blue", "size": "big"}
    assert_managed(stage, live, stage.owner_of("v1", "p2"), 1)


@check("OS-6")
async def test_an_object_that_is_deleted_by_hand_is_created_again(stage: Stage) -> None:
    async with stage.running():
        await given_finished_set(stage)
        old = await stage.live("cm-b")
        await stage.client.delete(stage.object_ref("cm-b"), uid=meta.uid(old))
        await stage.until_object("cm-b", lambda now: meta.uid(now) != meta.uid(old))
        await stage.until_set("v1")
        await stage.settled()

    new = await stage.live("cm-b")
    assert new["data"] == old["data"]
    assert meta.labels(new) == meta.labels(old)
    assert meta.annotations(new) == meta.annotations(old)
    assert meta.owner_refs(new) == meta.owner_refs(old)
    assert controller(new) == stage.owner_of("v1", "p2")
    found = await stage.set("v1")
    assert is_finished(found)
    assert controlled(found) == ["cm-a", "cm-b"]


@check("OS-7")
async def test_the_status_of_one_of_fifty_objects_leads_to_no_request_that_writes(stage: Stage) -> None:
    ref = stage.object_ref("web", kind="Service")
    service: Made = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": ref.namespace},
        "spec": {"clusterIP": "None"},
    }
    maps = [stage.config_map(f"cm-{number}") for number in range(49)]
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", service, *maps))
        await stage.until_set("v1")
        await stage.settled()
        before = {
            meta.name(one): meta.resource_version(one) for one in await stage.listed(("v1", "ConfigMap"))
        }
        assert len(before) == 49
        stage.journal.requests.clear()
        passes = stage.passes.total()

        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
        changed = {"conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        await stage.client.patch(ref, {"status": changed}, subresource="status", manager="user")
        await eventually(lambda: stage.passes.total() > passes, seconds=TIMEOUT)
        await stage.settled()

        assert stage.journal.requests == []
        after = {
            meta.name(one): meta.resource_version(one) for one in await stage.listed(("v1", "ConfigMap"))
        }
        assert after == before
