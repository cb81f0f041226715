"""Equality, order and map keys, where Python's differ."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import UInt, shortest
from lamina.cel.operators import divide, index, modulo
from lamina.cel.values import NONE, BoolMap, Optional, compare, contains, equal, find
from lamina.objects.go_quote import format_float


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1,            1.0,           True),
        (1,            UInt(1),       True),
        (UInt(1),      1.0,           True),
        (True,         1,             False),
        (False,        0.0,           False),
        (None,         False,         False),
        ("1",          1,             False),
        ("a",          b"a",          False),
        (math.nan,     math.nan,      False),
        ([math.nan],   [math.nan],    False),
        ([1, [True]],  [1.0, [True]], True),
        ([True],       [1],           False),
        ({"a": 1},     {"a": 1.0},    True),
        ({"a": 1},     {"a": True},   False),
        (2**53 + 1,    float(2**53),  True),
        (2**63 - 1,    1e300,         False),
        (NONE,         NONE,          True),
        (Optional(True, 1), Optional(True, 1.0), True),
        (Optional(True, 1), NONE,     False),
    ],
)  # fmt: skip
def test_equality_looks_at_types_where_python_does_not(one: Any, two: Any, same: bool) -> None:
    assert equal(one, two) is same
    assert equal(two, one) is same


def test_numbers_are_ordered_across_their_types_and_nothing_else_is() -> None:
    assert compare(1, 1.5) == -1
    assert compare(UInt(2), 1) == 1
    assert compare(-1, UInt(0)) == -1
    assert compare(False, True) == -1
    for one, two in [(1, "a"), (True, 1), (None, None), ([1], [1])]:
        with pytest.raises(EvaluationError, match="no such overload"):
            compare(one, two)
    with pytest.raises(EvaluationError, match="NaN values cannot be ordered"):
        compare(math.nan, 1.0)


def test_a_map_tells_true_from_one() -> None:
    made = BoolMap.of(iter([(True, "yes"), (1, "one"), (False, "no")]))

    assert list(made) == [True, 1, False]
    assert find(made, True) == (True, "yes")
    assert find(made, 1.0) == (True, "one")
    assert find({1: "one"}, True) == (False, None)
    assert not contains({1: "one"}, True)
    assert not contains([1, 0], True)


def test_division_rounds_towards_zero_and_the_rest_has_the_sign_of_the_dividend() -> None:
    assert divide(-7, 2) == -3
    assert modulo(-7, 2) == -1
    assert modulo(7, -2) == 1
    with pytest.raises(EvaluationError, match="integer overflow"):
        divide(-(2**63), -1)
    with pytest.raises(EvaluationError, match="division by zero"):
        divide(1, 0)
    assert math.isnan(divide(0.0, 0.0))
    assert divide(-1.0, 0.0) == -math.inf


def test_only_a_list_and_a_map_have_an_index() -> None:
    assert index([1, 2], 1.0) == 2
    for value, key in [([1, 2], -1), ([1, 2], 2), ("abc", 0), ({}, "a")]:
        with pytest.raises(EvaluationError):
            index(value, key)


@pytest.mark.parametrize(
    ("value", "shown", "plain"),
    [
        (1e6,      "1e+06",        "1000000"),
        (1.0,      "1",            "1"),
        (1234567., "1.234567e+06", "1234567"),
        (123456.0, "123456",       "123456"),
        (0.0001,   "0.0001",       "0.0001"),
        (0.00001,  "1e-05",        "0.00001"),
        (-2.5,     "-2.5",         "-2.5"),
        (1e21,     "1e+21",        "1000000000000000000000"),
    ],
)  # fmt: skip
def test_doubles_are_printed_as_go_prints_them(value: float, shown: str, plain: str) -> None:
    assert format_float(value) == shown
    assert shortest(value) == plain
