"""Converts values of expressions to JSON."""

from __future__ import annotations

import base64
from typing import Any

from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import INT_MAX
from lamina.cel.times import Duration, Timestamp
from lamina.cel.values import OMITTED, Optional, TypeValue, Value, type_of


def to_json(value: Value, *, encode_bytes: bool = False, whole_uints: bool = False) -> Any:
    """
    Return a value as JSON.

    A duration is Go's text (`1h30m0s`), a timestamp RFC 3339, an empty optional
    null. Bytes are an error, or base64. A uint that no int can hold is an error, or with
    `whole_uints` a number. The value of `omit()` is left out of
    lists and maps; at the top it is an error.
    """
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            if value > INT_MAX and not whole_uints:
                raise EvaluationError(f"{int(value)} is too large for an integer")
            return int(value)
        case bytes():
            if encode_bytes:
                return base64.b64encode(value).decode("ascii")
            raise EvaluationError("bytes cannot be written as JSON: encode it explicitly")
        case list():
            return [
                to_json(item, encode_bytes=encode_bytes, whole_uints=whole_uints)
                for item in value
                if item is not OMITTED
            ]
        case dict():
            for key in value:
                if not isinstance(key, str):
                    raise EvaluationError(
                        f"a map with a key of type {type_of(key)} cannot be written as JSON"
                    )
            return {
                key: to_json(item, encode_bytes=encode_bytes, whole_uints=whole_uints)
                for key, item in value.items()
                if item is not OMITTED
            }
        case Duration():
            return duration_text(value)
        case Timestamp() | TypeValue():
            return str(value)
        case Optional():
            return (
                to_json(value.value, encode_bytes=encode_bytes, whole_uints=whole_uints)
                if value.present
                else None
            )
    raise EvaluationError(f"a value of type {type_of(value)} cannot be written as JSON")


def duration_text(value: Duration) -> str:
    """Return a duration as Go prints it: `1h30m0s`, `1.5s`, `2ms`."""
    length = abs(value.nanoseconds)
    sign = "-" if value.nanoseconds < 0 else ""
    if not length:
        return "0s"
    if length < 1_000_000_000:
        unit, size = ("ns", 1) if length < 1000 else ("µs", 1000) if length < 1_000_000 else ("ms", 1_000_000)
        return f"{sign}{_decimal(length, size)}{unit}"
    minutes, rest = divmod(length, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    shown = f"{_decimal(rest, 1_000_000_000)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{shown}"
    return f"{sign}{minutes}m{shown}" if minutes else f"{sign}{shown}"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1)}".rstrip("0").rstrip(".") if rest else str(whole)
