"""The states that owners and targets share, and the tables that families decide them with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.state import MEANINGS, State, StateRule, decide, worst

RULES: tuple[StateRule[int], ...] = (
    StateRule(State.DEGRADED, "negative", lambda number: number < 0),
    StateRule(State.PENDING, "zero", lambda number: number == 0),
    StateRule(State.HEALTHY, "less than ten", lambda number: number < 10),
)


@pytest.mark.parametrize(
    ("number", "state"),
    [(-1, State.DEGRADED), (0, State.PENDING), (9, State.HEALTHY), (10, State.UNKNOWN)],
)
def test_the_first_rule_that_holds_decides(number: int, state: State) -> None:
    assert decide(RULES, number) is state


def test_every_state_has_a_meaning() -> None:
    assert set(MEANINGS) == set(State)


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ([],                                                    State.HEALTHY),
        ([State.HEALTHY, State.HEALTHY],                        State.HEALTHY),
        ([State.HEALTHY, State.PAUSED],                         State.PAUSED),
        ([State.HEALTHY, State.PENDING],                        State.PENDING),
        ([State.PENDING, State.PROGRESSING],                    State.PROGRESSING),
        ([State.PROGRESSING, State.UNKNOWN],                    State.UNKNOWN),
        ([State.PROGRESSING, State.DEGRADED, State.ABORTING],   State.DEGRADED),
        ([State.HEALTHY, State.ARCHIVED],                       State.HEALTHY),
    ],
)  # fmt: skip
def test_a_whole_is_in_the_worst_state_of_its_parts(states: list[State], whole: State) -> None:
    assert worst(states) is whole


def test_every_state_has_a_rank() -> None:
    assert {worst([state]) for state in State} == set(State)


# Any states

STATES = st.lists(st.sampled_from(State), max_size=6)


@given(states=STATES)
def test_the_state_of_a_whole_is_one_of_its_parts(states: list[State]) -> None:
    assert worst(states) in (states or [State.HEALTHY])


@given(one=STATES, other=STATES)
def test_parts_may_be_summed_up_in_any_grouping_and_order(one: list[State], other: list[State]) -> None:
    assert worst([*one, *other]) is worst([*other, *one])
    if one and other:
        assert worst([worst(one), worst(other)]) is worst([*one, *other])


@given(states=STATES)
def test_another_healthy_part_makes_nothing_better_or_worse(states: list[State]) -> None:
    if set(states) != {State.ARCHIVED}:
        assert worst([*states, State.HEALTHY]) is worst(states)


@given(number=st.integers(-20, 20))
def test_a_rule_behind_the_one_that_holds_is_not_evaluated(number: int) -> None:
    def refuse(number: int) -> bool:
        raise AssertionError("it was evaluated")

    rules = (
        StateRule[int](State.DEGRADED, "any", lambda number: True),
        StateRule[int](State.HEALTHY, "", refuse),
    )

    assert decide(rules, number) is State.DEGRADED


def test_without_rules_the_state_is_unknown() -> None:
    assert decide((), 1) is State.UNKNOWN


@pytest.mark.parametrize("state", list(State))
def test_a_state_is_written_as_its_name_with_a_capital(state: State) -> None:
    assert str(state) == state.name.capitalize()
    assert State(str(state)) is state


@pytest.mark.parametrize("state", list(State))
def test_a_meaning_is_a_phrase_without_a_full_stop(state: State) -> None:
    assert MEANINGS[state].strip(". ") == MEANINGS[state]
