"""
Controllers that plan from an old view: what that would break is not planned, or the server refuses it.

The view is that of an old copy of the cluster; live reads and writes go to the cluster as it is.
"""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from lamina.core.model.controller import AnyController
from lamina.core.model.effects import Ask
from lamina.core.model.plan import NOTHING, Action, Apply, Create, Delete, Emit, Patch, Plan
from lamina.core.model.queries import Answer, Query
from lamina.core.model.reconcile import drive, planning
from lamina.errors import Conflict
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import Loop, Process, SimulatedCluster
from lamina.testing.crash_explorer import Perturbation, Write
from tests.unit.families.objectset.promises import check, number, sets
from tests.unit.families.objectset.revisions import CONTROLLERS, deployment, object_set, phase
from tests.unit.families.objectset.stories import (
    HELD,
    KUBELET,
    WEB,
    cluster,
    object_slice,
    ref_of,
    set_ref,
    spec,
    turns,
    wants,
    widget,
)

SETS, DEPLOYMENTS, PHASES = CONTROLLERS
SOAKS = {"successDelaySeconds": 600}


def settled(*given: Made, minutes: int = 1) -> SimulatedCluster:
    made = cluster(*given)
    go_on(made, minutes)
    return made


def go_on(world: SimulatedCluster, minutes: float = 1) -> None:
    processes = Process(world, CONTROLLERS), Process(world, (KUBELET,))
    Loop(world, *processes).pass_time(timedelta(minutes=minutes))
    for one in processes:
        one.stop()


def planned_from(old: SimulatedCluster, world: SimulatedCluster, controller: AnyController, ref: Ref) -> Plan:
    """Return the plan that an old view leads to, with live reads of the cluster as it is."""

    def follow(query: Query) -> Answer:
        # What is followed is cached, too.
        return (old if type(query).__name__ == "Follow" else world).answer(query)

    def answer(ask: Ask) -> Mapping[Query, Answer]:
        return {query: follow(query) for query in ask.queries}

    view = controller.gather(old.world(controller), ref)
    return drive(planning(controller, view, lambda: world.now), answer) if view is not None else NOTHING


def performed(world: SimulatedCluster, plan: Plan) -> list[Action]:
    """Perform a plan, check the promises, and return what the server accepted, events left out."""
    accepted: list[Action] = []
    for action in plan.actions:
        if isinstance(action, Emit):
            continue
        before = dict(world.objects)
        try:
            world.perform(action, "package-operator")
        except Conflict:
            continue
        check(Write(action, before, world, Perturbation.STALE_VIEW))
        accepted.append(action)
    return accepted


def revision(world: SimulatedCluster, place: int) -> Made:
    return next(one for one in sets(world.objects) if number(one) == place)


def archives(action: Action) -> bool:
    return isinstance(action, Patch) and (action.patch.get("spec") or {}).get("lifecycleState") == "Archived"


def about_to_archive() -> SimulatedCluster:
    """v2 is available for a moment, and v1, which has two objects more, is paused and about to be archived."""
    world = settled(deployment("web", spec(phase("p1", *map(widget, ("a", "x", "y"))))))
    wants(spec(phase("p1", widget("a", "two")), **SOAKS))(world)
    processes = Process(world, CONTROLLERS), Process(world, (KUBELET,))
    loop = Loop(world, *processes)

    class Stop(Exception):
        pass

    def stop(key: object, action: Action) -> None:
        if archives(action):
            raise Stop

    processes[0].before_write = stop
    with pytest.raises(Stop):
        loop.pass_time(timedelta(minutes=1))
    for one in processes:
        one.stop()
    return world


def fails(world: SimulatedCluster, name: str) -> None:
    """An object fails, and the revision that controls it reports that."""
    status = {"conditions": [{"type": "Ready", "status": "False"}]}
    world.patch(ref_of(name), {"status": status}, subresource="status")
    holder = meta.controller_of(world.get(ref_of(name)))
    assert holder is not None
    performed(world, planned_from(world.copy(), world, SETS, set_ref(holder["name"])))


def test_a_revision_is_archived_once_the_latest_is_available() -> None:
    world = about_to_archive()

    assert any(map(archives, performed(world, planned_from(world.copy(), world, DEPLOYMENTS, WEB))))


def test_a_revision_is_not_archived_by_a_view_in_which_the_latest_is_still_available() -> None:
    world = about_to_archive()
    old = world.copy()
    fails(world, "a")

    assert not any(map(archives, performed(world, planned_from(old, world, DEPLOYMENTS, WEB))))


def test_a_revision_is_not_archived_by_a_view_without_the_latest_revision() -> None:
    world = about_to_archive()
    old = world.copy()
    wants(spec(phase("p1", widget("a", "bad")), phase("p2", widget("x"), widget("y"))))(world)
    performed(world, planned_from(world.copy(), world, DEPLOYMENTS, WEB))
    assert number(revision(world, 3)) == 3

    assert not any(map(archives, performed(world, planned_from(old, world, DEPLOYMENTS, WEB))))


