"""Before a rollout is aborted, late works are read live: a stale view aborts no healthy rollout."""

from collections.abc import Sequence
from datetime import timedelta

from lamina.core.model.controller import decide
from lamina.core.model.plan import Plan
from lamina.core.model.queries import Answers, Query, Read
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.simulation.settle import settle
from tests.unit.families.manifestwork.fleet import (
    APP,
    BAD,
    HUB,
    OK2,
    OK3,
    Fleet,
    all_at_once,
    progressive,
    sent,
)


def decided(
    seen: Fleet, there: Fleet, known: Sequence[Query] = (), rounds: int = 32
) -> tuple[Plan, list[Query]]:
    """Return what a hub does that sees one fleet, and looks at another where it looks for real."""
    view = HUB.gather(seen.world(HUB), APP)
    assert view is not None
    answers, asked = Answers({one: there.answer(one) for one in known}), list[Query]()
    for _ in range(rounds):
        if isinstance(said := decide(HUB, view, answers, there.now), Plan):
            return said, asked
        asked += said
        answers = answers | {one: there.answer(one) for one in said}
    raise AssertionError(f"it goes on asking after {rounds} rounds")


def rolling(strategy: Obj, clusters: int = 4, content: Obj = OK2) -> Fleet:
    """Return a fleet that was sent something that its clusters have not answered yet."""
    fleet = Fleet()
    fleet.start(clusters=clusters, strategy=strategy)
    fleet.roll()
    fleet.want(content)
    fleet.step()
    return fleet


ALL = all_at_once(progressDeadline="5s", failureStrategy="AbortAll")


def is_aborted(plan: Plan) -> bool:
    return any("abortedTime" in (getattr(one, "patch", {}).get("status") or {}) for one in plan.actions)


def test_a_hub_with_a_stale_view_does_not_abort_a_healthy_rollout() -> None:
    there = rolling(ALL)
    seen = there.copy()
    there.pass_time(1)
    there.report()
    there.pass_time(9)

    plan, asked = decided(seen, there)

    assert asked
    assert not is_aborted(plan)
    assert "successfully progressed" in plan.because


def test_a_live_read_counts_before_its_event_arrives() -> None:
    """The cluster that seemed late is healthy in the live read, so the next one is updated."""
    there = rolling(progressive(maxConcurrency=1))
    seen = there.copy()
    there.pass_time(1)
    there.report()
    there.pass_time(9)

    plan, _ = decided(seen, there)

    assert not is_aborted(plan)
    assert sent(plan.actions) == [("c2", "2")]


def test_what_really_is_late_is_aborted_and_no_more_is_read_than_it_takes() -> None:
    there = rolling(ALL, clusters=40, content=BAD)
    there.report()
    there.pass_time(6)

    plan, asked = decided(there, there)

    assert is_aborted(plan)
    kinds = [str(one.ref.kind) for one in asked]  # type: ignore[union-attr]
    assert kinds == ["ManifestWork", "PlacementDecision", "ManifestWorkReplicaSet"]


def test_as_many_are_read_as_are_one_too_many() -> None:
    strategy = all_at_once(progressDeadline="5s", failureStrategy="AbortAll", maxFailures=3)
    there = rolling(strategy, clusters=40, content=BAD)
    there.pass_time(6)

    plan, asked = decided(there, there)

    assert is_aborted(plan)
    assert len(asked) == 4 + 1 + 1


def gets_well(fleet: Fleet, cluster: str) -> None:
    work = next(one for one in fleet.works() if meta.namespace(one) == cluster)
    said = work["status"]["conditions"]
    well = [{**one, "status": "False"} if one["type"] in ("Progressing", "Degraded") else one for one in said]
    fleet.patch(meta.ref(work), {"status": {"conditions": well}}, subresource="status")


def test_a_cluster_that_recovered_unobserved_does_not_excuse_the_others() -> None:
    there = rolling(ALL, content=BAD)
    there.report()
    seen = there.copy()
    there.pass_time(6)
    gets_well(there, "c1")

    plan, asked = decided(seen, there)

    assert is_aborted(plan)
    assert len(asked) == 2 + 1 + 1


