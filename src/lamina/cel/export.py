"""From values back to JSON: what an expression's answer is to somebody who does not speak CEL."""

from __future__ import annotations

import base64
from typing import Any

from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import INT_MAX
from lamina.cel.times import Duration, Timestamp
from lamina.cel.values import OMITTED, Optional, TypeValue, Value, type_of


def exported(value: Value, *, encode_bytes: bool = False) -> Any:
    """
    Return a value as JSON has it.

    A duration becomes Go's text for it (`1h30m0s`), a timestamp RFC 3339's,
    a missing optional null. Bytes are refused, or become base64. What `omit()`
    stands for is left out of lists and maps; alone it is nothing that can be written.
    """
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            if value > INT_MAX:
                raise EvaluationError(f"{int(value)} is too large for an integer")
            return int(value)
        case bytes():
            if encode_bytes:
                return base64.b64encode(value).decode("ascii")
            raise EvaluationError("bytes cannot be written as JSON: encode it explicitly")
        case list():
            return [exported(item, encode_bytes=encode_bytes) for item in value if item is not OMITTED]
        case dict():
            for key in value:
                if not isinstance(key, str):
                    raise EvaluationError(
                        f"a map with a key of type {type_of(key)} cannot be written as JSON"
                    )
            return {
                key: exported(item, encode_bytes=encode_bytes)
                for key, item in value.items()
                if item is not OMITTED
            }
        case Duration():
            return spelled(value)
        case Timestamp() | TypeValue():
            return str(value)
        case Optional():
            return exported(value.value, encode_bytes=encode_bytes) if value.present else None
    raise EvaluationError(f"a value of type {type_of(value)} cannot be written as JSON")


def spelled(value: Duration) -> str:
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
