"""
What generated code calls.

Whatever it is not sure of it leaves: `leave` raises Unsure, and the steps find
out what the answer is. So nothing here has to say what went wrong.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from lamina.cel import operators
from lamina.cel.errors import CostExceeded, EvaluationError
from lamina.cel.evaluate.cost import EXCEEDED
from lamina.cel.evaluate.steps import with_entry
from lamina.cel.numbers import UInt
from lamina.cel.times import Duration, Timestamp
from lamina.cel.values import NONE, Optional, Value, equal


class Unsure(Exception):
    """The generated code does not know; no other meaning."""


_UNSURE: Final = Unsure()
MISSING: Final = object()
"""What an optional without a value is, as long as nobody wants it as one."""


def leave() -> NoReturn:
    raise _UNSURE


def exceed() -> NoReturn:
    raise CostExceeded(EXCEEDED)


def unwrapped(value: Value) -> Value:
    """Return what is in an optional, or MISSING."""
    if type(value) is Optional:
        return value.value if value.present else MISSING
    raise _UNSURE


def wrapped(value: Value) -> Optional:
    """Return an optional of what may be MISSING."""
    return NONE if value is MISSING else Optional(True, value)


def pairs(value: Value) -> Any:
    """Return the items of a list with their places, or the entries of a map."""
    if type(value) is list:
        return enumerate(value)
    if type(value) is dict:
        return value.items()
    raise _UNSURE


def list_of(*items: tuple[bool, Value]) -> list[Any]:
    """Return a list of which some items are optional."""
    made: list[Any] = []
    for optional, item in items:
        if not optional:
            made.append(item)
        elif type(item) is not Optional:
            raise _UNSURE
        elif item.present:
            made.append(item.value)
    return made


def map_of(strict: bool, *entries: tuple[bool, Value, Value]) -> dict[Any, Any]:
    """Return a map of which some entries are optional."""
    made: dict[Any, Any] = {}
    for optional, key, item in entries:
        if optional:
            if type(item) is not Optional:
                raise _UNSURE
            if not item.present:
                continue
            item = item.value
        made = with_entry(made, key, item, strict=strict)
    return made


def inserted(made: dict[Any, Any], key: Value, value: Value) -> dict[Any, Any]:
    """Put an entry with a new key into a map that is being made."""
    if type(made) is dict and type(key) is str:
        if key in made:
            raise _UNSURE
        made[key] = value
        return made
    return operators.insert(made, key, value)


HELPERS: Final[dict[str, Any]] = {
    "leave": leave,
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
"""The names generated code may use."""
