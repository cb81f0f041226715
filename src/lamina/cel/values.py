"""
The run-time values: plain Python objects, as decoded from JSON.

    null      None            list       list
    bool      bool            map        dict; a BoolMap where keys are bools
    int       int             type       TypeValue
    uint      UInt            optional   Optional
    double    float           duration   Duration
    string    str             timestamp  Timestamp
    bytes     bytes

Python's comparisons are not CEL's: `True == 1`, `nan in [nan]` and `{True: 1}[1]`
differ. `equal`, `compare`, `contains` and `find` follow CEL for all values.

A library's own type is a class with a `cel_type`, compared with Python's `==`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import INT_MAX, INT_MIN, UINT_MAX, UInt
from lamina.cel.times import Duration, Timestamp
from lamina.objects.go_quote import format_float

Value: TypeAlias = Any
"""Any value of the language."""


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: the result of `type(x)`."""

    name: str

    def __str__(self) -> str:
        return self.name


class Optional:
    """An optional value. All empty ones are `NONE`."""

    __slots__ = ("present", "value")

    present: bool
    value: Value

    def __init__(self, present: bool, value: Value) -> None:
        self.present = present
        self.value = value

    def __repr__(self) -> str:
        return f"optional({self.value!r})" if self.present else "optional.none()"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Optional) or self.present is not other.present:
            return False
        return not self.present or equal(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]  # what may hold a list or a map has no hash


NONE: Final = Optional(False, None)


class CelObject:
    """The base class of libraries' types: a name, and its own equality."""

    __slots__ = ()

    cel_type: ClassVar[TypeValue]


class Omitted(CelObject):
    """The value that is left out of lists and maps. The only instance is `OMITTED`."""

    __slots__ = ()

    cel_type = TypeValue("omit")


OMITTED: Final = Omitted()


class _BoolKey:
    """The stored form of a bool key, which Python would not distinguish from a number."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


_TRUE: Final = _BoolKey(True)
_FALSE: Final = _BoolKey(False)


class BoolMap(dict[Any, Any]):
    """A map that distinguishes the keys `true` and `1`. It has the interface of dict."""

    __slots__ = ()

    @classmethod
    def of(cls, pairs: Iterator[tuple[Value, Value]]) -> BoolMap:
        made = cls()
        for key, value in pairs:
            made[key] = value
        return made

    def __setitem__(self, key: Value, value: Value) -> None:
        super().__setitem__(_stored(key), value)

    def __getitem__(self, key: Value) -> Value:
        return super().__getitem__(_stored(key))

    def __contains__(self, key: object) -> bool:
        return super().__contains__(_stored(key))

    def __iter__(self) -> Iterator[Value]:
        return (key.value if type(key) is _BoolKey else key for key in super().__iter__())

    def get(self, key: Value, default: Value = None) -> Value:
        return super().get(_stored(key), default)

    def keys(self) -> Any:
        return list(self)

    def items(self) -> Any:
        return [(key, self[key]) for key in self]


def _stored(key: Value) -> Value:
    return _TRUE if key is True else _FALSE if key is False else key


_NAMES: Final[dict[type, TypeValue]] = {
    type(None): TypeValue("null_type"),
    bool: TypeValue("bool"),
    int: TypeValue("int"),
    UInt: TypeValue("uint"),
    float: TypeValue("double"),
    str: TypeValue("string"),
    bytes: TypeValue("bytes"),
    list: TypeValue("list"),
    dict: TypeValue("map"),
    BoolMap: TypeValue("map"),
    Optional: TypeValue("optional_type"),
    Duration: TypeValue("google.protobuf.Duration"),
    Timestamp: TypeValue("google.protobuf.Timestamp"),
    TypeValue: TypeValue("type"),
}


def type_of(value: Value) -> TypeValue:
    """Return the type of a value, as `type(x)` does."""
    found = _NAMES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, CelObject):
        return value.cel_type
    for ancestor, name in _NAMES.items():
        if isinstance(value, ancestor):
            return name
    return TypeValue(type(value).__name__)


def no_such_overload() -> EvaluationError:
    """Return the error of an operation without a matching overload."""
    return EvaluationError("no such overload")


def equal(left: Value, right: Value) -> bool:
    """
    Say whether two values of any types are equal.

    Numbers are compared by value across types, an integer and a double as
    doubles; NaN equals nothing; other values of different types are not equal.
    """
    one, two = type(left), type(right)
    if one is two:
        if one is str or one is int or one is bool or one is float or one is bytes or one is UInt:
            return bool(left == right)
        if one is list:
            return len(left) == len(right) and all(map(equal, left, right))
        if one is dict:
            return len(left) == len(right) and all(
                key in right and equal(value, right[key]) for key, value in left.items()
            )
    return _equal(left, right)


def _equal(left: Value, right: Value) -> bool:
    if left is None or right is None or isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)):
        return isinstance(right, (int, float)) and _order(left, right) == 0
    if isinstance(left, ListWithEquality):
        # Only the left side decides, as in Kubernetes: `['b', 'a'] == self.set` compares item by item.
        return left.same(right)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(find(right, key)[0] and equal(value, right[key]) for key, value in left.items())
        )
    return bool(left == right)


class ListWithEquality(list[Any]):
    """A list with its own equality: a set, or an associative list."""

    __slots__ = ()

    def same(self, other: Value) -> bool:
        raise NotImplementedError

    def joined(self, other: list[Any]) -> list[Any]:
        """Return `self + other`."""
        raise NotImplementedError


def _order(left: float, right: float) -> int | None:
    """Compare two numbers; None where one of them is NaN."""
    if isinstance(left, float) or isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return None
        # Values out of the integer's range are compared before rounding.
        if isinstance(left, float) is not isinstance(right, float):
            whole, real, sign = (right, left, 1) if isinstance(left, float) else (left, right, -1)
            low, high = (0, UINT_MAX) if isinstance(whole, UInt) else (INT_MIN, INT_MAX)
            if real < low:
                return -sign
            if real > float(high):
                return sign
            left, right = float(left), float(right)
    return -1 if left < right else 1 if left > right else 0


def compare(left: Value, right: Value) -> int:
    """Return -1, 0 or 1 for the order of two values; raises where they have none."""
    one, two = type(left), type(right)
    if one is two and (one is int or one is str or one is bytes or one in _ORDERED):
        return -1 if left < right else 1 if left > right else 0
    if one is bool or two is bool:
        if one is not two:
            raise no_such_overload()
        return int(left) - int(right)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        found = _order(left, right)
        if found is None:
            raise EvaluationError("NaN values cannot be ordered")
        return found
    raise no_such_overload()


_ORDERED: Final = frozenset({Duration, Timestamp, UInt})


def find(mapping: dict[Any, Any], key: Value) -> tuple[bool, Value]:
    """Return whether a map has a key, and its value."""
    kind = type(key)
    if kind is str:
        return (True, mapping[key]) if key in mapping else (False, None)
    if kind is bool and type(mapping) is dict:
        return False, None
    if isinstance(key, (bool, int, float)) or key is None:
        return (True, mapping[key]) if key in mapping else (False, None)
    return False, None


def contains(container: Value, item: Value) -> bool:
    """Say whether an item is in a list, or a key in a map."""
    if isinstance(container, list):
        if type(item) is str:
            return item in container
        return any(equal(item, one) for one in container)
    if isinstance(container, dict):
        return find(container, item)[0]
    raise no_such_overload()


def shown(value: Value) -> str:
    """Return a value as text for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, bytes):
        return "[" + " ".join(map(str, value)) + "]"
    return str(int(value)) if isinstance(value, int) else str(value)