def test_no_number_is_given_twice_by_a_view_without_the_newest_revision() -> None:
    world = settled(deployment("web", spec(phase("p1", widget("a")))))
    old = world.copy()
    for image in ("two", "three"):
        wants(spec(phase("p1", widget("a", image))))(world)
        performed(world, planned_from(world.copy(), world, DEPLOYMENTS, WEB))
    stale = old.copy()
    stale.load([world.objects[WEB]])

    assert not any(isinstance(one, Create) for one in planned_from(stale, world, DEPLOYMENTS, WEB).actions)
    assert sorted(map(number, sets(world.objects))) == [1, 2, 3]


def test_the_number_of_a_revision_that_is_being_deleted_is_not_given_again() -> None:
    world = settled(deployment("web", spec(phase("p1", widget("a")))))
    wants(spec(phase("p1", widget("a", "bad"))))(world)
    go_on(world)
    second = meta.ref(revision(world, 2))
    world.patch(second, HELD)
    world.delete(second)

    go_on(world)

    assert [number(one) for one in sets(world.objects) if not meta.is_deleting(one)] == [1, 3]


def handed_over() -> tuple[SimulatedCluster, SimulatedCluster]:
    """Return a cluster in which v2 has taken an object over, and the same just before."""
    world = settled(object_set("v1", spec(phase("p1", widget("a"), widget("x")))))
    world.create(object_set("v2", spec(phase("p1", widget("a", "bad"), widget("x"))), previous=["v1"]))
    old = world.copy()
    go_on(world)
    return old, world


def test_an_object_that_was_handed_over_is_not_written_by_an_old_view() -> None:
    old, world = handed_over()
    # In the old view there is drift, so there is something to write.
    old.patch(ref_of("a"), {"spec": {"image": "drift"}})
    plan = planned_from(old, world, SETS, set_ref("v1"))
    assert any(isinstance(one, Apply) for one in plan.actions)
    before = world.get(ref_of("a"))

    assert performed(world, plan) == []

    assert world.get(ref_of("a")) == before


def test_an_object_that_another_controller_has_is_not_deleted_by_an_old_view() -> None:
    world = settled(object_set("v1", spec(phase("p1", widget("a")))))
    turns("v1", "Archived")(world)
    old = world.copy()
    theirs = {"apiVersion": "v1", "kind": "Namespace", "name": "team", "uid": "theirs", "controller": True}
    world.patch(ref_of("a"), {"metadata": {"ownerReferences": [theirs]}})
    plan = planned_from(old, world, SETS, set_ref("v1"))
    assert any(isinstance(one, Delete) for one in plan.actions)

    assert not any(isinstance(one, Delete) for one in performed(world, plan))

    assert ref_of("a") in world.objects


def test_a_revision_is_not_archived_as_long_as_it_controls_what_an_old_view_shows_to_be_anothers() -> None:
    world = settled(object_set("v1", spec(phase("p1", widget("a")))))
    turns("v1", "Archived")(world)
    old = world.copy()
    old.patch(ref_of("a"), {"metadata": {"ownerReferences": None, "labels": None}})

    performed(world, planned_from(old, world, SETS, set_ref("v1")))

    conditions = {one["type"]: one["status"] for one in revision(world, 1)["status"]["conditions"]}
    assert conditions.get("Archived") != "True"
    go_on(world)
    assert ref_of("a") not in world.objects


def test_a_revision_that_is_archived_creates_nothing_by_an_old_view() -> None:
    world = settled(object_set("v1", spec(phase("p1", widget("a")))))
    old = world.copy()
    old.delete(ref_of("a"))
    turns("v1", "Archived")(world)
    go_on(world)

    assert performed(world, planned_from(old, world, SETS, set_ref("v1"))) == []

    assert ref_of("a") not in world.objects


def test_a_revision_deletes_nothing_by_a_view_in_which_it_still_is_archived() -> None:
    world = settled(object_set("v1", spec(phase("p1", widget("a")))))
    old = world.copy()
    turns("v1", "Archived")(old)
    turns("v1", "Archived")(world)
    turns("v1", "Active")(world)

    performed(world, planned_from(old, world, SETS, set_ref("v1")))

    assert not meta.is_deleting(world.get(ref_of("a")))


def test_a_revision_that_is_archived_deletes_nothing_of_a_newer_one_that_its_view_lacks() -> None:
    world = settled(object_set("v1", spec(phase("p1", widget("a"), widget("x")))))
    turns("v1", "Archived")(world)
    old = world.copy()
    world.create(
        object_set("v2", spec(phase("p1", widget("a", "bad")), phase("p2", widget("x"))), previous=["v1"])
    )

    plan = planned_from(old, world, SETS, set_ref("v1"))

    assert not any(isinstance(one, Delete) for one in plan.actions)


