"""From a literal, as it is written or read, to its value."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from lamina.cel.ast import Literal, LiteralKind
from lamina.cel.lex import BYTES, FLOAT, INT, STRING, UINT, Token
from lamina.cel.numbers import UInt
from lamina.cel.unescape import EscapeError, bytes_of, text_of

LITERALS: Final = frozenset({BYTES, FLOAT, INT, STRING, UINT, "true", "false", "null"})
"""The kinds of tokens that are literals."""

_INTS: Final = range(-(2**63), 2**63)
_UINTS: Final = range(2**64)
_MOST_DIGITS: Final = 20

Read: TypeAlias = tuple[int | float | str | bytes | bool | None, LiteralKind, str | None]


def literal(token: Token, sign: str) -> Read:
    """Return the value of a literal and its kind, and what is wrong with it, if anything is."""
    text = token.text
    match token.kind:
        case "NUM_INT":
            number = _number(sign, text)
            return number, LiteralKind.INT, None if number in _INTS else "invalid int literal"
        case "NUM_UINT":
            number = _number("", text[:-1])
            return number, LiteralKind.UINT, None if number in _UINTS else "invalid uint literal"
        case "NUM_FLOAT":
            value = float(sign + text)
            return value, LiteralKind.DOUBLE, None if math.isfinite(value) else "invalid double literal"
        case "STRING":
            try:
                return text_of(text), LiteralKind.STRING, None
            except EscapeError as wrong:
                return text, LiteralKind.STRING, str(wrong)
        case "BYTES":
            try:
                return bytes_of(text), LiteralKind.BYTES, None
            except EscapeError as wrong:
                return b"", LiteralKind.BYTES, str(wrong)
        case "null":
            return None, LiteralKind.NULL, None
        case _:
            return text == "true", LiteralKind.BOOL, None


def literal_value(written: Literal) -> int | float | str | bytes | bool | None:
    """Return a literal of a tree as a value that functions take."""
    if written.kind is LiteralKind.UINT:
        assert isinstance(written.value, int)
        return UInt(written.value)
    return written.value


def _number(sign: str, text: str) -> int:
    """Read a number; one with more digits than any that fits is as good as too large."""
    hexadecimal = text.startswith("0x")
    digits = (text[2:] if hexadecimal else text).lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return 2**65
    return int(sign + (digits or "0"), 16 if hexadecimal else 10)
