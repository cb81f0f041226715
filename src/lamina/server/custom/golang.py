"""
What the values of an object are to a program in Go.

The real server is one, and its answers show it: integers have 64 bits, other
numbers are floats, and 1 is not the same value as 1.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from lamina.objects.printing import number

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_LARGEST_EXACT: Final = 2**53 - 1
_NEARLY: Final = 1e-9


def is_integer(value: Any) -> bool:
    """Say whether a value is a 64-bit integer; a larger one is a float there."""
    return type(value) is int and INT64_MIN <= value <= INT64_MAX


def type_of(value: Any) -> str:
    """Return the JSON schema type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list | tuple):
        return "array"
    return "integer" if is_integer(value) else "number"


def plain(value: float) -> str:
    """Return a number as %v shows it."""
    return str(value) if is_integer(value) else number(float(value))


def int64(value: float) -> int:
    """Return a float made a 64-bit integer: cut off, and the least one where it does not fit."""
    if math.isnan(value) or math.isinf(value):
        return INT64_MIN
    cut = math.trunc(value)
    return cut if INT64_MIN <= cut <= INT64_MAX else INT64_MIN


def is_whole(value: float) -> bool:
    """Say whether a float is taken for an integer: no fraction to speak of, and exact as a float."""
    value = float(value)
    if math.isnan(value) or not -_LARGEST_EXACT <= value <= _LARGEST_EXACT:
        return False
    cut = math.trunc(value)
    if value == cut:
        return True
    return value > 0 and cut > 0 and (value - cut) / (value + cut) < _NEARLY


def same(left: Any, right: Any) -> bool:
    """Say whether two JSON values are equal and of the same types: true is not 1, and 1.0 is not 1."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            key in right and same(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def ordered(value: Any) -> Any:
    """Return a value as messages show it: the fields of objects by name, whole floats without a point."""
    if isinstance(value, Mapping):
        return {key: ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [ordered(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < INT64_MAX:
        return int(value)
    return float(value) if type(value) is int and not is_integer(value) else value
