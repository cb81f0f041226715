"""
Swagger documents as protobuf, the format in which kubectl requests /openapi/v2.

The messages are those of gnostic's OpenAPIv2. Keys with `x-` are vendor extensions, and
values of any type are encoded as YAML, of which JSON is a subset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from lamina.objects.types import Obj

Encoder = Callable[[Any], bytes]
"""Returns the bytes of a field's value, with a length prefix if the wire type has one."""

_VARINT, _FIXED64, _SIZED = 0, 1, 2


class _Fields:
    """The fields of a message by their JSON names; set later, because messages refer to each other."""

    __slots__ = ("extensions", "single")

    def __init__(self) -> None:
        self.single: dict[str, tuple[Encoder, bool]] = {}
        self.extensions: Encoder | None = None

    def __call__(self, value: Obj) -> bytes:
        made = []
        for name, one in value.items():
            known = self.single.get(name)
            if known is not None:
                encode, repeats = known
                if repeats:
                    made += [encode(item) for item in one]
                else:
                    made.append(encode(one))
            elif self.extensions is not None and name.startswith("x-"):
                made.append(self.extensions((name, one)))
        return b"".join(made)


def _varint(number: int) -> bytes:
    # Negative numbers are encoded as 64 bits.
    number &= 0xFFFF_FFFF_FFFF_FFFF
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _field(number: int, content: Encoder) -> Encoder:
    """Return the encoder of a length-delimited field: a text or a message."""
    tag = _varint(number << 3 | _SIZED)

    def encode(value: Any) -> bytes:
        body = content(value)
        return tag + _varint(len(body)) + body

    return encode


def _text(number: int) -> Encoder:
    return _field(number, str.encode)


def _whole(number: int) -> Encoder:
    tag = _varint(number << 3 | _VARINT)
    return lambda value: tag + _varint(int(value))


def _double(number: int) -> Encoder:
    tag = _varint(number << 3 | _FIXED64)
    return lambda value: tag + struct.pack("<d", value)


def _any(number: int) -> Encoder:
    as_yaml = _text(2)
    return _field(number, lambda value: as_yaml(orjson.dumps(value).decode() + "\n"))


def _named(number: int, value: Callable[[int], Encoder]) -> Encoder:
    """Return the encoder of a name-value pair, the format of map entries."""
    name, rest = _text(1), value(2)
    return _field(number, lambda pair: name(pair[0]) + rest(pair[1]))


def _map(number: int, value: Callable[[int], Encoder], *, entries: int = 1) -> Encoder:
    """Return the encoder of a message that consists of a map."""
    entry = _named(entries, value)
    return _field(number, lambda found: b"".join(map(entry, found.items())))


def _message(content: Encoder) -> Callable[[int], Encoder]:
    return lambda number: _field(number, content)


def _fill(
    message: _Fields, fields: Mapping[str, Encoder], repeated: Mapping[str, Encoder], rest: int = 0
) -> None:
    message.single = {name: (encode, False) for name, encode in fields.items()}
    message.single |= {name: (encode, True) for name, encode in repeated.items()}
    message.extensions = _named(rest, _any) if rest else None


_schema, _info, _operation, _item, _response = _Fields(), _Fields(), _Fields(), _Fields(), _Fields()
_body_parameter, _query_parameter, _plain_parameter, _key = _Fields(), _Fields(), _Fields(), _Fields()
_reference = _Fields()


def _bounds(first: int) -> dict[str, Encoder]:
    """Return the fields with limits, which several messages have in the same order."""
    return {
        "maximum": _double(first),
        "exclusiveMaximum": _whole(first + 1),
        "minimum": _double(first + 2),
        "exclusiveMinimum": _whole(first + 3),
        "maxLength": _whole(first + 4),
        "minLength": _whole(first + 5),
        "pattern": _text(first + 6),
        "maxItems": _whole(first + 7),
        "minItems": _whole(first + 8),
        "uniqueItems": _whole(first + 9),
    }


def _type(number: int) -> Encoder:
    one = _text(1)
    return _field(
        number, lambda value: one(value) if isinstance(value, str) else b"".join(one(item) for item in value)
    )


def _items(number: int) -> Encoder:
    one = _field(1, _schema)
    return _field(
        number, lambda value: b"".join(one(item) for item in (value if isinstance(value, list) else [value]))
    )


def _additional(number: int) -> Encoder:
    boolean, schema = _whole(2), _field(1, _schema)
    return _field(number, lambda value: boolean(value) if isinstance(value, bool) else schema(value))


