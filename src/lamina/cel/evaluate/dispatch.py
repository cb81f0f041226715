"""
Run-time dispatch: the overload of a call, by its arguments.

The element type of a list is that of its first item, and of a map that of its first
entry: checking all of them would make calls as expensive as their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from lamina.cel.declarations import Overload
from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import UInt
from lamina.cel.times import Duration, Timestamp
from lamina.cel.types import Kind, Type
from lamina.cel.values import CelObject, Optional, TypeValue, Value, type_of

Predicate: TypeAlias = Callable[[Value], bool]

CLASSES: Final[dict[Kind, type]] = {
    Kind.BOOL: bool,
    Kind.BYTES: bytes,
    Kind.DOUBLE: float,
    Kind.DURATION: Duration,
    Kind.INT: int,
    Kind.STRING: str,
    Kind.TIMESTAMP: Timestamp,
    Kind.TYPE: TypeValue,
    Kind.UINT: UInt,
    Kind.NULL: type(None),
}


def fits(declared: Type) -> Predicate | None:
    """Return a predicate for values of a type; None where any value matches."""
    if declared.kind in CLASSES:
        kind, nullable = CLASSES[declared.kind], declared.nullable
        if nullable:
            return lambda value: value is None or type(value) is kind
        return lambda value: type(value) is kind
    if declared.kind is Kind.LIST:
        return _list_of(fits(declared.params[0])) if declared.params else _is_list
    if declared.kind is Kind.MAP:
        return _map_of(fits(declared.params[0]), fits(declared.params[1])) if declared.params else _is_map
    if declared.is_optional:
        return lambda value: isinstance(value, Optional)
    if declared.kind in {Kind.OPAQUE, Kind.OBJECT}:
        name = declared.name
        # An object of a schema is a plain map at run time.
        return lambda value: (
            value.cel_type.name == name if isinstance(value, CelObject) else isinstance(value, dict)
        )
    return None


def _is_list(value: Value) -> bool:
    return isinstance(value, list)


def _is_map(value: Value) -> bool:
    return isinstance(value, dict)


def _list_of(item: Predicate | None) -> Predicate:
    if item is None:
        return _is_list
    return lambda value: isinstance(value, list) and (not value or item(value[0]))


def _map_of(key: Predicate | None, item: Predicate | None) -> Predicate:
    if key is None and item is None:
        return _is_map

    def fits_map(value: Value) -> bool:
        if not isinstance(value, dict):
            return False
        for found_key, found in value.items():
            return (key is None or key(found_key)) and (item is None or item(found))
        return True

    return fits_map


def no_overload(name: str, args: Sequence[Value]) -> EvaluationError:
    """Return the error of a call without a matching overload."""
    return EvaluationError(f"no such overload: {name}({', '.join(type_of(arg).name for arg in args)})")


class Dispatch:
    """A call, as a function of its arguments: the first overload that matches them."""

    __slots__ = ("by_class", "choices", "name")

    def __init__(self, name: str, overloads: Sequence[Overload]) -> None:
        self.name = name
        self.by_class: dict[type, Callable[..., Value]] = {}
        self.choices: list[tuple[Callable[..., Value], list[tuple[int, Predicate]]]] = []
        for overload in overloads:
            if overload.implementation is None:
                continue
            tests = [(place, test) for place, param in enumerate(overload.params) if (test := fits(param))]
            self.choices.append((overload.implementation, tests))
            if len(overload.params) == 1 and overload.params[0].kind in CLASSES:
                self.by_class.setdefault(CLASSES[overload.params[0].kind], overload.implementation)

    def __call__(self, *args: Value) -> Value:
        if len(args) == 1 and (known := self.by_class.get(type(args[0]))) is not None:
            return known(args[0])
        for implementation, tests in self.choices:
            if all(test(args[place]) for place, test in tests):
                return implementation(*args)
        raise no_overload(self.name, args)
