"""Converts the JSON of a case to our values, types and declarations."""

import base64
from typing import Any

from lamina.cel.declarations import Function, Overload, Variable
from lamina.cel.numbers import UInt
from lamina.cel.times import Timestamp, parse_duration, parse_timestamp
from lamina.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    opaque,
    optional_of,
    param,
    type_of,
    wrapper,
)
from lamina.cel.values import BoolMap, TypeValue

_PRIMITIVES = {
    "BOOL": BOOL, "INT64": INT, "UINT64": UINT, "DOUBLE": DOUBLE, "STRING": STRING, "BYTES": BYTES,
}  # fmt: skip


class NotOurs(Exception):
    """A value or type of a protobuf message."""


def value(written: dict[str, Any]) -> Any:
    """Return a value as expressions have it."""
    ((kind, content),) = written.items()
    match kind:
        case "int64Value":
            return int(content)
        case "uint64Value":
            return UInt(content)
        case "doubleValue":
            return float(content)
        case "bytesValue":
            return base64.b64decode(content)
        case "nullValue":
            return None
        case "boolValue" | "stringValue":
            return content
        case "listValue":
            return [value(item) for item in content.get("values", ())]
        case "mapValue":
            pairs = [(value(e["key"]), value(e["value"])) for e in content.get("entries", ())]
            has_bools = any(type(key) is bool for key, _ in pairs)
            return BoolMap.of(iter(pairs)) if has_bools else dict(pairs)
        case "typeValue":
            return TypeValue(content)
        case "objectValue":
            return _message(content)
    raise NotOurs(kind)


def _message(written: dict[str, Any]) -> Any:
    name = written["@type"].rpartition("/")[2]
    content = str(written.get("value"))
    if name == "google.protobuf.Duration":
        return parse_duration(content)
    if name == "google.protobuf.Timestamp":
        found = parse_timestamp(content)
        assert isinstance(found, Timestamp)
        return found
    raise NotOurs(name)


def declared(written: dict[str, Any]) -> Variable | Function:
    """Return a declared variable or function."""
    if "ident" in written:
        return Variable(written["name"], read_type(written["ident"]["type"]))
    overloads = written["function"]["overloads"]
    return Function(
        written["name"],
        tuple(
            Overload(
                one["overloadId"],
                tuple(read_type(param) for param in one.get("params", ())),
                read_type(one["resultType"]),
                member=one.get("isInstanceFunction", False),
            )
            for one in overloads
        ),
    )


def read_type(written: dict[str, Any]) -> Type:
    """Return a type."""
    ((kind, content),) = written.items()
    match kind:
        case "dyn":
            return DYN
        case "null":
            return NULL
        case "error":
            return ERROR
        case "primitive":
            return _PRIMITIVES[content]
        case "wrapper":
            return wrapper(_PRIMITIVES[content])
        case "wellKnown":
            if content == "ANY":
                return ANY
            return {"DURATION": DURATION, "TIMESTAMP": TIMESTAMP}[content]
        case "listType":
            return list_of(read_type(content.get("elemType", {"dyn": {}})))
        case "mapType":
            return map_of(read_type(content["keyType"]), read_type(content["valueType"]))
        case "typeParam":
            return param(content)
        case "type":
            return type_of(read_type(content) if content else DYN)
        case "abstractType":
            inner = [read_type(one) for one in content.get("parameterTypes", ())]
            return (
                optional_of(*inner) if content["name"] == "optional_type" else opaque(content["name"], *inner)
            )
    raise NotOurs(kind)
