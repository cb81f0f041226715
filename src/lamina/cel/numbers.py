"""
CEL's numbers: 64-bit integers with overflow errors, and doubles formatted as in Go.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from lamina.cel.errors import EvaluationError

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
UINT_MAX: Final = (1 << 64) - 1

_DECIMAL_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL_UINT: Final = re.compile(r"[0-9]+", re.ASCII)
_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan"
    r"|0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+)",
    re.ASCII | re.IGNORECASE,
)
# A longer text is out of range anyway.
_LONGEST: Final = 4096


class UInt(int):
    """An unsigned integer. It equals the int of the same value, and differs in its type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


def checked_int(value: int) -> int:
    """Return the value, which must fit an int."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def checked_uint(value: int) -> UInt:
    """Return the value as a uint, which it must fit."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def parse_int(text: str) -> int | None:
    """Return the int of a text, as Go's ParseInt in base 10; None for an invalid one."""
    if len(text) > _LONGEST or not _DECIMAL_INT.fullmatch(text):
        return None
    value = int(text)
    return value if INT_MIN <= value <= INT_MAX else None


def parse_uint(text: str) -> UInt | None:
    """Return the uint of a text, as Go's ParseUint in base 10; None for an invalid one."""
    if len(text) > _LONGEST or not _DECIMAL_UINT.fullmatch(text):
        return None
    value = int(text)
    return UInt(value) if value <= UINT_MAX else None


def parse_double(text: str) -> float | None:
    """Return the double of a text, as Go's ParseFloat; None for an invalid one or one out of range."""
    if not _FLOAT.fullmatch(text):
        return None
    try:
        value = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return None
    return None if math.isinf(value) and "inf" not in text.lower() else value


def parse_bool(text: str) -> bool | None:
    """Return the bool of a text, as Go's ParseBool; None for an invalid one."""
    if text in {"1", "t", "T", "TRUE", "true", "True"}:
        return True
    if text in {"0", "f", "F", "FALSE", "false", "False"}:
        return False
    return None


def int_from_double(value: float) -> int:
    """Return a double truncated to an int."""
    if math.isfinite(value) and float(INT_MIN) < value < float(INT_MAX):
        return int(value)
    raise EvaluationError("integer overflow")


def uint_from_double(value: float) -> UInt:
    """Return a double truncated to a uint."""
    if math.isfinite(value) and 0 <= value < float(1 << 64):
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def shortest(value: float) -> str:
    """Return a finite double with the fewest digits, without an exponent (Go's 'f', -1)."""
    text = repr(value)
    if "e" not in text:
        return text[:-2] if text.endswith(".0") else text
    shown = format(Decimal(text), "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def fixed(value: float, precision: int) -> str:
    """Return a finite double with this many digits after the point, rounded as in C and Go."""
    return f"{value:.{precision}f}"


def scientific(value: float, precision: int) -> str:
    """Return a finite double with one digit before the point and an exponent of two digits or more."""
    return f"{value:.{precision}e}"
