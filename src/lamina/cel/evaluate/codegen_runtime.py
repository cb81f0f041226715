"""
The functions that generated code calls.

In cases they do not handle they bail out, and the interpreter evaluates the
expression, with its errors.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from lamina.cel import operators
from lamina.cel.errors import CostExceeded, EvaluationError
from lamina.cel.evaluate.cost import EXCEEDED
from lamina.cel.evaluate.interpretables import with_entry
from lamina.cel.numbers import UInt
from lamina.cel.times import Duration, Timestamp
from lamina.cel.values import NONE, Optional, Value, equal


class BailOut(Exception):
    """Generated code does not handle this case."""


_BAIL_OUT: Final = BailOut()
MISSING: Final = object()
"""The value of an empty optional, until it is wrapped."""


def bail_out() -> NoReturn:
    raise _BAIL_OUT


def exceed() -> NoReturn:
    raise CostExceeded(EXCEEDED)


def unwrapped(value: Value) -> Value:
    """Return the value of an optional, or MISSING."""
    if type(value) is Optional:
        return value.value if value.present else MISSING
    raise _BAIL_OUT


def wrapped(value: Value) -> Optional:
    """Return an optional of a value that may be MISSING."""
    return NONE if value is MISSING else Optional(True, value)


def pairs(value: Value) -> Any:
    """Return the items of a list with their indexes, or the entries of a map."""
    if type(value) is list:
        return enumerate(value)
    if type(value) is dict:
        return value.items()
    raise _BAIL_OUT


def list_of(*items: tuple[bool, Value]) -> list[Any]:
    """Return a list with optional items."""
    made: list[Any] = []
    for optional, item in items:
        if not optional:
            made.append(item)
        elif type(item) is not Optional:
            raise _BAIL_OUT
        elif item.present:
            made.append(item.value)
    return made


def map_of(strict: bool, *entries: tuple[bool, Value, Value]) -> dict[Any, Any]:
    """Return a map with optional entries."""
    made: dict[Any, Any] = {}
    for optional, key, item in entries:
        if optional:
            if type(item) is not Optional:
                raise _BAIL_OUT
            if not item.present:
                continue
            item = item.value
        made = with_entry(made, key, item, strict=strict)
    return made


def inserted(made: dict[Any, Any], key: Value, value: Value) -> dict[Any, Any]:
    """Insert an entry with a new key into a map under construction."""
    if type(made) is dict and type(key) is str:
        if key in made:
            raise _BAIL_OUT
        made[key] = value
        return made
    return operators.insert(made, key, value)


HELPERS: Final[dict[str, Any]] = {
    "bail_out": bail_out,
    "exceed": exceed,
    "unwrapped": unwrapped,
    "wrapped": wrapped,
    "pairs": pairs,
    "list_of": list_of,
    "map_of": map_of,
    "inserted": inserted,
    "M": MISSING,
    "NONE": NONE,
    "Optional": Optional,
    "UInt": UInt,
    "Duration": Duration,
    "Timestamp": Timestamp,
    "SIZED": frozenset({str, list, dict, bytes}),
    "equal": equal,
    "not_equal": operators.not_equal,
    "add": operators.add,
    "subtract": operators.subtract,
    "multiply": operators.multiply,
    "divide": operators.divide,
    "modulo": operators.modulo,
    "negate": operators.negate,
    "less": operators.less,
    "less_equal": operators.less_equal,
    "greater": operators.greater,
    "greater_equal": operators.greater_equal,
    "is_in": operators.is_in,
    "index": operators.index,
    "optional_index": operators.optional_index,
    "EvaluationError": EvaluationError,
}
"""The names that generated code may use."""
