"""Whole rollouts, step after step, of targets that become healthy, fail or never answer."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from lamina.core.health.probe import HEALTHY, ProbeResult, unhealthy, unknown
from lamina.core.rollout.pace import Pace
from lamina.core.rollout.preview import steps
from lamina.core.rollout.step import Standing, Step, Target, advance, advance_by_group

START = datetime(2026, 1, 1, tzinfo=UTC)
TICK, DEADLINE = timedelta(seconds=10), timedelta(seconds=60)


class Workload(Struct, frozen=True, kw_only=True):
    """How a target behaves once it has moved: after how many ticks it is healthy, or that it never is."""

    name: str
    group: int = 0
    ticks: int | None = 0
    fails: bool = False
    held: bool = False


class Rollout:
    """Targets that are moved as a step says, on a clock that ticks."""

    def __init__(
        self, workloads: Sequence[Workload], step: Callable[[Sequence[Target], datetime], Step]
    ) -> None:
        self.workloads, self._step = {one.name: one for one in workloads}, step
        self.moved: dict[str, datetime] = {}
        self.order: list[tuple[str, ...]] = []
        self.now = START

    def targets(self) -> list[Target]:
        return [self._target(one) for one in self.workloads.values()]

    def _target(self, workload: Workload) -> Target:
        since = self.moved.get(workload.name)
        held = "pinned" if workload.held else ""
        if since is None:
            return Target(key=workload.name, on_goal=False, group=workload.group, held=held)
        return Target(
            key=workload.name,
            on_goal=True,
            group=workload.group,
            held=held,
            since=since,
            verdict=self._verdict(workload, since),
            failing=workload.fails,
        )

    def _verdict(self, workload: Workload, since: datetime) -> ProbeResult:
        if workload.fails:
            return unhealthy("it crashes")
        ready = workload.ticks is not None and self.now >= since + workload.ticks * TICK
        return HEALTHY if ready else unknown("not ready")

    def step(self) -> Step:
        """Make one step, and let one tick pass."""
        found = self._step(self.targets(), self.now)
        for name in found.move:
            assert name not in self.moved, "a target moves once"
            self.moved[name] = self.now
        if found.move:
            self.order.append(found.move)
        self.now += TICK
        return found

    def run(self, ticks: int = 120) -> Step:
        for _ in range(ticks):
            found = self.step()
        return found


def workloads(
    *, may_fail: bool = False, may_hang: bool = False, groups: int = 1
) -> st.SearchStrategy[list[Workload]]:
    ticks = st.integers(0, 4) | st.none() if may_hang else st.integers(0, 4)
    one = st.tuples(ticks, st.booleans() if may_fail else st.just(False), st.integers(0, groups - 1))
    return st.lists(one, max_size=7).map(
        lambda those: [
            Workload(name=f"t{number}", ticks=ticks, fails=fails, group=group)
            for number, (ticks, fails, group) in enumerate(those)
        ]
    )


PACES = st.builds(
    Pace,
    at_once=st.integers(1, 4) | st.none(),
    failures=st.integers(0, 3) | st.none(),
    soak=st.sampled_from((timedelta(0), TICK, 3 * TICK)),
    deadline=st.just(DEADLINE) | st.none(),
)


def in_order(pace: Pace) -> Callable[[Sequence[Target], datetime], Step]:
    return lambda targets, now: advance("two", targets, pace, now)


def by_group(pace: Pace) -> Callable[[Sequence[Target], datetime], Step]:
    return lambda targets, now: advance_by_group("two", targets, pace, {}, now)


# In order


@given(those=workloads(groups=3), pace=PACES)
def test_targets_that_become_healthy_are_all_moved_and_the_rollout_is_done(
    those: list[Workload], pace: Pace
) -> None:
    rollout = Rollout(those, in_order(pace))
    last = rollout.run()

    assert last.done and not last.breached
    assert set(rollout.moved) == set(rollout.workloads)
    assert set(last.standing.values()) <= {Standing.SETTLED}


@given(those=workloads(may_fail=True, may_hang=True, groups=2), pace=PACES)
def test_no_more_than_the_pace_are_on_the_way_and_one_that_failed_is_no_longer(
    those: list[Workload], pace: Pace
) -> None:
    rollout = Rollout(those, in_order(pace))
    for _ in range(40):
        found = rollout.step()
        moving = sum(one is Standing.MOVING for one in found.standing.values())
        if pace.at_once is not None:
            assert moving + len(found.move) <= pace.at_once


@given(those=workloads(may_fail=True, may_hang=True, groups=2), pace=PACES)
def test_nothing_moves_once_more_have_failed_than_are_tolerated(those: list[Workload], pace: Pace) -> None:
    rollout = Rollout(those, in_order(pace))
    for _ in range(40):
        found = rollout.step()
        failed = sum(one is Standing.FAILED for one in found.standing.values())
        if pace.failures is not None and failed > pace.failures:
            assert found.breached and not found.move and not found.done


@given(those=workloads(may_hang=True), pace=PACES)
def test_a_breach_is_final_where_no_target_recovers(those: list[Workload], pace: Pace) -> None:
    rollout = Rollout(those, in_order(pace))
    breached = False
    for _ in range(60):
        found = rollout.step()
        late = [one for one in those if one.ticks is None and found.standing[one.name] is Standing.FAILED]
        if pace.failures is not None and len(late) > pace.failures:
            breached = True
        assert not breached or found.breached


@given(those=workloads(groups=3), at_once=st.integers(1, 3) | st.none())
def test_a_group_starts_when_the_one_before_it_is_settled(those: list[Workload], at_once: int | None) -> None:
    rollout = Rollout(those, in_order(Pace(at_once=at_once)))
    for _ in range(80):
        targets = {one.key: one for one in rollout.targets()}
        for name in rollout.step().move:
            before = [one for one in targets.values() if one.group < targets[name].group]
            assert all(one.on_goal and one.verdict.is_healthy for one in before)


@given(those=workloads(may_fail=True, may_hang=True, groups=2), pace=PACES)
def test_every_step_has_a_reason_and_a_standing_for_each_target(those: list[Workload], pace: Pace) -> None:
    rollout = Rollout(those, in_order(pace))
    for _ in range(30):
        found = rollout.step()
        assert found.because
        assert found.standing.keys() == rollout.workloads.keys()
        assert sum(found.progress.values()) == len(those)


@given(those=workloads(may_hang=True), pace=PACES)
def test_a_step_that_waits_for_time_changes_at_the_time_it_names_and_not_before(
    those: list[Workload], pace: Pace
) -> None:
    rollout = Rollout(those, in_order(pace))
    for _ in range(6):
        rollout.step()
    targets, step = rollout.targets(), in_order(pace)
    found = step(targets, rollout.now)
    if found.requeue_after is None:
        assert step(targets, rollout.now + timedelta(days=1)).standing == found.standing
    else:
        assert found.requeue_after > timedelta(0)
        almost = rollout.now + found.requeue_after - timedelta(microseconds=1)
        assert step(targets, almost).standing == found.standing
        assert step(targets, rollout.now + found.requeue_after).standing != found.standing


@given(those=workloads(groups=2), at_once=st.integers(1, 4) | st.none())
def test_the_steps_of_a_preview_are_the_steps_of_a_rollout_whose_targets_are_healthy_at_once(
    those: list[Workload], at_once: int | None
) -> None:
    healthy = [Workload(name=one.name, group=one.group) for one in those]
    pace = Pace(at_once=at_once)
    rollout = Rollout(healthy, in_order(pace))
    expected = steps(rollout.targets(), lambda left: advance("two", left, pace, START))
    rollout.run(20)

    found = {name: number for number, names in enumerate(rollout.order, 1) for name in names}
    assert found == expected


# By group


@given(those=workloads(groups=3), pace=PACES)
def test_groups_move_as_a_whole_and_one_after_another(those: list[Workload], pace: Pace) -> None:
    rollout = Rollout(those, by_group(pace))
    last = rollout.run()

    assert last.done
    groups = [{rollout.workloads[name].group for name in names} for names in rollout.order]
    assert all(len(one) == 1 for one in groups)
    assert [min(one) for one in groups] == sorted({one.group for one in those})


@given(those=workloads(may_fail=True, groups=3))
def test_a_group_with_a_failure_is_the_last_one_that_moves(those: list[Workload]) -> None:
    rollout = Rollout(those, by_group(Pace(deadline=DEADLINE)))
    last = rollout.run(40)
    first = min((one.group for one in those if one.fails), default=None)

    if first is None:
        assert last.done
    else:
        assert last.breached
        assert {rollout.workloads[name].group for name in rollout.moved} <= set(range(first + 1))


@pytest.mark.parametrize("tolerated", [0, 1, 2])
def test_a_group_goes_on_where_its_failures_are_tolerated(tolerated: int) -> None:
    those = [Workload(name="a", fails=True), Workload(name="b", fails=True), Workload(name="c", group=1)]
    pace = Pace(deadline=DEADLINE)
    rollout = Rollout(those, lambda targets, now: advance_by_group("two", targets, pace, {0: tolerated}, now))
    rollout.run(10)

    assert ("c" in rollout.moved) is (tolerated == 2)


# Pinned targets


@given(those=workloads(), pinned=st.integers(0, 6), at_once=st.integers(1, 3))
def test_a_pinned_target_never_moves_and_no_other_waits_for_it(
    those: list[Workload], pinned: int, at_once: int
) -> None:
    mixed = [
        Workload(name=one.name, ticks=one.ticks, held=number == pinned) for number, one in enumerate(those)
    ]
    rollout = Rollout(mixed, in_order(Pace(at_once=at_once)))
    last = rollout.run()

    assert last.done
    assert set(rollout.moved) == {one.name for one in mixed if not one.held}
    assert all(last.standing[one.name] is Standing.HELD for one in mixed if one.held)
