"""Encodes protobuf as Go does, from the decoder's table; and generates objects of any kind."""

from __future__ import annotations

import base64
import json
import struct
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from lamina.server.codec.protobuf import MAGIC
from lamina.server.codec.protobuf_forms import FORMS, RAW
from lamina.server.kinds.builtin.tables import table

JSONSCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


class Field(NamedTuple):
    number: int
    name: str
    flag: str
    type: str


@cache
def fields(message: str) -> tuple[Field, ...]:
    package = message.rpartition(".")[0]
    found = []
    for entry in filter(None, table("messages")["messages"][message].split(";")):
        number, name, written = entry.split(" ")
        flag = name[-1] if name[-1] in "?!^" else ""
        found.append(Field(int(number), name.removesuffix(flag), flag, _qualified(written, package)))
    return tuple(found)


def _qualified(written: str, package: str) -> str:
    for opening, closing in (("[]", ""), ("map<string,", ">")):
        if written.startswith(opening):
            inner = written.removeprefix(opening).removesuffix(closing)
            return f"{opening}{_qualified(inner, package)}{closing}"
    return f"{package}.{written}" if written[0].isupper() else written


def kinds() -> list[tuple[str, str]]:
    return [
        (api_version, kind) for api_version, found in table("messages")["kinds"].items() for kind in found
    ]


def message_of(api_version: str, kind: str) -> str:
    tables = table("messages")
    name: str = tables["kinds"].get(api_version, {}).get(kind) or tables["options"][kind]
    return name


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    named = sized(1, api_version.encode()) + sized(2, kind.encode())
    return MAGIC + sized(1, named) + sized(2, raw) + sized(3, b"") + sized(4, b"")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def sized(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def encode(message: str, obj: Any) -> bytes:
    """Encode every field that is no pointer, zero or not; a pointer only if the object has the field."""
    made = b""
    for number, name, flag, written in fields(message):
        if flag == "^":
            made += sized(number, encode(written, obj))
        elif written.startswith("[]"):
            for item in obj.get(name) or ():
                made += _one(number, written[2:], item)
        elif written.startswith("map<string,"):
            for key, value in (obj.get(name) or {}).items():
                entry = sized(1, key.encode()) + _one(2, written[len("map<string,") : -1], value)
                made += sized(number, entry)
        elif name in obj or flag != "?":
            made += _one(number, written, obj.get(name))
    return made


def _one(number: int, written: str, value: Any) -> bytes:
    match written.rpartition(".")[2]:
        case "string":
            return sized(number, (value or "").encode())
        case "bytes":
            return sized(number, base64.b64decode(value or ""))
        case "int32" | "int64" | "bool":
            return varint(number << 3) + varint(int(value or 0))
        case "double":
            return varint(number << 3 | 1) + struct.pack("<d", value or 0)
        case "Time" | "MicroTime":
            return sized(number, _moment(value))
        case "Quantity":
            return sized(number, sized(1, (value or "0").encode()))
        case "IntOrString":
            text = isinstance(value, str)
            return sized(
                number,
                varint(1 << 3) + varint(text) + varint(2 << 3) + varint(0 if text else value or 0)
                + sized(3, value.encode() if isinstance(value, str) else b""),
            )  # fmt: skip
        case "FieldsV1" | "RawExtension" | "JSON":
            return sized(number, b"" if value is None else sized(1, json.dumps(value).encode()))
        case "ExtraValue":
            return sized(number, b"".join(sized(1, item.encode()) for item in value))
        case "JSONSchemaPropsOrBool":
            if isinstance(value, bool):
                return sized(number, varint(1 << 3) + varint(value))
            return sized(number, varint(1 << 3) + varint(1) + sized(2, encode(JSONSCHEMA, value)))
        case "JSONSchemaPropsOrArray":
            if isinstance(value, list):
                return sized(number, b"".join(sized(2, encode(JSONSCHEMA, item)) for item in value))
            return sized(number, sized(1, encode(JSONSCHEMA, value)))
        case "JSONSchemaPropsOrStringArray":
            if isinstance(value, list):
                return sized(number, b"".join(sized(2, item.encode()) for item in value))
            return sized(number, sized(1, encode(JSONSCHEMA, value)))
        case _:
            return sized(number, encode(written, value or {}))


def _moment(value: str | None) -> bytes:
    if value is None:
        return b""
    since = datetime.fromisoformat(value.removesuffix("Z")) - datetime(1970, 1, 1)
    seconds, rest = divmod(since, timedelta(seconds=1))
    return varint(1 << 3) + varint(seconds) + varint(2 << 3) + varint(rest.microseconds * 1000)


_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
_MOMENTS = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(9999, 12, 31))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=4,
)
_ZEROS: dict[str, Any] = {"string": "", "bytes": "", "int32": 0, "int64": 0, "double": 0, "bool": False}


