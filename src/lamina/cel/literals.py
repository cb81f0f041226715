"""The values of literals."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from lamina.cel.ast import Literal, LiteralKind
from lamina.cel.lex import BYTES, FLOAT, INT, STRING, UINT
from lamina.cel.numbers import UInt
from lamina.cel.unescape import EscapeError, bytes_of, text_of

LITERALS: Final = frozenset({BYTES, FLOAT, INT, STRING, UINT, "true", "false", "null"})
"""The kinds of tokens that are literals."""

# Module globals, because an attribute lookup in an enum is slower than all else here.
_BOOL, _BYTES, _DOUBLE, _INT, _NULL, _STRING, _UINT = map(
    LiteralKind, ("bool", "bytes", "double", "int", "null", "string", "uint")
)
_INTS: Final = range(-(2**63), 2**63)
_UINTS: Final = range(2**64)
_QUOTES: Final = ("'", '"')
_TRIPLE: Final = ("''", '""')
_MOST_DIGITS: Final = 20

Read: TypeAlias = tuple[int | float | str | bytes | bool | None, LiteralKind, str | None]


def literal(kind: str, text: str, sign: str) -> Read:
    """Return the value of a literal, its kind, and its error if it is invalid."""
    if kind == STRING:
        if "\\" not in text and "\r" not in text and text[0] in _QUOTES and text[1:3] not in _TRIPLE:
            return text[1:-1], _STRING, None
        try:
            return text_of(text), _STRING, None
        except EscapeError as wrong:
            return text, _STRING, str(wrong)
    if kind == INT:
        number = _number(sign, text)
        return number, _INT, None if number in _INTS else "invalid int literal"
    if kind == "true" or kind == "false":
        return kind == "true", _BOOL, None
    if kind == "null":
        return None, _NULL, None
    if kind == FLOAT:
        value = float(sign + text)
        return value, _DOUBLE, None if math.isfinite(value) else "invalid double literal"
    if kind == UINT:
        number = _number("", text[:-1])
        return number, _UINT, None if number in _UINTS else "invalid uint literal"
    try:
        return bytes_of(text), _BYTES, None
    except EscapeError as wrong:
        return b"", _BYTES, str(wrong)


def literal_value(written: Literal) -> int | float | str | bytes | bool | None:
    """Return the run-time value of a Literal node."""
    if written.kind is _UINT:
        assert isinstance(written.value, int)
        return UInt(written.value)
    return written.value


def _number(sign: str, text: str) -> int:
    """Parse an integer; one with too many digits is out of range."""
    if len(text) < _MOST_DIGITS and text.isdigit():
        return int(sign + text)
    hexadecimal = text.startswith("0x")
    digits = (text[2:] if hexadecimal else text).lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return 2**65
    return int(sign + (digits or "0"), 16 if hexadecimal else 10)
