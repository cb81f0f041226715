"""
Protobuf request bodies, read into the JSON they stand for.

Clients written in Go send built-in kinds this way: four bytes of magic, then an
envelope that names the kind and carries the message. What comes out is what Go
would have written as JSON. A zero is on the wire whether anybody meant it or
not, so it is dropped, unless the field is a pointer in Go (then it was meant)
or one that JSON always shows, as it does every struct.

Any bytes give an object or Misread, in time proportional to their number.
"""

from __future__ import annotations

import base64
import struct
from typing import Any, Final

import orjson

from lamina.objects.types import Made
from lamina.server.misread import Misread, unhandled, unrecognized
from lamina.server.protobuf_forms import TIMES
from lamina.server.protobuf_messages import (
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
    Sort,
    Value,
    message_of,
)

MAGIC: Final = b"k8s\x00"

_MAX_DEPTH: Final = 100
"""How many messages may stand inside each other; a schema nested deeper than this is an attack."""

# Names of the module are found faster than members of an enumeration, and these are asked for at every field.
_TEXT, _MESSAGE, _MAP, _INLINED, _ONE = Op.TEXT, Op.MESSAGE, Op.MAP, Op.INLINED, Op.VALUE
_PLAIN = Sort.TEXT

_UNSIGNED: Final = (1 << 64) - 1
_KEY, _VALUE = 1 << 3 | SIZED, 2 << 3 | SIZED


def decode(body: bytes, expected: tuple[str, str] = ("", "")) -> tuple[str, str, Made]:
    """
    Return the apiVersion, the kind and the object of a body; the object holds both as well.

    `expected` is the apiVersion and kind of the endpoint: they are assumed
    where the envelope names none, and named where the body makes no sense.
    Raises Misread for anything that is no message of a known kind.
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
        raise _refusal(_said(problem), body, expected[1], api_version, kind) from None
    return api_version, kind, obj


def _said(problem: Exception) -> str:
    """Return what went wrong in words that make sense to the sender, where Python's own would not."""
    match problem:
        case IndexError():
            return "unexpected EOF"
        case UnicodeDecodeError():
            return "proto: string field contains invalid UTF-8"
        case OverflowError():
            return "Time.MarshalJSON: year outside of range [0,9999]"
    return str(problem)


def _refusal(problem: str, body: bytes, expected: str, api_version: str, kind: str) -> Misread:
    """Return the error in the words of Kubernetes, which differ once it is known what the body wants to be."""
    if not expected:
        return Misread(problem)
    if kind:
        return unhandled(kind, api_version.rpartition("/")[2], expected, problem)
    return unrecognized(expected, body, problem)


def _unknown(api_version: str, kind: str) -> str:
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def _open(body: bytes) -> tuple[str, str, int, int]:
    """Return the apiVersion and kind the envelope names, and where the message in it starts and stops."""
    if not body:
        raise ValueError("empty data")
    if not body.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise ValueError(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    if len(body) == len(MAGIC):
        raise ValueError("empty body")
    said: Made = {}
    _read(body, len(MAGIC), len(body), ENVELOPE, said, 0)
    named = said.get("type", {})
    start, stop = said.get("raw", (0, 0))
    return named.get("api_version", ""), named.get("kind", ""), start, stop


def _read(data: bytes, pos: int, end: int, message: Message, out: Made, depth: int) -> None:
    """
    Add to `out` what the bytes from `pos` to `end` say.

    A message sent in two pieces is their union, as protobuf has it, so `out`
    may hold something already.
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
            out[field.name] = _blank(field)


def _put(out: Made, name: str, value: Any, kept: bool, zero: Any) -> None:
    """Set a field that comes once. Where it comes twice the last one counts, and that may be a zero."""
    if kept or value != zero:
        out[name] = value
    else:
        out.pop(name, None)


def _blank(field: Field) -> Any:
    """Return what JSON shows of a field that was not sent."""
    if field.op is not Op.MESSAGE:
        return field.zero
    made: Made = {}
    _read(b"", 0, 0, field.what, made, 0)
    return made


def _extend(items: list[Any], data: bytes, pos: int, stop: int, field: Field, depth: int) -> None:
    """Add what a field that comes any number of times says this time."""
    if field.op is Op.TEXTS:
        items.append(data[pos:stop].decode())
    elif field.op is Op.MESSAGES:
        made: Made = {}
        _read(data, pos, stop, field.what, made, depth + 1)
        items.append(made)
    elif field.op is Op.VALUES:
        items.append(_value(data, pos, stop, field.what, depth))
    else:
        # Numbers may come one by one or, as here, packed together.
        while pos < stop:
            number, pos = _varint(data, pos)
            items.append(field.what(number))
        if pos != stop:
            raise ValueError("unexpected EOF")


def _read_entry(data: bytes, pos: int, end: int, value: Value, out: Made, depth: int) -> None:
    """Add one entry of a map: key and value are fields 1 and 2 of a message of their own."""
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
    """Return the value that the bytes from `start` to `stop` stand for."""
    sort, message, form, zero = value
    if sort is Sort.BASE64:
        return base64.b64encode(data[start:stop]).decode()
    if sort is Sort.SPAN:
        return start, stop
    said: Made = {}
    if sort is Sort.JSON:
        _read(data, start, stop, WRAPPED, said, depth + 1)
        start, stop = said.get("raw", (0, 0))
        return orjson.loads(data[start:stop]) if start < stop else None
    assert message is not None
    if form is None:
        _read(data, start, stop, message, said, depth + 1)
        return said
    if start == stop and form in TIMES:
        return zero
    _read(data, start, stop, message, said, depth + 1)
    return form.convert(said)


def _skip(data: bytes, pos: int, end: int, tag: int, message: Message) -> int:
    """Return where a field that nobody knows stops."""
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
    """Return the number at `pos` and where it stops."""
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
    # JSON has one kind of number, and Go writes a whole one without a point.
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