def test_a_cluster_that_was_removed_unobserved_is_no_reason_to_abort() -> None:
    there = rolling(ALL)
    there.report("c1", "c2", "c3")
    seen = there.copy()
    there.place("place", {0: ["c1", "c2", "c3"]})
    there.pass_time(6)

    plan, _ = decided(seen, there)

    assert not is_aborted(plan)
    assert plan.requeue_after == timedelta(seconds=1)


def test_a_planner_with_a_stale_cache_gives_up_soon() -> None:
    there = rolling(ALL, clusters=300)
    seen = there.copy()
    there.report()
    there.pass_time(6)

    plan, asked = decided(seen, there)

    assert plan.actions == ()
    assert len(asked) <= 2 * 8
    assert plan.requeue_after == timedelta(seconds=1)


def test_where_many_are_tolerated_a_few_are_read_first() -> None:
    strategy = all_at_once(progressDeadline="5s", failureStrategy="AbortAll", maxFailures="50%")
    there = rolling(strategy, clusters=100)
    seen = there.copy()
    there.report()
    there.pass_time(6)

    plan, asked = decided(seen, there)

    assert plan.actions == ()
    assert len(asked) <= 8 + 1


def test_what_really_is_late_is_seen_in_a_few_rounds_however_many_are_tolerated() -> None:
    strategy = all_at_once(progressDeadline="5s", failureStrategy="AbortAll", maxFailures="50%")
    there = rolling(strategy, clusters=100, content=BAD)
    there.pass_time(6)

    plan, asked = decided(there, there, rounds=6)

    assert is_aborted(plan)
    assert len(asked) == 51 + 1 + 1


def test_works_that_were_read_and_never_looked_late_are_no_doubts() -> None:
    there = rolling(ALL, clusters=12)
    there.report(*(f"c{number}" for number in range(1, 12)))
    there.pass_time(6)
    others = [Read(meta.ref(one), whole=True) for one in there.works() if meta.namespace(one) != "c12"]

    plan, _ = decided(there, there, known=others)

    assert is_aborted(plan)


def in_places(content: Obj) -> Fleet:
    """Return a fleet of five placements of seven clusters each that was sent something."""
    fleet = Fleet()
    fleet.start(clusters=1, strategy=ALL)
    names = [f"place{number}" for number in range(5)]
    for name in names:
        fleet.place(name, {0: [f"{name}-c{number}" for number in range(7)]})
    fleet.set(placementRefs=[{"name": name, "rolloutStrategy": ALL} for name in names])
    fleet.roll()
    fleet.want(content)
    fleet.step()
    return fleet


def test_several_placements_are_looked_at_together() -> None:
    there = in_places(OK2)
    seen = there.copy()
    there.report()
    there.pass_time(6)

    plan, asked = decided(seen, there, rounds=8)

    assert len(asked) >= 35
    assert not is_aborted(plan)


def test_one_placement_that_is_late_is_enough_though_what_is_seen_of_another_is_old() -> None:
    there = in_places(OK2)
    seen = there.copy()
    there.report(*(f"place0-c{number}" for number in range(7)))
    there.pass_time(6)

    plan, _ = decided(seen, there)

    assert is_aborted(plan)


def test_no_work_is_read_where_nothing_is_aborted() -> None:
    there = rolling(all_at_once(progressDeadline="5s"), content=BAD)
    there.report()
    there.pass_time(6)

    _, asked = decided(there, there)

    assert asked == []


def test_a_hub_with_a_stale_view_sends_no_template_that_is_no_longer_wanted() -> None:
    """The next work would be written, and has not changed since; but another template is wanted now."""
    there = rolling(progressive(maxConcurrency=1))
    there.report()
    seen = there.copy()
    there.want(OK3)
    settle(there, HUB)

    plan, _ = decided(seen, there)

    assert sent(decided(seen, seen)[0].actions) == [("c2", "2")]
    assert plan.actions == ()
    assert plan.requeue_after is not None
