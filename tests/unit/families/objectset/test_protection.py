"""Objects that a live revision contains, while one before it is archived, deleted, paused or resumed."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from lamina.actors.garbage import GARBAGE
from lamina.core.model.plan import Action, Delete, Propagation
from lamina.core.model.queries import Answer, Query, ReadAll, Refused
from lamina.core.model.reconcile import drive, planning
from lamina.families.objectset.labels import OWNING_DEPLOYMENT
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from lamina.simulation import Key, Loop, Process, SimulatedCluster
from lamina.testing.crash_explorer import Write
from tests.unit.families.objectset.promises import check, controller, number, sets
from tests.unit.families.objectset.revisions import deployment, object_set
from tests.unit.families.objectset.stories import (
    A1,
    A2,
    B1,
    B2,
    B3,
    BAD_A,
    CLASSED,
    KUBELET,
    UNDER_TEST,
    WEB,
    X,
    p1,
    p2,
    ref_of,
    set_ref,
    spec,
    turns,
    wants,
    widget,
)
from tests.unit.families.objectset.test_old_views import PHASES, SETS, go_on, planned_from, revision, settled

SOAKS = {"successDelaySeconds": 36_000}


def observed(world: SimulatedCluster, order: Callable[[Key], Any], seconds: int = 60) -> list[Action]:
    """Reconcile the keys in an order, check the promises after each write, and return the writes."""
    process, written = Process(world, UNDER_TEST), list[Action]()
    before: dict[Ref, Made] = {}

    def look(key: Key, action: Action) -> None:
        before.clear()
        before.update(world.objects)

    def note(key: Key, action: Action) -> None:
        written.append(action)
        check(Write(action, dict(before), world))

    process.before_write, process.after_write = look, note
    kubelet = Process(world, (KUBELET,))
    Loop(world, process, kubelet, choose=lambda keys: min(keys, key=order)).pass_time(
        timedelta(seconds=seconds)
    )
    process.stop()
    kubelet.stop()
    return written


def deletions(actions: Sequence[Action]) -> list[str]:
    return [one.ref.name for one in actions if isinstance(one, Delete)]


def name_of(world: SimulatedCluster, place: int) -> str:
    return meta.name(revision(world, place))


# What was reported holds until the next report


def failing_beside_a_working_one(**fields: int) -> SimulatedCluster:
    """The first revision works, the second failed and has an object of it, and the latest fails."""
    world = settled(deployment("web", spec(p1(widget("c"), widget("d")), **fields)))
    for those in ((widget("c"), widget("z", "bad")), (widget("y", "bad"),)):
        wants(spec(p1(*those), **fields))(world)
        go_on(world)
    return world


@pytest.mark.parametrize("last", [1, 2, 3])
@pytest.mark.parametrize("fields", [SOAKS, {}], ids=["while it soaks", "that has succeeded"])
def test_pausing_and_resuming_a_deployment_deletes_nothing_that_works(
    fields: dict[str, int], last: int
) -> None:
    world = failing_beside_a_working_one(**fields)
    slow = name_of(world, last)

    def order(key: Key) -> object:
        return key.ref.name == slow

    for paused in (True, False):
        world.patch(WEB, {"spec": {"paused": paused}})
        observed(world, order)

    assert ref_of("c") in world.objects
    assert ref_of("d") in world.objects


def test_a_revision_that_works_is_paused_by_hand_and_nothing_of_it_is_deleted() -> None:
    world = failing_beside_a_working_one(**SOAKS)
    turns(name_of(world, 2), "Paused")(world)
    go_on(world)
    turns(name_of(world, 1), "Paused")(world)

    written = observed(world, lambda key: (key.controller != "objectdeployment", key.ref.name))

    assert "c" not in deletions(written)


# Which revisions there are


def test_a_revision_that_names_it_counts_though_it_has_no_label() -> None:
    first = object_set("v1", spec(p1(A1), p2(B1)))
    first["metadata"]["labels"] = {OWNING_DEPLOYMENT: "web"}
    world = settled(first)
    world.create(object_set("v2", spec(p1(BAD_A), p2(B2)), previous=["v1"]))
    go_on(world)
    turns("v1", "Archived")(world)

    assert "b" not in deletions(observed(world, lambda key: key.ref.name))


def three_in_a_row() -> SimulatedCluster:
    """The third revision names the second as previous, and not the first, which has an object that it contains."""
    world = settled(object_set("v1", spec(p1(A1), p2(B1))))
    world.create(object_set("v2", spec(p1(A2)), previous=["v1"]))
    go_on(world)
    world.create(object_set("v3", spec(p1(BAD_A), p2(B3)), previous=["v2"]))
    go_on(world)
    return world


def test_revisions_of_one_lineage_count_though_they_do_not_name_each_other() -> None:
    world = three_in_a_row()
    turns("v1", "Archived")(world)

    assert "b" not in deletions(observed(world, lambda key: key.ref.name))


def test_an_object_passes_through_a_lineage_though_its_ends_do_not_name_each_other() -> None:
    world = three_in_a_row()

    world.patch(ref_of("a"), {"spec": {"image": "two"}})
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cure"}})
    go_on(world)

    assert meta.name(controller(world.objects, world.get(ref_of("b"))) or {}) == "v3"


def test_a_revision_that_has_no_number_yet_may_be_the_latest() -> None:
    world = settled(object_set("v1", spec(p1(A1), p2(B1))))
    world.create(object_set("v2", spec(p1(A2)), previous=["v1"]))
    go_on(world)
    turns("v1", "Archived")(world)
    world.create(object_set("v3", spec(p1(widget("q", "bad")), p2(B3)), previous=["v1", "v2"]))

    plan = planned_from(world.copy(), world, SETS, set_ref("v1"))

    assert deletions(plan.actions) == []


def test_nothing_is_deleted_as_long_as_the_revisions_cannot_be_listed() -> None:
    world = settled(object_set("v1", spec(p1(A1))))
    turns("v1", "Archived")(world)
    view = SETS.gather(world.world(SETS), set_ref("v1"))
    assert view is not None

    def answer(query: Query) -> Answer:
        return Refused(503, "no") if isinstance(query, ReadAll) else world.answer(query)

    plan = drive(
        planning(SETS, view, lambda: world.now), lambda ask: {one: answer(one) for one in ask.queries}
    )

    assert deletions(plan.actions) == []
    assert plan.requeue_after is not None


# Phases with a class


def _is_gone(world: SimulatedCluster, ref: Ref) -> None:
    world.patch(ref, {"metadata": {"finalizers": None}})
    world.delete(ref)
    assert ref not in world.objects


def test_a_phase_is_not_torn_down_by_a_view_without_its_set() -> None:
    world = settled(object_set("v1", spec(p1(A1, X, **CLASSED))))
    phase = next(ref for ref in world.objects if ref.kind == "ObjectSetPhase")
    world.delete(phase)
    old = world.copy()
    _is_gone(old, set_ref("v1"))

    plan = planned_from(old, world, PHASES, phase)

    assert deletions(plan.actions) == []
    assert plan.requeue_after is not None


def test_a_phase_is_torn_down_once_its_set_is_gone() -> None:
    world = settled(object_set("v1", spec(p1(A1, X, **CLASSED))))
    phase = next(ref for ref in world.objects if ref.kind == "ObjectSetPhase")
    world.delete(phase)
    _is_gone(world, set_ref("v1"))

    plan = planned_from(world.copy(), world, PHASES, phase)

    assert sorted(deletions(plan.actions)) == ["a", "x"]


# A deletion in the foreground


@pytest.mark.parametrize("fields", [{}, CLASSED], ids=["without a class", "with a class"])
@pytest.mark.parametrize("collector", [True, False], ids=["the collector first", "the controllers first"])
def test_the_latest_revision_is_deleted_in_the_foreground_during_a_handover(
    collector: bool, fields: dict[str, str]
) -> None:
    world = settled(deployment("web", spec(p1(A1, **fields), p2(B1))))
    wants(spec(p1(BAD_A, **fields), p2(B2)))(world)
    go_on(world)
    uid = meta.uid(world.get(ref_of("a")))
    world.delete(meta.ref(max(sets(world.objects), key=number)), Propagation.FOREGROUND)
    if collector:
        process = Process(world, (GARBAGE,))
        Loop(world, process).settle()
        process.stop()

    observed(world, lambda key: ((key.controller == GARBAGE.name) != collector, key.ref.name), 120)

    latest = max(sets(world.objects), key=number)
    assert number(latest) == 3
    found = world.get(ref_of("a"))
    assert meta.uid(found) == uid
    assert meta.uid(controller(world.objects, found) or {}) == meta.uid(latest)
    assert len(sets(world.objects)) == 2
