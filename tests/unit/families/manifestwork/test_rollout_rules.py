"""A strategy means batches and failure budgets: which clusters of a placement move, and when too many failed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.health.probe import HEALTHY, unhealthy, unknown
from lamina.core.rollout.batch import advance_batches
from lamina.core.rollout.failure_budget import Failures, count_failures
from lamina.core.rollout.step import Step, Target
from lamina.families.manifestwork.hub.placement_progress import target
from lamina.families.manifestwork.hub.strategy import Group, Strategy, batches, budgets
from lamina.families.manifestwork.hub.work_status import RolloutState, WorkStatus
from tests.unit.families.manifestwork.reference import Known, reference

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TO_APPLY, PROGRESSING, FAILED, SUCCEEDED = RolloutState
_VERDICTS = {
    TO_APPLY: unknown("not applied"),
    PROGRESSING: unknown("progressing"),
    FAILED: unhealthy("degraded"),
    SUCCEEDED: HEALTHY,
}


def groups(*sizes: int, names: tuple[str, ...] = ()) -> tuple[Group, ...]:
    """Groups of so many clusters each: a1, a2, … in the first, b1, b2, … in the second."""
    return tuple(
        Group(
            index=index,
            name=names[index] if index < len(names) else "",
            clusters=tuple(f"{'abcdefgh'[index]}{number}" for number in range(1, size + 1)),
        )
        for index, size in enumerate(sizes)
    )


def targets(how: Strategy, those: tuple[Group, ...], known: Known) -> dict[str, Target]:
    made = {}
    for name in (one for group in those for one in group.clusters):
        if name in known:
            state, since = known[name]
            made[name] = target(how, name, WorkStatus(state, since, _VERDICTS[state]))
        else:
            made[name] = Target(key=name, on_goal=False)
    return made


def step(how: Strategy, those: tuple[Group, ...], known: Known) -> Step:
    return advance_batches("r2", batches(how, those), targets(how, those, known), NOW)


def moved(how: Strategy, those: tuple[Group, ...], **known: Any) -> set[str]:
    """Return the clusters that move; a state without a time began now."""
    filled = {name: value if isinstance(value, tuple) else (value, NOW) for name, value in known.items()}
    return set(step(how, those, filled).move) - set(filled)


def failures(how: Strategy, those: tuple[Group, ...], **known: Any) -> Failures:
    filled = {name: value if isinstance(value, tuple) else (value, NOW) for name, value in known.items()}
    return count_failures(
        tuple(budgets(how, those)),
        targets(how, those, filled),
        step(how, those, filled).standing,
        noun="clusters",
        deadline=how.shown_deadline,
        before_deadline=how.type != "All",
    )


LATE_FAIL = (FAILED, NOW - 10 * SECOND)
LATE = (PROGRESSING, NOW - 10 * SECOND)
OVER = (SUCCEEDED, NOW - 10 * SECOND)


def test_all_go_at_once_and_no_failure_stops_the_others() -> None:
    how = Strategy(type="All", deadline=5 * SECOND)

    assert moved(how, groups(3)) == {"a1", "a2", "a3"}
    assert moved(how, groups(3), a1=LATE_FAIL, a2=LATE) == {"a3"}


def test_progressive_moves_clusters_by_name_up_to_its_concurrency() -> None:
    how = Strategy(type="Progressive", max_concurrency=2)
    ten = (Group(index=0, clusters=("cluster1", "cluster10", "cluster2", "cluster3")),)

    assert moved(how, ten) == {"cluster1", "cluster10"}
    assert moved(how, groups(4), a1=SUCCEEDED, a2=PROGRESSING) == {"a3"}
    assert moved(how, groups(4), a1=PROGRESSING, a2=PROGRESSING) == set()


def test_a_cluster_that_fails_before_its_deadline_or_soaks_counts_as_moving() -> None:
    how = Strategy(
        type="Progressive", max_concurrency=1, max_failures=3, deadline=5 * SECOND, soak=5 * SECOND
    )

    assert moved(how, groups(3), a1=FAILED) == set()
    assert moved(how, groups(3), a1=SUCCEEDED) == set()
    assert moved(how, groups(3), a1=OVER) == {"a2"}
    assert moved(how, groups(3), a1=LATE_FAIL) == {"a2"}


def test_without_a_deadline_a_tolerated_failure_counts_as_moving_for_ever() -> None:
    how = Strategy(type="Progressive", max_concurrency=1, max_failures=3)

    assert moved(how, groups(3), a1=LATE_FAIL) == set()


def test_a_deadline_is_over_at_its_very_end() -> None:
    how = Strategy(type="Progressive", max_concurrency=1, max_failures=1, deadline=5 * SECOND)

    assert moved(how, groups(2), a1=(PROGRESSING, NOW - 5 * SECOND)) == {"a2"}
    early = step(how, groups(2), {"a1": (PROGRESSING, NOW - 4 * SECOND)})
    assert (early.move, early.requeue_after) == ((), SECOND)


def test_a_deadline_of_zero_applies_but_not_to_works_of_other_controllers() -> None:
    how = Strategy(type="Progressive", max_failures=9, deadline=timedelta(0))

    assert failures(how, groups(3), a1=PROGRESSING).failed == 1
    assert failures(how, groups(3), a1=(TO_APPLY, None)).failed == 0


def test_a_group_waits_for_the_one_before_it_and_overdue_clusters_are_not_moving() -> None:
    """The original subtracts the timed out from those in flight, and starts the next group too early."""
    how = Strategy(type="ProgressivePerGroup", max_failures=2, deadline=5 * SECOND)

    assert moved(how, groups(3, 3)) == {"a1", "a2", "a3"}
    assert moved(how, groups(3, 3), a1=LATE, a2=LATE, a3=PROGRESSING) == set()
    assert moved(how, groups(3, 3), a1=LATE, a2=LATE, a3=SUCCEEDED) == {"b1", "b2", "b3"}
    assert moved(how, groups(3, 3), a1=LATE, a2=LATE, a3=LATE) == set()


def test_a_tolerated_failure_in_a_later_group_does_not_hold_up_the_next() -> None:
    """The original has not counted it yet when it checks the group before, and never goes on."""
    how = Strategy(type="ProgressivePerGroup", max_failures=1)

    assert moved(how, groups(1, 2, 1), a1=SUCCEEDED, b1=FAILED, b2=SUCCEEDED) == {"c1"}


def test_a_cluster_that_joins_an_earlier_group_moves_first() -> None:
    how = Strategy(type="ProgressivePerGroup")

    assert moved(how, groups(2, 1, 1), a1=SUCCEEDED, b1=SUCCEEDED) == {"a2"}


def test_mandatory_groups_go_first_and_tolerate_nothing() -> None:
    by_name = Strategy(
        type="Progressive", mandatory_names=frozenset({"canary"}), max_failures="100%", deadline=5 * SECOND
    )
    by_index = Strategy(
        type="ProgressivePerGroup",
        mandatory_indexes=frozenset({1}),
        max_failures="100%",
        deadline=5 * SECOND,
    )
    those = groups(2, 1, names=("", "canary"))

    for how in (by_name, by_index):
        assert moved(how, those) == {"b1"}
        assert moved(how, those, b1=PROGRESSING) == set()
        assert moved(how, those, b1=LATE) == set()
        assert moved(how, those, b1=FAILED) == set()
        assert moved(how, those, b1=SUCCEEDED) == {"a1", "a2"}


def test_concurrency_is_a_share_of_those_that_are_not_mandatory() -> None:
    how = Strategy(type="Progressive", mandatory_indexes=frozenset({0}), max_concurrency="50%")

    assert moved(how, groups(4, 4), a1=SUCCEEDED, a2=SUCCEEDED, a3=SUCCEEDED, a4=SUCCEEDED) == {"b1", "b2"}


@pytest.mark.parametrize(
    ("type", "tolerated", "late", "overdue"),
    [
        ("Progressive",         0,     0, False),
        ("Progressive",         0,     1, True),
        ("Progressive",         1,     1, False),
        ("Progressive",         1,     2, True),
        ("Progressive",         "50%", 2, False),
        ("Progressive",         "50%", 3, True),
        ("All",                 1,     1, False),
        ("All",                 1,     2, True),
        ("All",                 10,    4, False),
        ("ProgressivePerGroup", 0,     1, True),
        ("ProgressivePerGroup", 1,     1, False),
    ],
)  # fmt: skip
def test_more_than_are_tolerated_means_more(type: Any, tolerated: Any, late: int, overdue: bool) -> None:
    how = Strategy(type=type, max_failures=tolerated, deadline=5 * SECOND, shown_deadline="5s")
    known = {f"a{number}": LATE for number in range(1, late + 1)}

    assert bool(failures(how, groups(4), **known).overdue) is overdue


def test_failures_of_clusters_that_the_pace_has_not_reached_count() -> None:
    """Two clusters use up the concurrency; the third one was moved by another controller and is overdue."""
    how = Strategy(type="Progressive", max_concurrency=2, deadline=5 * SECOND, shown_deadline="5s")

    found = failures(how, groups(3), a1=PROGRESSING, a2=PROGRESSING, a3=LATE)

    assert found.overdue == "1 of 3 clusters not healthy within 5s, 0 tolerated: a3 (progressing)"


def test_each_group_has_a_budget_up_to_the_one_that_the_rollout_has_reached() -> None:
    how = Strategy(type="ProgressivePerGroup", max_failures=1, deadline=5 * SECOND, shown_deadline="5s")

    assert failures(how, groups(2, 2), a1=LATE, a2=SUCCEEDED, b1=LATE).overdue == ""
    found = failures(how, groups(2, 2), a1=LATE, a2=SUCCEEDED, b1=LATE, b2=LATE)
    assert (
        found.overdue
        == "2 of 2 clusters of group 1 not healthy within 5s, 1 tolerated: b1 (progressing), b2 (progressing)"
    )
    assert failures(how, groups(2, 2), a1=SUCCEEDED, b1=LATE, b2=LATE).overdue == ""


def test_a_mandatory_group_tolerates_no_failure() -> None:
    how = Strategy(
        type="Progressive", mandatory_indexes=frozenset({0}), max_failures="100%", deadline=5 * SECOND
    )

    assert "of mandatory group 0" in failures(how, groups(2, 2), a1=LATE).overdue
    assert failures(how, groups(2, 2), a1=SUCCEEDED, a2=SUCCEEDED, b1=LATE).overdue == ""


def test_failures_that_still_have_time_stop_a_rollout_but_are_not_overdue_and_all_has_none() -> None:
    how = Strategy(type="Progressive", max_failures=1, deadline=50 * SECOND, shown_deadline="50s")

    found = failures(how, groups(3), a1=FAILED, a2=FAILED)
    assert (found.overdue, found.failing) == (
        "",
        "2 of 3 clusters failed, 1 tolerated: a1 (degraded), a2 (degraded)",
    )
    assert failures(how, groups(3), a1=FAILED).failing == ""
    assert failures(Strategy(type="All"), groups(3), a1=FAILED, a2=FAILED).failing == ""


KNOWN = st.dictionaries(
    st.sampled_from(["a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1", "c2"]),
    st.tuples(
        st.sampled_from(list(RolloutState)),
        st.sampled_from([None, NOW, NOW - 3 * SECOND, NOW - 10 * SECOND, NOW + 3 * SECOND]),
    ),
)
STRATEGIES = st.builds(
    Strategy,
    type=st.sampled_from(["All", "Progressive", "ProgressivePerGroup"]),
    soak=st.sampled_from([timedelta(0), 5 * SECOND]),
    deadline=st.sampled_from([None, timedelta(0), 5 * SECOND]),
    max_failures=st.sampled_from([0, 1, 2, 20, "34%", "100%"]),
    max_concurrency=st.sampled_from([None, 1, 2, "30%", 50]),
    mandatory_names=st.sampled_from([frozenset(), frozenset({"canary"})]),
    mandatory_indexes=st.sampled_from([frozenset(), frozenset({0}), frozenset({0, 2})]),
)


@given(
    how=STRATEGIES, sizes=st.tuples(*[st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)]), known=KNOWN
)
@settings(max_examples=400)
def test_the_clusters_that_move_are_those_of_the_reference(
    how: Strategy, sizes: tuple[int, ...], known: Known
) -> None:
    if how.type == "All":
        how = Strategy(type="All", deadline=how.deadline)
    those = groups(*sizes, names=("", "canary"))
    members = {name for group in those for name in group.clusters}
    here = {name: value for name, value in known.items() if name in members}
    if how.type != "ProgressivePerGroup" and (how.mandatory_names or how.mandatory_indexes):
        # A work that another controller created in a mandatory group counts as moving.
        here = {name: value for name, value in here.items() if value[0] is not TO_APPLY}

    expected = {name for name, state in reference(how, those, here, NOW).to_rollout.items() if state == "new"}

    assert set(step(how, those, here).move) - set(here) == expected - set(here)
