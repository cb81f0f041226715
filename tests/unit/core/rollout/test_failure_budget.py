"""Failure budgets: how many of some targets may fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.rollout.failure_budget import FailureBudget, Failures, count_failures
from lamina.core.rollout.pace import Pace
from lamina.core.rollout.step import Standing, Target, advance
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


def count(
    budgets: list[FailureBudget] | FailureBudget, *targets: Target, before_deadline: bool = True
) -> Failures:
    pace = Pace(at_once=None, failures=None, deadline=MINUTE)
    return count_failures(
        budgets if isinstance(budgets, list) else [budgets],
        by_key(*targets),
        advance("r2", targets, pace, NOW).standing,
        noun="pods",
        deadline="1m",
        before_deadline=before_deadline,
    )


def budget(keys: str, limit: int = 0, scope: str = "", *, ordered: bool = False) -> FailureBudget:
    return FailureBudget(targets=tuple(keys), limit=limit, scope=scope, ordered=ordered)


@pytest.mark.parametrize(
    ("limit", "late", "is_exceeded"),
    [(0, 0, False), (0, 1, True), (1, 1, False), (1, 2, True), (3, 3, False), (3, 4, True), (9, 4, False)],
)
def test_more_than_are_tolerated_means_more(limit: int, late: int, is_exceeded: bool) -> None:
    targets = [overdue(key) if place < late else healthy(key) for place, key in enumerate("abcd")]

    found = count(budget("abcd", limit), *targets)

    assert bool(found.overdue) is is_exceeded
    assert found.failed == late
    assert found.exceeding == (tuple("abcd"[:late]) if is_exceeded else ())
    assert found.tolerated == (limit if is_exceeded else 0)


@pytest.mark.parametrize(
    ("target", "is_overdue", "is_failing"),
    [
        (healthy("a"),                             False, False),
        (waiting("a"),                             False, False),
        (held("a"),                                False, False),
        (moving("a"),                              False, False),
        (failing("a"),                             False, True),
        (overdue("a"),                             True,  True),
        (failing("a", since=NOW - 2 * MINUTE),     True,  True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before_deadline", [True, False])
def test_which_targets_have_failed(
    target: Target, is_overdue: bool, is_failing: bool, before_deadline: bool
) -> None:
    found = count(budget("a"), target, before_deadline=before_deadline)

    assert bool(found.overdue) is is_overdue
    assert bool(found.failing) is (is_failing and before_deadline)


def test_a_message_has_the_number_the_scope_the_limit_and_the_first_targets() -> None:
    late = [overdue(key) for key in "abcdefgh"]

    found = count(budget("abcdefgh", 1, " of group canary"), *late)

    assert found.overdue == (
        "8 of 8 pods of group canary not healthy within 1m, 1 tolerated: "
        "a (not ready), b (not ready), c (not ready), d (not ready), e (not ready) and 3 more"
    )
    assert found.failing == found.overdue.replace("not healthy within 1m", "failed")


def test_targets_that_the_pace_has_not_reached_are_counted() -> None:
    pace = Pace(at_once=1, failures=None, deadline=MINUTE)
    targets = [moving("a"), overdue("z")]
    standing = advance("r2", targets, pace, NOW).standing

    found = count_failures(
        [budget("az")], by_key(*targets), standing, noun="pods", deadline="1m", before_deadline=True
    )

    assert found.exceeding == ("z",)


def test_of_several_exceeded_budgets_the_first_counts() -> None:
    found = count([budget("ab", 1), budget("cd", 0, " of c"), budget("ef", 0, " of e")], *map(overdue, "ace"), *map(healthy, "bdf"))  # fmt: skip

    assert found.exceeding == ("c",)
    assert " of c " in found.overdue
    assert found.failed == 3


def test_targets_may_have_several_budgets() -> None:
    found = count([budget("a", 1), budget("ab", 1)], overdue("a"), overdue("b"))

    assert found.exceeding == ("a", "b")


@pytest.mark.parametrize(
    ("first", "reached"),
    [
        (waiting("a"), False),
        (moving("a"),  False),
        (healthy("a"), True),
        (failing("a"), True),
        (overdue("a"), True),
        (held("a"),    True),
    ],
)  # fmt: skip
def test_ordered_budgets_apply_up_to_the_one_that_the_rollout_has_reached(
    first: Target, reached: bool
) -> None:
    found = count([budget("a", 9, ordered=True), budget("b", ordered=True)], first, overdue("b"))

    assert bool(found.overdue) is reached


def test_the_budget_that_is_reached_applies_while_its_targets_move() -> None:
    found = count(
        [budget("ab", ordered=True), budget("c", ordered=True)], overdue("a"), moving("b"), waiting("c")
    )

    assert found.exceeding == ("a",)


def test_budgets_that_are_not_ordered_all_apply() -> None:
    assert count([budget("a", 9), budget("b")], waiting("a"), overdue("b")).exceeding == ("b",)


def test_without_budgets_nothing_is_exceeded() -> None:
    assert count([], overdue("a")) == Failures(failed=1)


TARGETS = st.lists(
    st.tuples(
        st.sampled_from("abcdefgh"), st.sampled_from([waiting, healthy, moving, failing, overdue, held])
    ),
    unique_by=lambda pair: pair[0],
).map(lambda pairs: [make(key) for key, make in pairs])


@given(TARGETS, st.integers(0, 5))
def test_a_budget_is_exceeded_as_the_pace_is(targets: list[Target], limit: int) -> None:
    """Where one budget has all targets, it stops where a pace with as many failures does."""
    keys = "".join(one.key for one in targets)

    found = count(budget(keys, limit), *targets)
    taken = advance("r2", targets, Pace(at_once=None, failures=limit, deadline=MINUTE), NOW)

    assert bool(found.failing) is taken.breached
    assert not found.overdue or found.failing
    assert found.failed == list(taken.standing.values()).count(Standing.FAILED)
    assert len(found.exceeding) > limit or not found.exceeding


@given(TARGETS, st.integers(0, 4), st.integers(0, 3))
def test_a_larger_budget_is_exceeded_less(targets: list[Target], limit: int, more: int) -> None:
    keys = "".join(one.key for one in targets)

    small, large = count(budget(keys, limit), *targets), count(budget(keys, limit + more), *targets)

    assert bool(small.overdue) >= bool(large.overdue)
    assert bool(small.failing) >= bool(large.failing)
