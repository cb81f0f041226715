"""The optional types extension: `optional.of(x)`, `a.?b`, `.orValue(c)`."""

from __future__ import annotations

from typing import Any, Final

from lamina.cel import ast, operators
from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.macros import OPTIONALS as MACROS
from lamina.cel.times import Duration, Timestamp
from lamina.cel.types import DYN, optional_of
from lamina.cel.values import NONE, Optional, Value, shown

_YEAR_ONE: Final = -62135596800 * 1_000_000_000


def of(value: Value) -> Optional:
    return Optional(True, value)


def of_non_zero(value: Value) -> Optional:
    """Return an optional of a value that is not empty, zero, false or null."""
    return NONE if is_zero(value) else Optional(True, value)


def is_zero(value: Value) -> bool:
    if value is None or isinstance(value, (bool, int, float, str, bytes, list, dict)):
        return not value
    if isinstance(value, Duration):
        return value.nanoseconds == 0
    if isinstance(value, Timestamp):
        return value.nanoseconds == _YEAR_ONE
    return isinstance(value, Optional) and (not value.present or is_zero(value.value))


def none() -> Optional:
    return NONE


def value_of(value: Optional) -> Value:
    if value.present:
        return value.value
    raise EvaluationError("optional.none() dereference")


def has_value(value: Optional) -> bool:
    return value.present


def first(items: list[Any]) -> Optional:
    return Optional(True, items[0]) if items else NONE


def last(items: list[Any]) -> Optional:
    return Optional(True, items[-1]) if items else NONE


def unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if not isinstance(item, Optional):
            raise EvaluationError(f"value {shown(item)} is not optional")
    return [item.value for item in items if item.present]


_index = operators.optional_index

OPTIONALS: Final = Library(
    name="optionals",
    functions=to_functions(
        [
            function("optional.of", "optional_of", "V -> optional(V)", of),
            function("optional.ofNonZeroValue", "optional_ofNonZeroValue", "V -> optional(V)", of_non_zero),
            function("optional.none", "optional_none", "-> optional(V)", none),
            method("value", "optional_value", "optional(V) -> V", value_of),
            method("hasValue", "optional_hasValue", "optional(V) -> bool", has_value),
            # The argument is only evaluated for an empty optional, so these two have no strict implementation.
            method("or", "optional_or_optional", "optional(V), optional(V) -> optional(V)", None),
            method("orValue", "optional_orValue_value", "optional(V), V -> V", None),
            method("first", "list_first", "list(V) -> optional(V)", first),
            method("last", "list_last", "list(V) -> optional(V)", last),
            function("optional.unwrap", "optional_unwrap", "list(optional(V)) -> list(V)", unwrap),
            method("unwrapOpt", "optional_unwrapOpt", "list(optional(V)) -> list(V)", unwrap),
            function(ast.OPTIONAL_SELECT, "select_optional_field", "dyn, string -> optional(V)", _index),
            function(ast.OPTIONAL_INDEX, "list_optindex_optional_int", "list(V), int -> optional(V)", _index),
            function(
                ast.OPTIONAL_INDEX,
                "optional_list_optindex_optional_int",
                "optional(list(V)), int -> optional(V)",
                _index,
            ),
            function(
                ast.OPTIONAL_INDEX, "map_optindex_optional_value", "map(K, V), K -> optional(V)", _index
            ),
            function(
                ast.OPTIONAL_INDEX,
                "optional_map_optindex_optional_value",
                "optional(map(K, V)), K -> optional(V)",
                _index,
            ),
            function(
                ast.INDEX, "optional_list_index_int", "optional(list(V)), int -> optional(V)", operators.index
            ),
            function(
                ast.INDEX,
                "optional_map_index_value",
                "optional(map(K, V)), K -> optional(V)",
                operators.index,
            ),
        ]
    ),
    macros=MACROS,
    types=(optional_of(DYN),),
)
