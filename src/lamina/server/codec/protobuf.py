"""
Decode protobuf request bodies into JSON values.

Go clients send built-in kinds as protobuf: four magic bytes, then an envelope with
the kind and the message. The result is what Go would have encoded as JSON. A zero is
encoded whether or not it was set, so it is dropped, unless the field is a pointer in
Go (then it was set) or one that JSON always has, such as structs.

Any bytes yield an object or DecodeError, in time proportional to their length.
"""

from __future__ import annotations

import base64
import struct
from typing import Any, Final

import orjson

from lamina.objects.types import Made
from lamina.server.codec.protobuf_forms import TIMES
from lamina.server.codec.protobuf_messages import (
    ENTRY,
    ENVELOPE,
    FIXED32,
    FIXED64,
    SIZED,
    VARINT,
    WRAPPED,
    Field,
    Message,
    Op,
    Value,
    ValueType,
    message_of,
)
from lamina.server.decode_errors import DecodeError, unhandled, unrecognized

MAGIC: Final = b"k8s\x00"

_MAX_DEPTH: Final = 100
"""The maximum nesting of messages; no schema is nested deeper, so deeper input is malicious."""

# Module globals are faster to look up than enumeration members, and these are read for every field.
_TEXT, _MESSAGE, _MAP, _INLINED, _ONE = Op.TEXT, Op.MESSAGE, Op.MAP, Op.INLINED, Op.VALUE
_PLAIN = ValueType.TEXT

_UNSIGNED: Final = (1 << 64) - 1
_KEY, _VALUE = 1 << 3 | SIZED, 2 << 3 | SIZED


def decode(body: bytes, expected: tuple[str, str] = ("", "")) -> tuple[str, str, Made]:
    """
    Return the apiVersion, the kind and the object of a body; the object has both too.

    `expected` is the apiVersion and kind of the endpoint, used if the envelope has
    none, and in error messages. Raises DecodeError unless the body is a message of a
    known kind.
    """
    api_version, kind = "", ""
    try:
        api_version, kind, start, stop = _open(body)
        api_version, kind = api_version or expected[0], kind or expected[1]
        message = message_of(api_version, kind)
        if message is None:
            raise ValueError(_unknown(api_version, kind))
        obj: Made = {"apiVersion": api_version, "kind": kind}
        _read(body, start, stop, message, obj, 0)
    except (IndexError, ValueError, OverflowError) as problem:
        raise _error(_message(problem), body, expected[1], api_version, kind) from None
    return api_version, kind, obj


def _message(problem: Exception) -> str:
    """Return the message of a decode error: Go's, where Python's would mislead the client."""
    match problem:
        case IndexError():
            return "unexpected EOF"
        case UnicodeDecodeError():
            return "proto: string field contains invalid UTF-8"
        case OverflowError():
            return "Time.MarshalJSON: year outside of range [0,9999]"
    return str(problem)


def _error(problem: str, body: bytes, expected: str, api_version: str, kind: str) -> DecodeError:
    """Return the error with kube-apiserver's message, which depends on whether the kind is known yet."""
    if not expected:
        return DecodeError(problem)
    if kind:
        return unhandled(kind, api_version.rpartition("/")[2], expected, problem)
    return unrecognized(expected, body, problem)


