"""Numbers and percentages of a total, in exact arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.rollout.pace import AT_ONCE, Pace, Rounding, amount

TOTALS = st.integers(0, 10_000)


@given(percent=st.integers(0, 300), total=TOTALS)
def test_a_percentage_is_rounded_by_less_than_one(percent: int, total: int) -> None:
    exact = Fraction(percent * total, 100)
    up, down = (amount(f"{percent}%", total, rounding, field="x") for rounding in Rounding)

    assert down <= exact <= up
    assert up - down == (exact.denominator != 1)


@given(percent=st.integers(0, 100), total=TOTALS)
def test_a_percentage_and_the_rest_of_it_add_up_to_the_total(percent: int, total: int) -> None:
    up = amount(f"{percent}%", total, Rounding.UP, field="x")

    assert up + amount(f"{100 - percent}%", total, Rounding.DOWN, field="x") == total


@given(one=st.integers(0, 200), more=st.integers(0, 100), total=TOTALS, rounding=st.sampled_from(Rounding))
def test_a_larger_percentage_is_never_less(one: int, more: int, total: int, rounding: Rounding) -> None:
    first, second = (amount(f"{share}%", total, rounding, field="x") for share in (one, one + more))

    assert first <= second


@given(number=st.integers(-5, 10_000), total=TOTALS, rounding=st.sampled_from(Rounding))
def test_a_number_is_what_it_is_whatever_the_total(number: int, total: int, rounding: Rounding) -> None:
    assert amount(number, total, rounding, field="x") == number


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize("total", [0, 1, 3, 100])
def test_none_and_all_of_a_total_are_exact(total: int, rounding: Rounding) -> None:
    assert amount("0%", total, rounding, field="x") == 0
    assert amount("100%", total, rounding, field="x") == total


def test_a_pace_moves_one_target_and_tolerates_no_failure_by_default() -> None:
    assert (Pace().at_once, Pace().failures, Pace().deadline) == (1, 0, None)
    assert (AT_ONCE.at_once, AT_ONCE.failures) == (None, None)
