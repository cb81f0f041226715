"""
What JSON gives, made into what a declared type promises.

JSON has no timestamps, durations or bytes, and does not keep 1 and 1.0 apart.
Where a schema says that a field is one of those, reading the field converts it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from lamina.cel.errors import EvaluationError
from lamina.cel.library.encoders import decode
from lamina.cel.listing import listed
from lamina.cel.numbers import INT_MAX, UInt
from lamina.cel.times import parse_duration, parse_timestamp
from lamina.cel.types import Kind, ListType, Type
from lamina.cel.values import ListWithEquality, Value

Coercer: TypeAlias = Callable[[Value], Value]


def _timestamp(value: Value) -> Value:
    if type(value) is not str:
        return value
    # A date alone is the start of its day.
    found = parse_timestamp(value) or parse_timestamp(f"{value}T00:00:00Z")
    if found is None:
        raise EvaluationError(f"type conversion error from 'string' to 'google.protobuf.Timestamp': {value}")
    return found


def _duration(value: Value) -> Value:
    if type(value) is not str:
        return value
    found = parse_duration(value)
    if found is None:
        raise EvaluationError(f"type conversion error from 'string' to 'google.protobuf.Duration': {value}")
    return found


def _bytes(value: Value) -> Value:
    return decode(value) if type(value) is str else value


def _double(value: Value) -> Value:
    return float(value) if type(value) is int else value


def _uint(value: Value) -> Value:
    return UInt(value) if type(value) is int and value >= 0 else value


def _int(value: Value) -> Value:
    # A number that no int can be is a double to whoever reads JSON with 64 bits.
    return value if type(value) is not int or -INT_MAX - 1 <= value <= INT_MAX else float(value)


_SCALARS: Final[dict[Kind, Coercer]] = {
    Kind.TIMESTAMP: _timestamp,
    Kind.DURATION: _duration,
    Kind.BYTES: _bytes,
    Kind.DOUBLE: _double,
    Kind.UINT: _uint,
}


def coercer(declared: Type) -> Coercer | None:
    """Return how a value of a declared type is made out of JSON, or None where nothing is to be done."""
    if declared.kind in _SCALARS:
        return _SCALARS[declared.kind]
    if declared.kind is Kind.LIST and declared.params:
        items = _each_item(coercer(declared.params[0]))
        return _listed(items, declared) if isinstance(declared, ListType) else items
    if declared.kind is Kind.MAP and len(declared.params) == 2:
        return _each_value(coercer(declared.params[1]))
    return None


def _listed(items: Coercer | None, declared: ListType) -> Coercer:
    def convert(value: Value) -> Value:
        if not isinstance(value, list) or isinstance(value, ListWithEquality):
            return value
        return listed(value if items is None else items(value), declared)

    return convert


def _each_item(inner: Coercer | None) -> Coercer | None:
    if inner is None:
        return None

    def convert(value: Value) -> Value:
        return [inner(item) for item in value] if type(value) is list else value

    return convert


def _each_value(inner: Coercer | None) -> Coercer | None:
    if inner is None:
        return None

    def convert(value: Any) -> Value:
        return {key: inner(item) for key, item in value.items()} if type(value) is dict else value

    return convert
