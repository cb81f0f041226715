"""The numbers and percentages of a pace."""

import pytest

from lamina.core.rollout.pace import Rounding, amount
from lamina.errors import SpecError


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        ("25%", 10, 3, 2),
        ("7%", 100, 7, 7),
        ("28%", 25, 7, 7),
        ("0%", 10, 0, 0),
        ("100%", 3, 3, 3),
        ("150%", 2, 3, 3),
    ],
)
def test_a_share_is_counted_exactly(value: int | str, total: int, up: int, down: int) -> None:
    assert amount(value, total, Rounding.UP, field="spec.x") == up
    assert amount(value, total, Rounding.DOWN, field="spec.x") == down


@pytest.mark.parametrize("value", ["few", "10", "-1%", "1.5%", "", "٣%", "9" * 5000 + "%", True])
def test_what_is_neither_a_number_nor_a_percentage_is_refused_by_name(value: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.maxFailures: expected a number or a percentage, got"):
        amount(value, 10, Rounding.UP, field="spec.maxFailures")
