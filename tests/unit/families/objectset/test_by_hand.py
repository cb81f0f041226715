"""What users do to revisions by hand in the middle of a rollout, and what becomes of the objects."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from lamina.core.model.plan import Propagation
from lamina.core.model.queries import ReadAll
from lamina.errors import Forbidden
from lamina.families.objectset.labels import CACHED, PHASE_CLASS, REVISION
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import Key, Loop, Process, SimulatedCluster
from lamina.testing.crash_explorer import Step, Write
from tests.unit.families.objectset.promises import check, controller, is_archived, number, sets
from tests.unit.families.objectset.revisions import deployment, object_set, phase
from tests.unit.families.objectset.stories import (
    KUBELET,
    STORIES,
    UNDER_TEST,
    Story,
    cluster,
    creates,
    edits,
    is_,
    latest,
    loses,
    loses_phases,
    ref_of,
    set_ref,
    spec,
    turns,
    wants,
    widget,
)


def phase_ref(name: str, phase_name: str) -> Ref:
    return set_ref(name)._replace(kind="ObjectSetPhase", name=f"{name}-{phase_name}")


MINUTE = timedelta(minutes=1)
ONE = spec(phase("p1", widget("a")), phase("p2", widget("b")))
STUCK = spec(phase("p1", widget("a", "bad")), phase("p2", widget("b", "two")))


def played(story: Story, choose: object = None) -> SimulatedCluster:
    """Play a story with the promises checked, a minute for each step."""
    world = cluster(*story.given)
    process = Process(world, UNDER_TEST)
    loop = Loop(world, process, Process(world, (KUBELET,)), **({"choose": choose} if choose else {}))  # type: ignore[arg-type]
    before: dict[str, dict] = {}  # type: ignore[type-arg]
    process.before_write = lambda key, action: before.update(objects=dict(world.objects))
    process.after_write = lambda key, action: check(Write(action, before["objects"], world))
    loop.pass_time(MINUTE)
    for step in story.steps:
        if not isinstance(step, timedelta):
            step(world)
        loop.pass_time(step if isinstance(step, timedelta) else MINUTE)
    return world


def held_by(world: SimulatedCluster, *names: str) -> list[int]:
    """The numbers of the revisions that control these objects."""
    return [number(controller(world.objects, world.objects.get(ref_of(name))) or {}) for name in names]


def images(world: SimulatedCluster, *names: str) -> list[str]:
    return [world.get(ref_of(name))["spec"]["image"] for name in names]


def in_the_middle(*steps: Step) -> SimulatedCluster:
    """v2 has taken `a` over from v1, and is stuck."""
    takes_over = creates(object_set("v2", STUCK, previous=["v1"]))
    return played(Story((object_set("v1", ONE),), (takes_over, *steps)))


def test_a_revision_that_is_deleted_leaves_its_objects_to_the_one_before() -> None:
    world = in_the_middle()
    uid = meta.uid(world.get(ref_of("a")))
    assert held_by(world, "a", "b") == [2, 1]

    world = in_the_middle(loses(set_ref("v2")))

    assert set_ref("v2") not in world.objects
    assert held_by(world, "a", "b") == [1, 1]
    assert images(world, "a", "b") == ["one", "one"]
    assert meta.uid(world.get(ref_of("a"))) == uid


def test_a_revision_that_is_archived_leaves_its_objects_to_the_one_before() -> None:
    world = in_the_middle(turns("v2", "Archived"))

    assert is_archived(world.get(set_ref("v2")))
    assert held_by(world, "a", "b") == [1, 1]
    assert images(world, "a", "b") == ["one", "one"]


ORPHANED = loses(set_ref("v2"), how=Propagation.ORPHAN)


def test_a_revision_that_is_orphaned_is_gone_though_the_one_before_is_paused() -> None:
    world = in_the_middle(turns("v1", "Paused"), ORPHANED)

    assert set_ref("v2") not in world.objects
    assert held_by(world, "a", "b") == [0, 1]

    world = in_the_middle(turns("v1", "Paused"), ORPHANED, turns("v1", "Active"))

    assert held_by(world, "a", "b") == [1, 1]
    assert images(world, "a", "b") == ["one", "one"]


@pytest.mark.parametrize("how", [Propagation.ORPHAN, Propagation.BACKGROUND])
def test_the_last_revision_to_leave_what_was_orphaned_removes_the_marks(how: Propagation) -> None:
    world = in_the_middle(turns("v1", "Paused"), ORPHANED, loses(set_ref("v1"), how=how))

    assert not sets(world.objects)
    assert unmarked(world, "a")


@pytest.mark.parametrize("how", [Propagation.ORPHAN, Propagation.BACKGROUND])
def test_a_set_that_took_an_object_of_another_lineage_is_gone_once_it_is_orphaned(how: Propagation) -> None:
    """Both have the number 1, so that the first one does not know the object as its own any more."""
    first, second = object_set("v1", ONE), object_set("v2", STUCK, collisionProtection="None")

    world = played(Story((first,), (creates(second), ORPHANED)))

    assert set_ref("v2") not in world.objects
    assert held_by(world, "a", "b") == [0, 1]
    assert not unmarked(world, "a")

    world = played(Story((first,), (creates(second), ORPHANED, loses(set_ref("v1"), how=how))))

    assert not sets(world.objects)
    assert unmarked(world, "a")


def unmarked(world: SimulatedCluster, name: str) -> bool:
    """Say whether an object has no owner, no label and no annotation of a revision."""
    found = world.get(ref_of(name))
    return not (meta.owner_refs(found) or CACHED in meta.labels(found) or REVISION in meta.annotations(found))


def test_a_phase_that_is_deleted_is_kept_as_long_as_its_set_is_live() -> None:
    first = deployment("web", spec(phase("p1", widget("a"), **{"class": "default"})))
    story = Story((first,), (loses_phases, edits(ref_of("a"), {"spec": {"image": "drift"}})))

    world = played(story)
    assert held_by(world, "a") == [1]
    assert images(world, "a") == ["one"]

    world = played(Story(story.given, (*story.steps, wants(spec(phase("p1", widget("a", "two")))))))
    assert held_by(world, "a") == [2]
    assert not [ref for ref in world.objects if ref.kind == "ObjectSetPhase"]


CLASSED = {"class": "default"}
LOSES_ITS_SET = edits(phase_ref("v1", "p1"), {"metadata": {"ownerReferences": None}})


def lone_phase(*objects: Made) -> Made:
    """An ObjectSetPhase that no set has created."""
    ref = phase_ref("lone", "p1")
    metadata = {"name": ref.name, "namespace": ref.namespace, "labels": {PHASE_CLASS: "default"}}
    return {
        "apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata,
        "spec": {"revision": 1, "objects": [{"object": one} for one in objects]},
    }  # fmt: skip


def test_a_phase_that_has_lost_its_set_deletes_nothing_that_a_set_needs() -> None:
    """The first revision works and contains `a` and `b`, and the latest contains `a`."""
    first = object_set("v1", spec(phase("p1", widget("a"), widget("b"), **CLASSED)))
    stuck = spec(phase("p1", widget("c", "bad")), phase("p2", widget("a", "two")))
    lost = edits(phase_ref("v1", "p1"), {"metadata": {"ownerReferences": None}})
    steps = (creates(object_set("v2", stuck, previous=["v1"])), turns("v1", "Paused"), lost)

    world = played(Story((first,), (*steps, loses(phase_ref("v1", "p1")))))

    assert phase_ref("v1", "p1") not in world.objects
    assert unmarked(world, "a")
    assert unmarked(world, "b")


def test_a_phase_without_a_set_deletes_what_no_set_needs() -> None:
    world = played(Story((lone_phase(widget("a"), widget("b")),), ()))
    assert {meta.controller_of(world.get(ref_of(name)))["name"] for name in "ab"} == {"lone-p1"}  # type: ignore[index]

    steps = (creates(object_set("v1", ONE)), turns("v1", "Archived"), loses(phase_ref("lone", "p1")))
    world = played(Story((lone_phase(widget("a"), widget("b")),), steps))

    assert not [ref for ref in world.objects if ref.kind in ("Widget", "ObjectSetPhase")]


def test_a_phase_without_a_set_waits_until_the_sets_can_be_listed() -> None:
    world = played(Story((lone_phase(widget("a")),), (creates(object_set("v1", ONE)),)))
    world.refuse = {ReadAll: Forbidden("objectsets is forbidden")}
    world.delete(phase_ref("lone", "p1"))
    Loop(world, Process(world, UNDER_TEST)).pass_time(MINUTE)
    assert phase_ref("lone", "p1") in world.objects
    assert ref_of("a") in world.objects

    world.refuse = {}
    Loop(world, Process(world, UNDER_TEST)).pass_time(MINUTE)

    assert phase_ref("lone", "p1") not in world.objects
    assert not meta.owner_refs(world.get(ref_of("a")))


def test_success_is_not_reported_of_what_was_edited_by_hand() -> None:
    """The edit makes the object healthy; the revision has not made it so."""
    world = played(Story((object_set("v1", spec(phase("p1", widget("a", "bad")))),), ()))
    world.patch(ref_of("a"), {"spec": {"image": "good"}})
    Loop(world, Process(world, (KUBELET,))).pass_time(MINUTE)
    assert world.get(ref_of("a"))["status"]["conditions"][0]["status"] == "True"

    Loop(world, Process(world, UNDER_TEST)).settle()

    reported = {one["type"]: one["status"] for one in world.get(set_ref("v1"))["status"]["conditions"]}
    assert "Succeeded" not in reported
    assert images(world, "a") == ["bad"]


def test_the_report_of_a_revision_is_restored() -> None:
    world = cluster(object_set("v1", ONE))
    loop = Loop(world, Process(world, UNDER_TEST), Process(world, (KUBELET,)))
    loop.pass_time(MINUTE)
    reported = world.get(set_ref("v1"))["status"]

    world.patch(set_ref("v1"), {"status": {"conditions": None, "controllerOf": None}}, subresource="status")
    loop.pass_time(MINUTE)

    status = world.get(set_ref("v1"))["status"]
    assert status["controllerOf"] == reported["controllerOf"]
    assert [one["type"] for one in status["conditions"]] == ["Available", "Succeeded"]


def test_a_failure_that_is_superseded_does_not_roll_out_further() -> None:
    first = object_set("v1", spec(phase("p1", widget("a", "bad")), phase("p2", widget("b"))))
    second = object_set("v2", spec(phase("p1", widget("a", "two"))), previous=["v1"])

    world = played(Story((first,), (creates(second),)))

    assert held_by(world, "a") == [2]
    assert ref_of("b") not in world.objects


def test_an_available_revision_replaces_no_other_before_it_controls_its_objects() -> None:
    """v3 is paused and available, and v2 controls an object of it and waits for one of v1."""
    waits_for_x = spec(phase("p1", widget("a")), phase("p2", widget("b", "bad")), phase("p3", widget("x")))
    latest_one = spec(phase("p1", widget("c", "bad")), phase("p2", widget("a", "two")))
    world = played(
        Story(
            (deployment("web", spec(phase("p1", widget("x"), widget("y")))),),
            (wants(waits_for_x), wants(latest_one), latest(is_("Paused"))),
        )
    )
    world.patch(ref_of("c"), {"spec": {"image": "good"}})
    Loop(world, Process(world, UNDER_TEST), Process(world, (KUBELET,))).pass_time(MINUTE)

    newest = max(sets(world.objects), key=number)
    assert {one["type"]: one["status"] for one in newest["status"]["conditions"]} == {
        "Available": "True", "InTransition": "True", "Paused": "True",
    }  # fmt: skip
    assert held_by(world, "a", "b", "c", "x", "y") == [2, 2, 3, 1, 1]


def deployments_first(keys: Sequence[Key]) -> Key:
    return next((one for one in keys if one.controller == "objectdeployment"), keys[0])


def newest_first(keys: Sequence[Key]) -> Key:
    return keys[-1]


@pytest.mark.parametrize("order", (deployments_first, newest_first))
def test_every_story_comes_to_rest_in_any_order_of_keys(order: object) -> None:
    for name, story in STORIES.items():
        try:
            played(story, order)
        except AssertionError as error:
            pytest.fail(f"{name}: {error}")


def test_only_one_revision_is_live_at_the_end_of_a_rollout() -> None:
    world = played(Story((deployment("web", ONE),), (wants(spec(phase("p1", widget("a", "two")))),)))

    live: list[Made] = [one for one in sets(world.objects) if not is_archived(one)]
    assert [number(one) for one in live] == [2]
