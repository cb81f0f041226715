"""
Converts JSON values to declared types.

JSON has no timestamps, durations or bytes, and does not distinguish 1 from 1.0. A
field that its schema declares as one of those is converted when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from lamina.cel.errors import EvaluationError
from lamina.cel.library.encoders import decode
from lamina.cel.numbers import UInt
from lamina.cel.times import parse_duration, parse_timestamp
from lamina.cel.typed_lists import listed
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


_SCALARS: Final[dict[Kind, Coercer]] = {
    Kind.TIMESTAMP: _timestamp,
    Kind.DURATION: _duration,
    Kind.BYTES: _bytes,
    Kind.DOUBLE: _double,
    Kind.UINT: _uint,
}


def coercer(declared: Type) -> Coercer | None:
    """Return the conversion of JSON to a declared type, None where none is needed."""
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