def _unknown(api_version: str, kind: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def _open(body: bytes) -> tuple[str, str, int, int]:
    """Return the apiVersion and kind of the envelope, and the start and end of its message."""
    if not body:
        raise ValueError("empty data")
    if not body.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise ValueError(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    if len(body) == len(MAGIC):
        raise ValueError("empty body")
    text: Made = {}
    _read(body, len(MAGIC), len(body), ENVELOPE, text, 0)
    named = text.get("type", {})
    start, stop = text.get("raw", (0, 0))
    return named.get("api_version", ""), named.get("kind", ""), start, stop


def _read(data: bytes, pos: int, end: int, message: Message, out: Made, depth: int) -> None:
    """
    Decode the message from `pos` to `end` into `out`.

    A message that occurs twice is merged, as protobuf specifies, so `out` may already
    hold fields.
    """
    if depth > _MAX_DEPTH:
        raise ValueError(f"more than {_MAX_DEPTH} messages inside each other")
    if not message.filled:
        message.fill()
    fields = message.fields
    while pos < end:
        tag = data[pos]
        pos += 1
        if tag > 127:
            tag, pos = _varint(data, pos - 1)
        field = fields.get(tag)
        if field is None:
            pos = _skip(data, pos, end, tag, message)
            continue
        wire = tag & 7
        if wire == SIZED:
            size = data[pos]
            pos += 1
            if size > 127:
                size, pos = _varint(data, pos - 1)
            stop = pos + size
            if stop > end:
                raise ValueError("unexpected EOF")
            op, name, what, kept, zero = field
            if op is _TEXT:
                if size:
                    out[name] = data[pos:stop].decode()
                else:
                    _put(out, name, "", kept, zero)
            elif op is _MESSAGE:
                inner = out.get(name)
                if inner is None:
                    inner = {}
                _read(data, pos, stop, what, inner, depth + 1)
                out[name] = inner
            elif op is _MAP:
                _read_entry(data, pos, stop, what, out.setdefault(name, {}), depth)
            elif op is _INLINED:
                _read(data, pos, stop, what, out, depth + 1)
            elif op is _ONE:
                _put(out, name, _value(data, pos, stop, what, depth), kept, zero)
            else:
                _extend(out.setdefault(name, []), data, pos, stop, field, depth)
            pos = stop
        else:
            if wire == VARINT:
                number, pos = _varint(data, pos)
                value = field.what(number)
            else:
                value = _double(data, pos, end)
                pos += 8
            if field.op is Op.NUMBERS:
                out.setdefault(field.name, []).append(value)
            else:
                _put(out, field.name, value, field.kept, field.zero)
    if pos != end:
        raise ValueError("unexpected EOF")
    for field in message.always:
        if field.name not in out:
            out[field.name] = _empty_value(field)


def _put(out: Made, name: str, value: Any, kept: bool, zero: Any) -> None:
    """Set a singular field. If it occurs twice the last value counts, which may be zero."""
    if kept or value != zero:
        out[name] = value
    else:
        out.pop(name, None)


def _empty_value(field: Field) -> Any:
    """Return the JSON value of a field that was not sent."""
    if field.op is not Op.MESSAGE:
        return field.zero
    made: Made = {}
    _read(b"", 0, 0, field.what, made, 0)
    return made


def _extend(items: list[Any], data: bytes, pos: int, stop: int, field: Field, depth: int) -> None:
    """Append the values of one occurrence of a repeated field."""
    if field.op is Op.TEXTS:
        items.append(data[pos:stop].decode())
    elif field.op is Op.MESSAGES:
        made: Made = {}
        _read(data, pos, stop, field.what, made, depth + 1)
        items.append(made)
    elif field.op is Op.VALUES:
        items.append(_value(data, pos, stop, field.what, depth))
    else:
        # Repeated numbers are encoded one by one or, as here, packed.
        while pos < stop:
            number, pos = _varint(data, pos)
            items.append(field.what(number))
        if pos != stop:
            raise ValueError("unexpected EOF")


def _read_entry(data: bytes, pos: int, end: int, value: Value, out: Made, depth: int) -> None:
    """Add one map entry: a message with key and value as fields 1 and 2."""
    key = ""
    start = stop = pos
    while pos < end:
        tag, pos = _varint(data, pos)
        if tag != _KEY and tag != _VALUE:
            pos = _skip(data, pos, end, tag, ENTRY)
            continue
        size, pos = _varint(data, pos)
        if pos + size > end:
            raise ValueError("unexpected EOF")
        if tag == _KEY:
            key = data[pos : pos + size].decode()
        else:
            start, stop = pos, pos + size
        pos += size
    if pos != end:
        raise ValueError("unexpected EOF")
    out[key] = data[start:stop].decode() if value.sort is _PLAIN else _value(data, start, stop, value, depth)


def _value(data: bytes, start: int, stop: int, value: Value, depth: int) -> Any:
    """Return the value in the bytes from `start` to `stop`."""
    sort, message, form, zero = value
    if sort is ValueType.BASE64:
        return base64.b64encode(data[start:stop]).decode()
    if sort is ValueType.SPAN:
        return start, stop
    text: Made = {}
    if sort is ValueType.JSON:
        _read(data, start, stop, WRAPPED, text, depth + 1)
        start, stop = text.get("raw", (0, 0))
        return orjson.loads(data[start:stop]) if start < stop else None
    assert message is not None
    if form is None:
        _read(data, start, stop, message, text, depth + 1)
        return text
    if start == stop and form in TIMES:
        return zero
    _read(data, start, stop, message, text, depth + 1)
    return form.convert(text)


def _skip(data: bytes, pos: int, end: int, tag: int, message: Message) -> int:
    """Return the end of an unknown field."""
    number, wire = tag >> 3, tag & 7
    if number in message.numbers or not 0 < number < 1 << 29:
        raise ValueError(f"proto: wrong wireType = {wire} for field {number}")
    if wire == VARINT:
        _, pos = _varint(data, pos)
    elif wire == FIXED64:
        pos += 8
    elif wire == SIZED:
        size, pos = _varint(data, pos)
        pos += size
    elif wire == FIXED32:
        pos += 4
    else:
        raise ValueError(f"proto: illegal wireType {wire}")
    if pos > end:
        raise ValueError("unexpected EOF")
    return pos


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """Return the number at `pos` and the position after it."""
    byte = data[pos]
    if byte < 128:
        return byte, pos + 1
    value, shift = byte & 127, 7
    while True:
        pos += 1
        byte = data[pos]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _UNSIGNED, pos + 1
        shift += 7
        if shift > 63:
            raise ValueError("proto: integer overflow")


def _double(data: bytes, pos: int, end: int) -> float:
    if pos + 8 > end:
        raise ValueError("unexpected EOF")
    value: float = struct.unpack_from("<d", data, pos)[0]
    if value - value != 0:
        raise ValueError("json: unsupported value")
    # JSON has one number type, and Go encodes whole numbers without a decimal point.
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
