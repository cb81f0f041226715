"""Before a rollout is aborted, those that are late are looked at: whoever is shown the past aborts nothing good."""

from collections.abc import Sequence
from datetime import timedelta

from lamina.core.controller import decide
from lamina.core.plan import Plan
from lamina.core.questions import Answers, Question, Read
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.paper.settle import settle
from tests.unit.families.manifestwork.fleet import (
    APP,
    BAD,
    HUB,
    OK2,
    OK3,
    Fleet,
    everybody,
    progressive,
    sent,
)


def decided(
    seen: Fleet, there: Fleet, known: Sequence[Question] = (), rounds: int = 32
) -> tuple[Plan, list[Question]]:
    """Return what a hub does that sees one fleet, and looks at another where it looks for real."""
    view = HUB.gather(seen.world(HUB), APP)
    assert view is not None
    answers, asked = Answers({one: there.answer(one) for one in known}), list[Question]()
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


ALL = everybody(progressDeadline="5s", failureStrategy="AbortAll")


def is_aborted(plan: Plan) -> bool:
    return any("abortedTime" in (getattr(one, "patch", {}).get("status") or {}) for one in plan.actions)


def test_a_hub_that_is_shown_the_past_does_not_abort_what_went_well() -> None:
    there = rolling(ALL)
    seen = there.as_it_is()
    there.pass_time(1)
    there.report()
    there.pass_time(9)

    plan, asked = decided(seen, there)

    assert asked
    assert not is_aborted(plan)
    assert "successfully progressed" in plan.because


def test_what_was_read_counts_though_it_was_not_heard() -> None:
    """The one that seemed late is well; with it, the next two go out."""
    there = rolling(progressive(maxConcurrency=1))
    seen = there.as_it_is()
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
    strategy = everybody(progressDeadline="5s", failureStrategy="AbortAll", maxFailures=3)
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


def test_one_that_got_well_unheard_does_not_save_the_others() -> None:
    there = rolling(ALL, content=BAD)
    there.report()
    seen = there.as_it_is()
    there.pass_time(6)
    gets_well(there, "c1")

    plan, asked = decided(seen, there)

    assert is_aborted(plan)
    assert len(asked) == 2 + 1 + 1


def test_a_cluster_that_was_dropped_unheard_is_no_reason() -> None:
    there = rolling(ALL)
    there.report("c1", "c2", "c3")
    seen = there.as_it_is()
    there.place("place", {0: ["c1", "c2", "c3"]})
    there.pass_time(6)

    plan, _ = decided(seen, there)

    assert not is_aborted(plan)
    assert plan.look_again == timedelta(seconds=1)


def test_whoever_sees_nothing_but_the_past_gives_up_soon() -> None:
    there = rolling(ALL, clusters=300)
    seen = there.as_it_is()
    there.report()
    there.pass_time(6)

    plan, asked = decided(seen, there)

    assert plan.actions == ()
    assert len(asked) <= 2 * 8
    assert plan.look_again == timedelta(seconds=1)


def test_where_many_are_tolerated_a_few_are_read_first() -> None:
    strategy = everybody(progressDeadline="5s", failureStrategy="AbortAll", maxFailures="50%")
    there = rolling(strategy, clusters=100)
    seen = there.as_it_is()
    there.report()
    there.pass_time(6)

    plan, asked = decided(seen, there)

    assert plan.actions == ()
    assert len(asked) <= 8 + 1


def test_what_really_is_late_is_seen_in_a_few_rounds_however_many_are_tolerated() -> None:
    strategy = everybody(progressDeadline="5s", failureStrategy="AbortAll", maxFailures="50%")
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
    seen = there.as_it_is()
    there.report()
    there.pass_time(6)

    plan, asked = decided(seen, there, rounds=8)

    assert len(asked) >= 35
    assert not is_aborted(plan)


def test_one_placement_that_is_late_is_enough_though_what_is_seen_of_another_is_old() -> None:
    there = in_places(OK2)
    seen = there.as_it_is()
    there.report(*(f"place0-c{number}" for number in range(7)))
    there.pass_time(6)

    plan, _ = decided(seen, there)

    assert is_aborted(plan)


def test_nobody_is_read_where_nothing_is_aborted() -> None:
    there = rolling(everybody(progressDeadline="5s"), content=BAD)
    there.report()
    there.pass_time(6)

    _, asked = decided(there, there)

    assert asked == []


def test_who_sees_the_past_sends_nothing_that_is_not_asked_for_any_more() -> None:
    """The next one would go out, and nobody has written to its work since; but something else is wanted now."""
    there = rolling(progressive(maxConcurrency=1))
    there.report()
    seen = there.as_it_is()
    there.want(OK3)
    settle(there, HUB)

    plan, _ = decided(seen, there)

    assert sent(decided(seen, seen)[0].actions) == [("c2", "2")]
    assert plan.actions == ()
    assert plan.look_again is not None
