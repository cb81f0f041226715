"""Batches: targets of a later one wait until all of the earlier ones are settled."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.rollout.batch import Batch, Group, advance_batches
from lamina.core.rollout.pace import Pace
from lamina.core.rollout.step import Standing, Step, Target, advance, advance_by_group
from tests.unit.core.rollout.targets import (
    MINUTE,
    NOW,
    by_key,
    failing,
    healthy,
    held,
    moving,
    overdue,
    waiting,
)

ALL = Pace(at_once=None, failures=None, deadline=MINUTE)
ONE = Pace(at_once=1, failures=0, deadline=MINUTE)


def pool(*keys: str, pace: Pace = ALL) -> Batch:
    return Batch(groups=(Group(index=0, targets=keys),), pace=pace)


def ordered(*groups: Sequence[str], tolerated: int = 0, pace: Pace = ALL) -> Batch:
    made = (Group(index=place, targets=tuple(keys), tolerated=tolerated) for place, keys in enumerate(groups))
    return Batch(groups=tuple(made), pace=pace, ordered=True)


def step(batches: Sequence[Batch], *targets: Target) -> Step:
    return advance_batches("r2", batches, by_key(*targets), NOW)


def test_one_batch_in_any_order_is_a_rollout_by_its_pace() -> None:
    targets = [waiting("b"), waiting("a"), moving("c")]

    taken = step([pool("c", "b", "a", pace=Pace(at_once=2))], *targets)

    assert taken == advance("r2", [targets[1], targets[0], targets[2]], Pace(at_once=2), NOW)
    assert taken.move == ("a",)


def test_an_ordered_batch_is_a_rollout_by_group() -> None:
    taken = step([ordered("b", "a")], waiting("a"), waiting("b"))

    assert taken.move == ("b",)
    assert taken == advance_by_group("r2", [waiting("a", 1), waiting("b", 0)], ALL, {0: 0, 1: 0}, NOW)


def test_each_group_tolerates_its_own_failures() -> None:
    assert step([ordered("ab", "c", tolerated=1)], overdue("a"), healthy("b"), waiting("c")).move == ("c",)
    assert step([ordered("ab", "c", tolerated=1)], overdue("a"), overdue("b"), waiting("c")).breached


@pytest.mark.parametrize(
    ("first", "move"),
    [
        (waiting("a"), ("a",)),
        (moving("a"),  ()),
        (failing("a"), ()),
        (overdue("a"), ()),
        (held("a"),    ()),
        (healthy("a"), ("b", "c")),
    ],
)  # fmt: skip
def test_a_batch_waits_until_the_one_before_it_is_settled(first: Target, move: tuple[str, ...]) -> None:
    assert step([ordered("a"), pool("b", "c")], first, waiting("b"), waiting("c")).move == move


def test_a_batch_without_targets_is_settled() -> None:
    assert step([ordered(), pool("b")], waiting("b")).move == ("b",)


def test_a_third_batch_waits_for_both() -> None:
    batches = [pool("a"), pool("b"), pool("c")]

    assert step(batches, healthy("a"), moving("b"), waiting("c")).move == ()
    assert step(batches, healthy("a"), healthy("b"), waiting("c")).move == ("c",)
    assert step(batches, healthy("a"), healthy("b"), healthy("c")).done


def test_a_failure_in_an_early_batch_stops_the_later_ones() -> None:
    taken = step([ordered("a"), pool("b")], overdue("a"), waiting("b"))

    assert taken.breached
    assert taken.move == ()
    assert taken.because == "1 failed in group 0, 0 tolerated: a (not ready)"


def test_standing_and_time_are_those_of_all_batches() -> None:
    early, late = moving("a", since=NOW - MINUTE / 4), moving("b", since=NOW - MINUTE / 2)

    taken = step([ordered("a"), pool("b", "c")], early, late, waiting("c"))

    assert taken.standing == {"a": Standing.MOVING, "b": Standing.MOVING, "c": Standing.WAITING}
    assert taken.requeue_after == MINUTE / 2


def test_a_pace_counts_only_the_targets_of_its_batch() -> None:
    taken = step(
        [ordered("ab"), pool("c", "d", pace=ONE)], healthy("a"), healthy("b"), waiting("c"), waiting("d")
    )

    assert taken.move == ("c",)


KEYS = "abcdef"
MADE = st.sampled_from([waiting, healthy, moving, failing, overdue, held])
TARGETS = st.lists(MADE, min_size=len(KEYS), max_size=len(KEYS)).map(
    lambda made: {key: make(key) for key, make in zip(KEYS, made, strict=True)}
)
PACES = st.builds(
    Pace,
    at_once=st.sampled_from([None, 1, 2]),
    failures=st.sampled_from([None, 0, 1]),
    deadline=st.sampled_from([None, MINUTE]),
    soak=st.sampled_from([timedelta(0), MINUTE]),
)


@given(TARGETS, PACES, st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_only_one_batch_moves_and_all_before_it_are_settled(
    targets: dict[str, Target], pace: Pace, cut: int, other: int, in_order: bool
) -> None:
    first, last = sorted((cut, other))
    parts = [KEYS[:first], KEYS[first:last], KEYS[last:]]
    batches = [ordered(*part, pace=pace) if in_order and part else pool(*part, pace=pace) for part in parts]

    taken = advance_batches("r2", batches, targets, NOW)

    assert set(taken.standing) == set(KEYS)
    leading = [place for place, part in enumerate(parts) if set(part) & set(taken.move)]
    assert len(leading) <= 1
    for place in leading:
        earlier = "".join(parts[:place])
        assert all(taken.standing[key] is Standing.SETTLED for key in earlier)
    assert all(taken.standing[key] is Standing.WAITING for key in taken.move)
    if taken.done:
        assert Standing.WAITING not in taken.standing.values()


@given(st.lists(st.sampled_from(KEYS), unique=True), PACES)
def test_a_rollout_in_batches_reaches_every_target_that_becomes_healthy(
    mandatory: list[str], pace: Pace
) -> None:
    others = [key for key in KEYS if key not in mandatory]
    batches = [ordered(*mandatory, pace=pace), pool(*others, pace=pace)]
    here, now, order = {key: waiting(key) for key in KEYS}, NOW, list[str]()
    for _ in range(60):
        taken = advance_batches("r2", batches, here, now)
        if taken.done:
            break
        order += taken.move
        here |= {key: healthy(key, since=now) for key in taken.move}
        now += MINUTE

    assert taken.done
    assert sorted(order) == list(KEYS)
    assert order[: len(mandatory)] == mandatory
