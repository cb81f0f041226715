"""Who of a placement's clusters moves now, and when too many have failed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.probe import WELL, unknown, unwell
from lamina.core.rollout import Step, Target
from lamina.families.manifestwork.march import Toll, march, toll
from lamina.families.manifestwork.progress import target
from lamina.families.manifestwork.state import State, Where
from lamina.families.manifestwork.strategy import Group, Strategy
from tests.unit.families.manifestwork.reference import Known, reference

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TO_APPLY, PROGRESSING, FAILED, SUCCEEDED = State
_VERDICTS = {
    TO_APPLY: unknown("not applied"),
    PROGRESSING: unknown("progressing"),
    FAILED: unwell("degraded"),
    SUCCEEDED: WELL,
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
            made[name] = target(how, name, Where(state, since, _VERDICTS[state]))
        else:
            made[name] = Target(key=name, on_goal=False)
    return made


def step(how: Strategy, those: tuple[Group, ...], known: Known) -> Step:
    return march("r2", how, those, targets(how, those, known), NOW)


def moved(how: Strategy, those: tuple[Group, ...], **known: Any) -> set[str]:
    """Return who is newly rolled out to; a state alone began now."""
    filled = {name: value if isinstance(value, tuple) else (value, NOW) for name, value in known.items()}
    return set(step(how, those, filled).move) - set(filled)


def cost(how: Strategy, those: tuple[Group, ...], **known: Any) -> Toll:
    filled = {name: value if isinstance(value, tuple) else (value, NOW) for name, value in known.items()}
    all_targets = targets(how, those, filled)
    return toll(how, those, all_targets, march("r2", how, those, all_targets, NOW))


LATE_FAIL = (FAILED, NOW - 10 * SECOND)
LATE = (PROGRESSING, NOW - 10 * SECOND)
OVER = (SUCCEEDED, NOW - 10 * SECOND)


def test_all_go_at_once_and_no_failure_stops_the_others() -> None:
    how = Strategy(manner="All", deadline=5 * SECOND)

    assert moved(how, groups(3)) == {"a1", "a2", "a3"}
    assert moved(how, groups(3), a1=LATE_FAIL, a2=LATE) == {"a3"}


def test_progressive_fills_the_room_in_the_order_of_names() -> None:
    how = Strategy(manner="Progressive", max_concurrency=2)
    ten = (Group(index=0, clusters=("cluster1", "cluster10", "cluster2", "cluster3")),)

    assert moved(how, ten) == {"cluster1", "cluster10"}
    assert moved(how, groups(4), a1=SUCCEEDED, a2=PROGRESSING) == {"a3"}
    assert moved(how, groups(4), a1=PROGRESSING, a2=PROGRESSING) == set()


def test_whoever_fails_within_its_time_and_whoever_soaks_keeps_its_place() -> None:
    how = Strategy(
        manner="Progressive", max_concurrency=1, max_failures=3, deadline=5 * SECOND, soak=5 * SECOND
    )

    assert moved(how, groups(3), a1=FAILED) == set()
    assert moved(how, groups(3), a1=SUCCEEDED) == set()
    assert moved(how, groups(3), a1=OVER) == {"a2"}
    assert moved(how, groups(3), a1=LATE_FAIL) == {"a2"}


def test_a_failure_that_is_allowed_still_blocks_for_ever_where_nobody_runs_out_of_time() -> None:
    how = Strategy(manner="Progressive", max_concurrency=1, max_failures=3)

    assert moved(how, groups(3), a1=LATE_FAIL) == set()


def test_a_deadline_is_over_at_its_very_end() -> None:
    how = Strategy(manner="Progressive", max_concurrency=1, max_failures=1, deadline=5 * SECOND)

    assert moved(how, groups(2), a1=(PROGRESSING, NOW - 5 * SECOND)) == {"a2"}
    early = step(how, groups(2), {"a1": (PROGRESSING, NOW - 4 * SECOND)})
    assert (early.move, early.look_again) == ((), SECOND)


def test_immediately_is_a_deadline_too_but_not_for_what_nobody_sent() -> None:
    how = Strategy(manner="Progressive", max_failures=9, deadline=timedelta(0))

    assert cost(how, groups(3), a1=PROGRESSING).late == 1
    assert cost(how, groups(3), a1=(TO_APPLY, None)).late == 0


def test_a_group_waits_for_the_one_before_it_and_two_timeouts_are_nobody_on_the_way() -> None:
    """The original subtracts the timed out from those in flight, and starts the next group too early."""
    how = Strategy(manner="ProgressivePerGroup", max_failures=2, deadline=5 * SECOND)

    assert moved(how, groups(3, 3)) == {"a1", "a2", "a3"}
    assert moved(how, groups(3, 3), a1=LATE, a2=LATE, a3=PROGRESSING) == set()
    assert moved(how, groups(3, 3), a1=LATE, a2=LATE, a3=SUCCEEDED) == {"b1", "b2", "b3"}
    assert moved(how, groups(3, 3), a1=LATE, a2=LATE, a3=LATE) == set()


def test_a_tolerated_failure_in_a_later_group_does_not_hold_up_the_next() -> None:
    """The original has not counted it yet when it checks the group before, and never goes on."""
    how = Strategy(manner="ProgressivePerGroup", max_failures=1)

    assert moved(how, groups(1, 2, 1), a1=SUCCEEDED, b1=FAILED, b2=SUCCEEDED) == {"c1"}


def test_whoever_joins_an_earlier_group_pulls_the_rollout_back() -> None:
    how = Strategy(manner="ProgressivePerGroup")

    assert moved(how, groups(2, 1, 1), a1=SUCCEEDED, b1=SUCCEEDED) == {"a2"}


def test_mandatory_groups_go_first_and_tolerate_nothing() -> None:
    by_name = Strategy(
        manner="Progressive", mandatory_names=frozenset({"canary"}), max_failures="100%", deadline=5 * SECOND
    )
    by_index = Strategy(
        manner="ProgressivePerGroup",
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
    how = Strategy(manner="Progressive", mandatory_indexes=frozenset({0}), max_concurrency="50%")

    assert moved(how, groups(4, 4), a1=SUCCEEDED, a2=SUCCEEDED, a3=SUCCEEDED, a4=SUCCEEDED) == {"b1", "b2"}


@pytest.mark.parametrize(
    ("manner", "failures", "late", "overdue"),
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
def test_more_than_are_tolerated_means_more(manner: Any, failures: Any, late: int, overdue: bool) -> None:
    how = Strategy(manner=manner, max_failures=failures, deadline=5 * SECOND, shown_deadline="5s")
    known = {f"a{number}": LATE for number in range(1, late + 1)}

    assert bool(cost(how, groups(4), **known).overdue) is overdue


def test_the_toll_counts_whom_the_pace_never_looked_at() -> None:
    """Two at the front of the alphabet fill the room; the third is as late as it would be anywhere."""
    how = Strategy(manner="Progressive", max_concurrency=2, deadline=5 * SECOND, shown_deadline="5s")

    found = cost(how, groups(3), a1=PROGRESSING, a2=PROGRESSING, a3=LATE)

    assert found.overdue == "1 of 3 clusters not well within 5s, 0 tolerated: a3 (progressing)"


def test_groups_pay_for_themselves_up_to_the_one_the_rollout_has_come_to() -> None:
    how = Strategy(manner="ProgressivePerGroup", max_failures=1, deadline=5 * SECOND, shown_deadline="5s")

    assert cost(how, groups(2, 2), a1=LATE, a2=SUCCEEDED, b1=LATE).overdue == ""
    found = cost(how, groups(2, 2), a1=LATE, a2=SUCCEEDED, b1=LATE, b2=LATE)
    assert (
        found.overdue
        == "2 of 2 clusters of group 1 not well within 5s, 1 tolerated: b1 (progressing), b2 (progressing)"
    )
    assert cost(how, groups(2, 2), a1=SUCCEEDED, b1=LATE, b2=LATE).overdue == ""


def test_a_mandatory_group_pays_for_one() -> None:
    how = Strategy(
        manner="Progressive", mandatory_indexes=frozenset({0}), max_failures="100%", deadline=5 * SECOND
    )

    assert "of mandatory group 0" in cost(how, groups(2, 2), a1=LATE).overdue
    assert cost(how, groups(2, 2), a1=SUCCEEDED, a2=SUCCEEDED, b1=LATE).overdue == ""


def test_failures_that_still_have_time_stop_a_rollout_but_are_not_overdue_and_all_has_none() -> None:
    how = Strategy(manner="Progressive", max_failures=1, deadline=50 * SECOND, shown_deadline="50s")

    found = cost(how, groups(3), a1=FAILED, a2=FAILED)
    assert (found.overdue, found.failing) == (
        "",
        "2 of 3 clusters failed, 1 tolerated: a1 (degraded), a2 (degraded)",
    )
    assert cost(how, groups(3), a1=FAILED).failing == ""
    assert cost(Strategy(manner="All"), groups(3), a1=FAILED, a2=FAILED).failing == ""


KNOWN = st.dictionaries(
    st.sampled_from(["a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1", "c2"]),
    st.tuples(
        st.sampled_from(list(State)),
        st.sampled_from([None, NOW, NOW - 3 * SECOND, NOW - 10 * SECOND, NOW + 3 * SECOND]),
    ),
)
STRATEGIES = st.builds(
    Strategy,
    manner=st.sampled_from(["All", "Progressive", "ProgressivePerGroup"]),
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
def test_who_moves_is_who_moves_by_the_letter(how: Strategy, sizes: tuple[int, ...], known: Known) -> None:
    if how.manner == "All":
        how = Strategy(manner="All", deadline=how.deadline)
    those = groups(*sizes, names=("", "canary"))
    members = {name for group in those for name in group.clusters}
    here = {name: value for name, value in known.items() if name in members}
    if how.manner != "ProgressivePerGroup" and (how.mandatory_names or how.mandatory_indexes):
        # What somebody else sent to a mandatory group is in flight from the first.
        here = {name: value for name, value in here.items() if value[0] is not TO_APPLY}

    expected = {name for name, state in reference(how, those, here, NOW).to_rollout.items() if state == "new"}

    assert set(step(how, those, here).move) - set(here) == expected - set(here)
