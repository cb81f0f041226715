"""Which targets a rollout moves now."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis.strategies import booleans, builds, integers, just, lists, none, one_of, sampled_from

from lamina.core.health.probe import HEALTHY, unhealthy, unknown
from lamina.core.rollout.pace import AT_ONCE, Pace
from lamina.core.rollout.step import Standing, Step, Target, advance, advance_by_group
from lamina.objects.times import stamp

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LATE = unknown("not ready")


def old(key: str, group: int = 0) -> Target:
    return Target(key=key, on_goal=False, group=group)


def new(key: str, group: int = 0) -> Target:
    return Target(key=key, on_goal=True, group=group, since=NOW)


def on_the_way(key: str, group: int = 0, since: datetime = NOW) -> Target:
    return Target(key=key, on_goal=True, verdict=LATE, since=since, group=group)


def step(*targets: Target, pace: Pace | None = None, now: datetime = NOW) -> Step:
    return advance("revision 2", targets, pace or Pace(), now)


def test_one_moves_at_a_time_in_the_order_given() -> None:
    assert step(old("b"), old("a")).move == ("b",)
    assert step(new("b"), old("a")).because == "moving a to revision 2"


def test_no_target_moves_while_one_is_moving_and_the_reason_names_it() -> None:
    taken = step(on_the_way("b"), old("a"))

    assert taken.move == ()
    assert taken.because == "waiting for b (not ready)"
    assert not taken.done


def test_all_targets_settled_is_the_end() -> None:
    assert step(new("a"), new("b")) == Step(
        because="all on revision 2",
        done=True,
        standing={"a": Standing.SETTLED, "b": Standing.SETTLED},
    )


def test_several_move_where_the_pace_has_room() -> None:
    assert step(on_the_way("a"), old("b"), old("c"), old("d"), pace=Pace(at_once=3)).move == ("b", "c")
    assert step(old("a"), old("b"), pace=AT_ONCE).move == ("a", "b")


def test_a_pinned_target_does_not_hold_up_the_end() -> None:
    held = Target(key="a", on_goal=False, held="pinned by hand")

    taken = step(held, new("b"))

    assert taken.done
    assert taken.because == "all on revision 2; a held: pinned by hand"


def test_a_group_waits_for_the_one_before_it() -> None:
    pace = Pace(at_once=5)

    assert step(old("a", 0), old("b", 1), pace=pace).move == ("a",)
    assert step(on_the_way("a", 0), old("b", 1), pace=pace).move == ()
    assert step(new("a", 0), old("b", 1), pace=pace).move == ("b",)


def test_a_target_settles_once_it_has_been_well_for_as_long_as_asked() -> None:
    pace = Pace(soak=MINUTE)

    early = step(new("a"), old("b"), pace=pace, now=NOW + MINUTE / 2)

    assert early.move == ()
    assert early.requeue_after == MINUTE / 2
    assert early.because == f"waiting for a (healthy; soak time of 60s ends at {stamp(NOW + MINUTE)})"
    assert step(new("a"), old("b"), pace=pace, now=NOW + MINUTE).move == ("b",)
    # By the clock of another machine it became healthy later than now: the sentence stays the same meanwhile.
    assert step(new("a"), old("b"), pace=pace, now=NOW - MINUTE).because == early.because


def test_a_target_that_is_not_healthy_in_time_has_failed_and_no_other_moves() -> None:
    pace = Pace(at_once=2, deadline=MINUTE)

    early = step(on_the_way("a"), old("b"), pace=pace)
    late = step(on_the_way("a"), old("b"), pace=pace, now=NOW + MINUTE)

    assert early.move == ("b",)
    assert early.requeue_after == MINUTE
    assert late.breached
    assert late.move == ()
    assert late.because == "1 failed, 0 tolerated: a (not ready)"


def test_a_tolerated_failure_lets_the_others_go_on_but_is_no_clean_end() -> None:
    pace = Pace(failures=1, deadline=MINUTE)
    late = NOW + MINUTE

    assert step(on_the_way("a"), old("b"), pace=pace, now=late).move == ("b",)
    ended = step(on_the_way("a"), new("b"), pace=pace, now=late)
    assert not ended.done
    assert not ended.breached
    assert ended.because == "all on revision 2; 1 failed and tolerated: a (not ready)"


def test_a_late_success_is_a_success() -> None:
    assert step(new("a"), pace=Pace(deadline=MINUTE), now=NOW + 5 * MINUTE).done


def test_a_clock_that_runs_ahead_does_not_extend_a_deadline() -> None:
    ahead = on_the_way("a", since=NOW + 10 * MINUTE)

    assert step(ahead, pace=Pace(deadline=MINUTE)).requeue_after == MINUTE


def test_a_target_that_reports_failure_counts_at_once_and_keeps_its_place_until_its_deadline() -> None:
    failing = Target(key="a", on_goal=True, verdict=unhealthy("broken"), since=NOW, failing=True)

    stopped = step(failing, old("b"), pace=Pace(at_once=5, deadline=MINUTE))
    assert stopped.breached
    assert stopped.standing["a"] is Standing.MOVING
    assert stopped.requeue_after == MINUTE
    assert step(failing, old("b"), pace=Pace(at_once=1, failures=1, deadline=MINUTE)).move == ()
    late = step(failing, old("b"), pace=Pace(at_once=1, failures=1, deadline=MINUTE), now=NOW + MINUTE)
    assert late.move == ("b",)


def test_a_target_without_a_deadline_never_runs_out_of_time() -> None:
    untimed = Target(key="a", on_goal=True, verdict=LATE, timed=False)

    taken = step(untimed, pace=Pace(deadline=timedelta(0)), now=NOW + MINUTE)

    assert taken.standing == {"a": Standing.MOVING}
    assert taken.requeue_after is None


def by_group(*those: Target, tolerated: dict[int, int] | None = None, now: datetime = NOW) -> Step:
    return advance_by_group("revision 2", those, Pace(deadline=MINUTE), tolerated or {}, now)


def test_a_group_moves_as_a_whole_and_the_next_one_when_no_target_is_moving() -> None:
    assert by_group(old("a", 1), old("b", 1), old("c", 2)).move == ("a", "b")
    assert by_group(new("a", 1), on_the_way("b", 1), old("c", 2)).move == ()
    assert by_group(new("a", 1), new("b", 1), old("c", 2)).move == ("c",)
    assert by_group(new("a", 1), new("b", 2)).done


def test_failures_are_counted_where_they_happen() -> None:
    late = NOW + MINUTE
    first, second = on_the_way("a", 1), on_the_way("b", 1)

    stopped = by_group(first, second, old("c", 2), tolerated={1: 1}, now=late)
    assert stopped.breached
    assert stopped.because == "2 failed in group 1, 1 tolerated: a (not ready), b (not ready)"
    assert by_group(first, second, old("c", 2), tolerated={1: 2}, now=late).move == ("c",)
    assert by_group(first, new("b", 1), old("c", 2), on_the_way("d", 2), tolerated={1: 1, 2: 1}, now=late).move == ("c",)  # fmt: skip


def test_a_failure_that_is_tolerated_and_still_has_time_holds_up_no_other_group() -> None:
    failing = Target(key="a", on_goal=True, verdict=unhealthy("broken"), since=NOW, failing=True, group=1)

    assert by_group(failing, old("b", 2), tolerated={1: 1}).move == ("b",)
    assert by_group(failing, new("b", 2), tolerated={1: 1}).because == "waiting for a (broken)"


def test_a_long_list_is_cut_short() -> None:
    assert (
        step(*map(old, "abcdefgh"), pace=AT_ONCE).because == "moving a, b, c, d, e and 3 more to revision 2"
    )


targets = lists(
    builds(
        Target,
        key=sampled_from("abcdefgh"),
        on_goal=booleans(),
        verdict=sampled_from([HEALTHY, LATE, unhealthy("broken")]),
        since=one_of(none(), just(NOW - MINUTE), just(NOW)),
        group=integers(0, 2),
        held=sampled_from(["", "", "", "pinned"]),
    ),
    unique_by=lambda target: target.key,
)
paces = builds(
    Pace,
    at_once=one_of(none(), integers(1, 4)),
    failures=one_of(none(), integers(0, 3)),
    soak=sampled_from([timedelta(0), MINUTE / 2, 2 * MINUTE]),
    deadline=one_of(none(), sampled_from([MINUTE / 2, 2 * MINUTE])),
)


@given(targets, paces)
def test_no_step_puts_more_targets_on_the_way_than_the_pace_allows(those: list[Target], pace: Pace) -> None:
    taken = step(*those, pace=pace)

    moving = [key for key, where in taken.standing.items() if where is Standing.MOVING]
    if pace.at_once is not None and taken.move:
        assert len(moving) + len(taken.move) <= pace.at_once
    assert all(taken.standing[key] is Standing.WAITING for key in taken.move)
    groups = {target.key: target.group for target in those}
    assert len({groups[key] for key in taken.move}) <= 1
    assert taken.breached <= (not taken.move)


@given(targets, paces)
def test_a_rollout_whose_targets_become_well_comes_to_an_end(those: list[Target], pace: Pace) -> None:
    now, here = NOW, {target.key: target for target in those}
    for _ in range(100):
        taken = advance("revision 2", tuple(here.values()), pace, now)
        if taken.done:
            return
        for key in taken.move:
            here[key] = Target(key=key, on_goal=True, since=now, group=here[key].group)
        if not taken.move:
            here = {
                key: Target(
                    key=key, on_goal=one.on_goal, since=one.since or NOW, group=one.group, held=one.held
                )
                for key, one in here.items()
            }
        now += MINUTE
    raise AssertionError(taken.because)