@st.composite
def objects(draw: st.DrawFn, message: str, depth: int = 0) -> dict[str, Any]:
    """Return an object of a message, in Go's JSON encoding."""
    obj: dict[str, Any] = {}
    for _, name, flag, written in fields(message):
        if flag == "^":
            obj |= draw(objects(written, depth))
        elif written.startswith(("[]", "map<string,")):
            many = draw(_many(written, depth))
            if many or flag == "!":
                obj[name] = many or None
        else:
            drawn = draw(st.integers(0, depth + 1)) == 0
            value = draw(_values(written, depth)) if drawn else _zero(written)
            if flag == "!" or (drawn and (flag == "?" or value != _zero(written))):
                obj[name] = value
    return obj


def _many(written: str, depth: int) -> st.SearchStrategy[Any]:
    if depth > 2:
        return st.none()
    if written.startswith("[]"):
        return st.lists(_values(written[2:], depth + 1), max_size=2)
    return st.dictionaries(_TEXT, _values(written[len("map<string,") : -1], depth + 1), max_size=2)


def _zero(written: str) -> Any:
    """Return the JSON of an unset value; of a struct, the fields that are always written."""
    short = written.rpartition(".")[2]
    if short in FORMS or short in RAW or written in _ZEROS:
        return {"Quantity": "0", "IntOrString": 0}.get(short, _ZEROS.get(written))
    zero: dict[str, Any] = {}
    for _, name, flag, inner in fields(written):
        if flag == "^":
            zero |= _zero(inner)
        elif inner.startswith(("[]", "map<")):
            zero |= {name: None} if flag == "!" else {}
        elif flag == "!":
            zero[name] = _zero(inner)
    return zero


def _values(written: str, depth: int) -> st.SearchStrategy[Any]:
    match written.rpartition(".")[2]:
        case "string":
            return _TEXT
        case "bytes":
            return st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode())
        case "int32":
            return st.integers(-(2**31), 2**31 - 1)
        case "int64":
            return st.integers(-(2**63), 2**63 - 1)
        case "bool":
            return st.booleans()
        case "double":
            return st.integers(-(2**50), 2**50) | st.sampled_from((0.5, -1.25, 1e300))
        case "Time":
            return st.none() | _MOMENTS.map(lambda moment: f"{moment.isoformat(timespec='seconds')}Z")
        case "MicroTime":
            return st.none() | _MOMENTS.map(lambda moment: f"{moment.isoformat(timespec='microseconds')}Z")
        case "Quantity":
            return st.sampled_from(("0", "1", "500m", "1Gi"))
        case "IntOrString":
            return st.integers(-(2**31), 2**31 - 1) | _TEXT
        case "FieldsV1" | "RawExtension" | "JSON":
            return _JSON
        case "ExtraValue":
            return st.lists(_TEXT, max_size=2)
        case "JSONSchemaPropsOrBool":
            return st.booleans() | objects(JSONSCHEMA, depth + 1)
        case "JSONSchemaPropsOrArray":
            return objects(JSONSCHEMA, depth + 1) | st.lists(
                objects(JSONSCHEMA, depth + 1), min_size=1, max_size=2
            )
        case "JSONSchemaPropsOrStringArray":
            return objects(JSONSCHEMA, depth + 1) | st.lists(_TEXT, min_size=1, max_size=2)
        case _:
            return objects(written, depth + 1)