_fill(
    _schema,
    {
        "$ref": _text(1),
        "format": _text(2),
        "title": _text(3),
        "description": _text(4),
        "default": _any(5),
        "multipleOf": _double(6),
        **_bounds(7),
        "maxProperties": _whole(17),
        "minProperties": _whole(18),
        "additionalProperties": _additional(21),
        "type": _type(22),
        "items": _items(23),
        "properties": _map(25, _message(_schema)),
        "discriminator": _text(26),
        "readOnly": _whole(27),
        "example": _any(30),
    },
    {"required": _text(19), "enum": _any(20), "allOf": _field(24, _schema)},
    31,
)
_fill(_info, {"title": _text(1), "version": _text(2), "description": _text(3)}, {}, 7)
_fill(
    _body_parameter,
    {
        "description": _text(1),
        "name": _text(2),
        "in": _text(3),
        "required": _whole(4),
        "schema": _field(5, _schema),
    },
    {},
    6,
)
_COMMON: Final = {"required": _whole(1), "in": _text(2), "description": _text(3), "name": _text(4)}
_fill(
    _query_parameter,
    {**_COMMON, "allowEmptyValue": _whole(5), "type": _text(6), "format": _text(7), **_bounds(11)},
    {"enum": _any(21)},
    23,
)
_fill(
    _plain_parameter,
    {**_COMMON, "type": _text(5), "format": _text(6), **_bounds(10)},
    {"enum": _any(20)},
    22,
)
_fill(_reference, {"$ref": _text(1), "description": _text(2)}, {})
_PLACES: Final = {
    "header": _field(1, _plain_parameter),
    "formData": _field(2, _query_parameter),
    "query": _field(3, _query_parameter),
    "path": _field(4, _plain_parameter),
}
_IN_BODY: Final = _field(1, _body_parameter)
_IN_HEAD: Final = _field(2, lambda value: _PLACES[value["in"]](value))


def _parameter(value: Obj) -> bytes:
    return _IN_BODY(value) if value["in"] == "body" else _IN_HEAD(value)


def _or_reference(content: Encoder) -> Encoder:
    """Return the encoder of a value or a reference to one."""
    itself, elsewhere = _field(1, content), _field(2, _reference)
    return lambda value: elsewhere(value) if "$ref" in value else itself(value)


_fill(_response, {"description": _text(1), "schema": _field(2, _field(1, _schema))}, {}, 5)
_fill(
    _operation,
    {
        "summary": _text(2),
        "description": _text(3),
        "operationId": _text(5),
        "responses": _map(9, _message(_or_reference(_response))),
        "deprecated": _whole(11),
    },
    {
        "tags": _text(1),
        "produces": _text(6),
        "consumes": _text(7),
        "parameters": _field(8, _or_reference(_parameter)),
        "schemes": _text(10),
    },
    13,
)
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_fill(
    _item,
    {method: _field(number, _operation) for number, method in enumerate(_METHODS, 2)},
    {"parameters": _field(9, _or_reference(_parameter))},
    10,
)
_fill(_key, {"type": _text(1), "name": _text(2), "in": _text(3), "description": _text(4)}, {}, 5)


def _texts(number: int) -> Encoder:
    one = _text(1)
    return _field(number, lambda values: b"".join(map(one, values)))


def _everything(number: int) -> Encoder:
    return _field(number, b"".join)


_PATH: Final = _named(2, _message(_item))
_DEFINITION: Final = _named(1, _message(_schema))
_PATHS: Final = _everything(8)
_DEFINITIONS: Final = _everything(9)

_document = _Fields()
_fill(
    _document,
    {
        "swagger": _text(1),
        "info": _field(2, _info),
        "paths": lambda value: _PATHS(value.values()),
        "definitions": lambda value: _DEFINITIONS(value.values()),
        "parameters": _map(10, _message(_parameter)),
        "securityDefinitions": _map(13, _message(_field(2, _key))),
    },
    {"security": _map(12, _texts)},
    16,
)


def path_bytes(path: str, item: Obj) -> bytes:
    """Return one path of a document, encoded."""
    return _PATH((path, item))


def definition_bytes(name: str, schema: Obj) -> bytes:
    """Return one definition of a document, encoded."""
    return _DEFINITION((name, schema))


def document_bytes(document: Obj) -> bytes:
    """Return a whole document. Its paths and definitions are already encoded, by name."""
    return _document(document)
