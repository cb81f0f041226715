"""Construction of messages: well-known protobuf types, and objects of a schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lamina.cel.errors import EvaluationError
from lamina.cel.numbers import UInt
from lamina.cel.times import duration, timestamp
from lamina.cel.values import Value
from lamina.objects.durations import SECOND

_WRAPPERS: Final[dict[str, Value]] = {
    "google.protobuf.BoolValue": False,
    "google.protobuf.BytesValue": b"",
    "google.protobuf.DoubleValue": 0.0,
    "google.protobuf.FloatValue": 0.0,
    "google.protobuf.Int32Value": 0,
    "google.protobuf.Int64Value": 0,
    "google.protobuf.StringValue": "",
    "google.protobuf.UInt32Value": UInt(0),
    "google.protobuf.UInt64Value": UInt(0),
}


def builder(name: str) -> Callable[[dict[str, Any]], Value]:
    """Return the constructor of a named type, from its fields."""
    if name in _WRAPPERS:
        return lambda fields: fields.get("value", _WRAPPERS[name])
    if name == "google.protobuf.Duration":
        return lambda fields: duration(_nanoseconds(fields))
    if name == "google.protobuf.Timestamp":
        return lambda fields: timestamp(_nanoseconds(fields))
    if name == "google.protobuf.Struct":
        return lambda fields: fields.get("fields", {})
    if name == "google.protobuf.ListValue":
        return lambda fields: fields.get("values", [])
    if name == "google.protobuf.Value":
        return _value
    return dict


def _nanoseconds(fields: dict[str, Any]) -> int:
    return int(fields.get("seconds", 0)) * SECOND + int(fields.get("nanos", 0))


def _value(fields: dict[str, Any]) -> Value:
    if len(fields) > 1:
        raise EvaluationError("a value can only be one thing")
    for name, value in fields.items():
        return float(value) if name == "number_value" else value
    return None
