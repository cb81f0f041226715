"""
Values as Go sees them.

kube-apiserver's responses depend on it: integers have 64 bits, other numbers are floats, and
1 is not equal to 1.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from lamina.objects.go_quote import format_float

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_LARGEST_EXACT: Final = 2**53 - 1
_NEARLY: Final = 1e-9


def is_integer(value: Any) -> bool:
    """Return whether a value is a 64-bit integer; a larger one is a float in Go."""
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
    """Return a number in Go's %v format."""
    return str(value) if is_integer(value) else format_float(float(value))


def int64(value: float) -> int:
    """Return a float converted to int64: truncated, and the minimum if it does not fit."""
    if math.isnan(value) or math.isinf(value):
        return INT64_MIN
    cut = math.trunc(value)
    return cut if INT64_MIN <= cut <= INT64_MAX else INT64_MIN


def is_whole(value: float) -> bool:
    """Return whether a float counts as an integer: no relevant fraction, and exact as a float."""
    value = float(value)
    if math.isnan(value) or not -_LARGEST_EXACT <= value <= _LARGEST_EXACT:
        return False
    cut = math.trunc(value)
    if value == cut:
        return True
    return value > 0 and cut > 0 and (value - cut) / (value + cut) < _NEARLY


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values have equal values and types: true is not 1, and 1.0 is not 1."""
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
    """Return a value as messages print it: fields sorted by name, whole floats without a decimal point."""
    if isinstance(value, Mapping):
        return {key: ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [ordered(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < INT64_MAX:
        return int(value)
    return float(value) if type(value) is int and not is_integer(value) else value
