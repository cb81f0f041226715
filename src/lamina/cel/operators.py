"""
The implementations of operators.

Each takes values of any type and returns one, or raises EvaluationError; the types
are checked at run time. Generated code bypasses them where types are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from lamina.cel import ast
from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import INT_MAX, INT_MIN, UInt, checked_int, checked_uint
from lamina.cel.times import Duration, Timestamp, duration, timestamp
from lamina.cel.values import (
    NONE,
    BoolMap,
    ListWithEquality,
    Optional,
    Value,
    compare,
    contains,
    equal,
    find,
    no_such_overload,
    shown,
    type_of,
)


def _refused(operator: str, left: Value, takers: tuple[type, ...]) -> EvaluationError:
    """Return the error of an operator without a matching overload; it is named where the left operand never matches."""
    return (
        EvaluationError(f"no such overload: {operator}") if type(left) not in takers else no_such_overload()
    )


_NUMERIC: Final = (int, UInt, float)
_SUBTRACTED: Final = (*_NUMERIC, Duration, Timestamp)
_ADDED: Final = (*_SUBTRACTED, str, bytes, list)
_COMPARED: Final = (*_SUBTRACTED, str, bytes, bool)


def add(left: Value, right: Value) -> Value:
    one, two = type(left), type(right)
    if one is two:
        if one is int:
            return checked_int(left + right)
        if one is str or one is float or one is bytes or one is list:
            return left + right
        if one is UInt:
            return checked_uint(int(left) + int(right))
        if one is Duration:
            return duration(left.nanoseconds + right.nanoseconds)
    if isinstance(left, ListWithEquality) and isinstance(right, list):
        return left.joined(right)
    if isinstance(left, list) and isinstance(right, list):
        return [*left, *right]
    if one is Timestamp and two is Duration:
        return timestamp(left.nanoseconds + right.nanoseconds, left.offset)
    if one is Duration and two is Timestamp:
        return timestamp(left.nanoseconds + right.nanoseconds, right.offset)
    raise _refused(ast.ADD, left, _ADDED)


def subtract(left: Value, right: Value) -> Value:
    one, two = type(left), type(right)
    if one is two:
        if one is int:
            return checked_int(left - right)
        if one is float:
            return left - right
        if one is UInt:
            return checked_uint(int(left) - int(right))
        if one is Duration or one is Timestamp:
            return duration(left.nanoseconds - right.nanoseconds)
    if one is Timestamp and two is Duration:
        return timestamp(left.nanoseconds - checked_int(right.nanoseconds), left.offset)
    raise _refused(ast.SUBTRACT, left, _SUBTRACTED)


def multiply(left: Value, right: Value) -> Value:
    one = type(left)
    if one is type(right):
        if one is int:
            return checked_int(left * right)
        if one is float:
            return left * right
        if one is UInt:
            return checked_uint(int(left) * int(right))
    raise _refused(ast.MULTIPLY, left, _NUMERIC)


def divide(left: Value, right: Value) -> Value:
    one = type(left)
    if one is type(right):
        if one is float:
            return _divided(left, right)
        if one is int or one is UInt:
            if not right:
                raise EvaluationError("division by zero")
            if one is UInt:
                return UInt(int(left) // int(right))
            # Python rounds towards negative infinity, CEL towards zero.
            whole = abs(left) // abs(right)
            return checked_int(whole if (left < 0) is (right < 0) else -whole)
    raise _refused(ast.DIVIDE, left, _NUMERIC)


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Value, right: Value) -> Value:
    one = type(left)
    if one is type(right) and (one is int or one is UInt):
        if not right:
            raise EvaluationError("modulus by zero")
        if one is UInt:
            return UInt(int(left) % int(right))
        if left == INT_MIN and right == -1:
            raise EvaluationError("integer overflow")
        rest: int = abs(left) % abs(right)
        return rest if left >= 0 else -rest
    raise _refused(ast.MODULO, left, (int, UInt))


def negate(value: Value) -> Value:
    kind = type(value)
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return duration(-value.nanoseconds)
    raise no_such_overload()


def logical_not(value: Value) -> bool:
    if value is True:
        return False
    if value is False:
        return True
    raise no_such_overload()


def not_equal(left: Value, right: Value) -> bool:
    return not equal(left, right)


def less(left: Value, right: Value) -> bool:
    return _ordered(ast.LESS, left, right) < 0


def less_equal(left: Value, right: Value) -> bool:
    return _ordered(ast.LESS_EQUALS, left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    return _ordered(ast.GREATER, left, right) > 0


def greater_equal(left: Value, right: Value) -> bool:
    return _ordered(ast.GREATER_EQUALS, left, right) >= 0


def _ordered(operator: str, left: Value, right: Value) -> int:
    if type(left) not in _COMPARED:
        raise EvaluationError(f"no such overload: {operator}")
    return compare(left, right)


def is_in(item: Value, container: Value) -> bool:
    return contains(container, item)


def index(value: Value, key: Value) -> Value:
    """Return an item of a list or the value of a key; the result of an optional is optional."""
    if isinstance(value, Optional):
        return optional_index(value, key)
    present, found = _look(value, key, absent_is_error=True)
    if present:
        return found
    raise missing(value, key)


def missing(value: Value, key: Value) -> EvaluationError:
    """Return the error of a missing index or field."""
    return EvaluationError(
        f"{'index out of bounds' if isinstance(value, list) else 'no such key'}: {shown(key)}"
    )


def optional_index(value: Value, key: Value) -> Optional:
    """Return the value of `value[?key]`."""
    if isinstance(value, Optional):
        if not value.present:
            return NONE
        value = value.value
    present, found = _look(value, key, absent_is_error=False)
    return Optional(True, found) if present else NONE


def _look(value: Value, key: Value, *, absent_is_error: bool) -> tuple[bool, Value]:
    if type(value) is dict or isinstance(value, dict):
        return find_key(value, key)
    if isinstance(value, list):
        place = list_index(key)
        return (True, value[place]) if 0 <= place < len(value) else (False, None)
    if absent_is_error:
        # cel-go's message for values without fields.
        raise EvaluationError(f"no such key: {shown(key)}")
    return False, None


def find_key(mapping: dict[Any, Any], key: Value) -> tuple[bool, Value]:
    """Return whether a map has a key, and its value; an invalid key type is an error."""
    if isinstance(key, (str, int, float)) or key is None:
        return find(mapping, key)
    raise (
        EvaluationError(f"unsupported key type: {type_of(key)}")
        if not isinstance(key, Optional)
        else no_such_overload()
    )


def list_index(key: Value) -> int:
    """Return the list index of a number; integral doubles and uints are allowed."""
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is UInt and key <= INT_MAX:
        return int(key)
    if kind is float and key.is_integer() and INT_MIN <= key <= INT_MAX:
        return int(key)
    if kind is UInt or kind is float:
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_of(key)}' in list")


def insert(mapping: dict[Any, Any], key: Value, value: Value) -> dict[Any, Any]:
    """Return a map with one more entry; an existing key is an error."""
    if find_key(mapping, key)[0]:
        raise EvaluationError(f"insert failed: key {shown(key)} already exists")
    if type(key) is bool and type(mapping) is dict:
        return BoolMap.of(iter([*mapping.items(), (key, value)]))
    made = type(mapping).of(iter(mapping.items())) if isinstance(mapping, BoolMap) else dict(mapping)
    made[key] = value
    return made


BINARY: Final[dict[str, Callable[[Value, Value], Value]]] = {
    ast.ADD: add,
    ast.SUBTRACT: subtract,
    ast.MULTIPLY: multiply,
    ast.DIVIDE: divide,
    ast.MODULO: modulo,
    ast.EQUALS: equal,
    ast.NOT_EQUALS: not_equal,
    ast.LESS: less,
    ast.LESS_EQUALS: less_equal,
    ast.GREATER: greater,
    ast.GREATER_EQUALS: greater_equal,
    ast.IN: is_in,
    ast.INDEX: index,
    ast.OPTIONAL_INDEX: optional_index,
}
"""The strict operators with two operands."""

UNARY: Final[dict[str, Callable[[Value], Value]]] = {ast.NEGATE: negate, ast.NOT: logical_not}
"""The operators with one operand."""