def reported(world: SimulatedCluster, place: int) -> dict[str, str]:
    return {one["type"]: one["status"] for one in revision(world, place)["status"]["conditions"]}


def test_a_paused_revision_reports_nothing_by_a_view_without_its_objects() -> None:
    """It would be archived, because it reports that it controls no object any more."""
    world = settled(object_set("v1", spec(phase("p1", widget("a")))))
    turns("v1", "Paused")(world)
    old = world.copy()
    old.delete(ref_of("a"))

    assert performed(world, planned_from(old, world, SETS, set_ref("v1"))) == []

    go_on(world)
    assert reported(world, 1) == {"Available": "True", "Succeeded": "True", "Paused": "True"}
    assert [one["name"] for one in revision(world, 1)["status"]["controllerOf"]] == ["a"]


def test_a_paused_revision_reports_nothing_by_a_view_with_an_old_phase() -> None:
    world = settled(object_set("v1", spec(phase("p1", widget("a"), **{"class": "default"}))))
    turns("v1", "Paused")(world)
    go_on(world)
    old = world.copy()
    phases = [ref for ref in world.objects if ref.kind == "ObjectSetPhase"]
    old.patch(phases[0], {"status": {"controllerOf": None}}, subresource="status")
    old.patch(set_ref("v1"), {"status": {"conditions": None}}, subresource="status")
    world.load([old.get(set_ref("v1"))])

    assert performed(world, planned_from(old, world, SETS, set_ref("v1"))) == []


def test_a_paused_revision_reports_nothing_by_a_view_without_its_slice() -> None:
    """It would be archived, because it reports that it controls none of the objects of the slice."""
    slices = object_slice("s1", widget("b"))
    world = settled(slices, object_set("v1", spec(phase("p1", widget("a"), slices=["s1"]))))
    turns("v1", "Paused")(world)
    old = world.copy()
    old.delete(meta.ref(slices))
    old.patch(set_ref("v1"), {"status": {"controllerOf": None}}, subresource="status")
    world.load([old.get(set_ref("v1"))])

    assert performed(world, planned_from(old, world, SETS, set_ref("v1"))) == []

    go_on(world)
    assert [one["name"] for one in revision(world, 1)["status"]["controllerOf"]] == ["a", "b"]


def test_a_revision_is_not_archived_by_a_view_without_its_slice() -> None:
    slices = object_slice("s1", widget("b"))
    world = settled(slices, object_set("v1", spec(phase("p1", widget("a"), slices=["s1"]))))
    turns("v1", "Archived")(world)
    old = world.copy()
    old.delete(meta.ref(slices))
    old.patch(set_ref("v1"), {"status": {"controllerOf": None}}, subresource="status")
    world.load([old.get(set_ref("v1"))])

    assert performed(world, planned_from(old, world, SETS, set_ref("v1"))) == []

    go_on(world)
    assert not [ref for ref in world.objects if ref.kind == "Widget"]


@pytest.mark.parametrize("phase_class", ["", "default"], ids=["by its set", "by an ObjectSetPhase"])
@pytest.mark.parametrize("is_reported", [True, False], ids=["reported", "not reported yet"])
def test_a_failure_creates_nothing_once_a_newer_revision_has_an_object_of_another_phase(
    phase_class: str, is_reported: bool
) -> None:
    other = "" if phase_class else "default"
    failing = phase("p2", widget("c", "bad"), **{"class": phase_class})
    world = settled(object_set("v1", spec(phase("p1", widget("a"), **{"class": other}), failing)))
    world.create(object_set("v2", spec(phase("p1", widget("a", "two"))), previous=["v1"]))
    go_on(world)
    assert meta.controller_of(world.get(ref_of("a"))) == meta.owner_ref(
        world.get(set_ref("v2")), controller=True, blocks=True
    )
    if not is_reported:
        world.patch(set_ref("v2"), {"status": {"controllerOf": None}}, subresource="status")
    world.delete(ref_of("c"))

    if phase_class:
        plan = planned_from(world, world, PHASES, set_ref("v1")._replace(kind="ObjectSetPhase", name="v1-p2"))
    else:
        plan = planned_from(world, world, SETS, set_ref("v1"))

    assert [one for one in performed(world, plan) if isinstance(one, Create)] == []


@pytest.mark.parametrize("class_", ["", "default"], ids=["by its set", "by an ObjectSetPhase"])
def test_an_object_is_not_taken_back_from_a_newer_revision_that_the_view_lacks(class_: str) -> None:
    world = settled(object_set("v1", spec(phase("p1", widget("a"), protection="None"))))
    old = world.copy()
    newer = spec(phase("p1", widget("a", "two"), protection="None", **{"class": class_}))
    world.create(object_set("v2", newer, previous=["v1"]))
    go_on(world)
    before = world.get(ref_of("a"))
    # What is followed may be newer than the sets.
    old.load([before])

    assert performed(world, planned_from(old, world, SETS, set_ref("v1"))) == []

    assert world.get(ref_of("a")) == before
