"""
Decoding errors with the messages of Go's decoders.

A syntax error in JSON is located by scanning the text byte by byte, only after the fast parser has failed.
"""

from __future__ import annotations

import re
from typing import Final

from lamina.errors import BadRequest

_SHOWN: Final = 30
_SPACE: Final = b" \t\r\n"
_NUMBER: Final = b"-0123456789"
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_SCALAR: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_PLAIN_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_END: Final = "unexpected end of JSON input"


class DecodeError(BadRequest):
    """A body that cannot be decoded. `why` is the decoder's message, `message` the one of the response."""

    def __init__(self, why: str, message: str = "") -> None:
        super().__init__(message or why)
        self.why = why


def unrecognized(kind: str, data: bytes, why: str) -> DecodeError:
    """Return the error for a body whose type cannot be determined."""
    return DecodeError(
        why, f"the object provided is unrecognized (must be of type {kind}): {why} ({summary(data)})"
    )


def unhandled(named: str, version: str, kind: str, why: str) -> DecodeError:
    """Return the error for a body that names its type but cannot be decoded as the endpoint's kind."""
    return DecodeError(why, f'{named} in version "{version}" cannot be handled as a {kind}: {why}')


_MISTYPED: Final = re.compile(
    r"json: cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field \S+|value) of type (.+)"
)
_GO_KINDS: Final = {"array": "slice", "object": "map", "number": "int64"}


def converter_error(why: str) -> str:
    """Return the message of the converter that strategic merge patches use, which names no field."""
    found = _MISTYPED.fullmatch(why)
    if found is None:
        return why
    given, wanted = _GO_KINDS.get(found[1], found[1]), found[2]
    if wanted.startswith("map["):
        return f"cannot restore map from {given}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {given}"
    if "." in wanted:
        return f"cannot restore struct from: {given}"
    if given == "int64" and wanted == "string":
        return "cannot convert int64 to string"
    return f"unrecognized type: {wanted}"


def summary(data: bytes) -> str:
    """Return the beginning of a body: as text if it looks like JSON, otherwise in hexadecimal."""
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SHOWN else ""
    head = data[:_SHOWN]
    return (head.decode("utf-8", "replace") if data[:1] == b"{" else head.hex()) + more


def json_syntax_error(data: bytes) -> str:
    """Return Go's message for a JSON syntax error, empty if the text is valid."""
    try:
        end = _space(data, _value(data, _space(data, 0)))
        if end < len(data):
            raise _Stop(end, "after top-level value")
    except _Stop as stop:
        if stop.at >= len(data):
            return _END
        return f"invalid character {_quoted(data[stop.at])} {stop.where}"
    except RecursionError:
        return "exceeded max depth"
    return ""


class _Stop(Exception):
    """The position of a syntax error and what was expected there."""

    def __init__(self, at: int, where: str) -> None:
        self.at, self.where = at, where


def _quoted(byte: int) -> str:
    letter = chr(byte)
    if letter == "'":
        return "'\\''"
    if letter == '"' or (letter.isprintable() and letter != "\\"):
        return f"'{letter}'"
    if byte >= 0x80:
        return f"'\\u{byte:04x}'"
    short = {
        "\\": "\\\\",
        "\n": "\\n",
        "\t": "\\t",
        "\r": "\\r",
        "\b": "\\b",
        "\f": "\\f",
        "\a": "\\a",
        "\v": "\\v",
    }
    return f"'{short.get(letter, f'{chr(92)}x{byte:02x}')}'"


def _space(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _SPACE:
        at += 1
    return at


def _value(data: bytes, at: int) -> int:
    """Return the end of the value that begins at a position."""
    if at >= len(data):
        raise _Stop(at, "")
    first = data[at]
    if first == ord("{"):
        return _object(data, at)
    if first == ord("["):
        return _array(data, at)
    if first == ord('"'):
        return _string(data, at)
    if first in _LITERALS:
        return _literal(data, at, _LITERALS[first])
    if first in _NUMBER:
        return _number(data, at)
    raise _Stop(at, "looking for beginning of value")


def _object(data: bytes, at: int) -> int:
    at = _space(data, at + 1)
    if data[at : at + 1] == b"}":
        return at + 1
    while True:
        if data[at : at + 1] != b'"':
            raise _Stop(at, "looking for beginning of object key string")
        at = _space(data, _string(data, at))
        if data[at : at + 1] != b":":
            raise _Stop(at, "after object key")
        at = _space(data, _value(data, _space(data, at + 1)))
        if data[at : at + 1] == b"}":
            return at + 1
        if data[at : at + 1] != b",":
            raise _Stop(at, "after object key:value pair")
        at = _space(data, at + 1)


def _array(data: bytes, at: int) -> int:
    at = _space(data, at + 1)
    if data[at : at + 1] == b"]":
        return at + 1
    while True:
        at = _space(data, _value(data, at))
        if data[at : at + 1] == b"]":
            return at + 1
        if data[at : at + 1] != b",":
            raise _Stop(at, "after array element")
        at = _space(data, at + 1)


def _string(data: bytes, at: int) -> int:
    if found := _SCALAR.match(data, at):
        return found.end()
    at += 1
    while at < len(data):
        byte = data[at]
        if byte == ord('"'):
            return at + 1
        if byte < 0x20:
            raise _Stop(at, "in string literal")
        if byte == ord("\\"):
            at += 1
            if at < len(data) and data[at] == ord("u"):
                for _ in range(4):
                    at += 1
                    if at < len(data) and data[at] not in b"0123456789abcdefABCDEF":
                        raise _Stop(at, "in \\u hexadecimal character escape")
            elif at < len(data) and data[at] not in b'"\\/bfnrt':
                raise _Stop(at, "in string escape code")
        at += 1
    raise _Stop(len(data), "")


def _literal(data: bytes, at: int, word: bytes) -> int:
    for offset, expected in enumerate(word):
        if at + offset >= len(data):
            raise _Stop(len(data), "")
        if data[at + offset] != expected:
            raise _Stop(at + offset, f"in literal {word.decode()} (expecting '{chr(expected)}')")
    return at + len(word)


def _number(data: bytes, at: int) -> int:
    found = _PLAIN_NUMBER.match(data, at)
    if found is None:
        raise _Stop(at + 1, "in numeric literal")
    end = found.end()
    # An incomplete fraction or exponent is reported after the point or the `e`.
    if data[end : end + 1] == b"." and b"." not in found[0]:
        raise _Stop(end + 1, "after decimal point in numeric literal")
    if data[end : end + 1] in (b"e", b"E") and b"e" not in found[0].lower():
        sign = data[end + 1 : end + 2] in (b"+", b"-")
        raise _Stop(end + 1 + sign, "in exponent of numeric literal")
    return end
