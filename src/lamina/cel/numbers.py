"""
Numbers as CEL has them: 64-bit integers that overflow, and doubles printed as Go prints them.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
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
# A number is never longer than the text it came from, and such a text is no number.
_LONGEST: Final = 4096
_EXACT: Final = Context(prec=1200, rounding=ROUND_HALF_EVEN)


class UInt(int):
    """An unsigned integer. It equals the int of the same value, and its type tells the two apart."""

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
    """Return the int a text stands for, as Go's ParseInt reads it in base 10, or None."""
    if len(text) > _LONGEST or not _DECIMAL_INT.fullmatch(text):
        return None
    value = int(text)
    return value if INT_MIN <= value <= INT_MAX else None


def parse_uint(text: str) -> UInt | None:
    """Return the uint a text stands for, as Go's ParseUint reads it in base 10, or None."""
    if len(text) > _LONGEST or not _DECIMAL_UINT.fullmatch(text):
        return None
    value = int(text)
    return UInt(value) if value <= UINT_MAX else None


def parse_double(text: str) -> float | None:
    """Return the double a text stands for, as Go's ParseFloat reads it, or None; too large is None too."""
    if not _FLOAT.fullmatch(text):
        return None
    try:
        value = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return None
    return None if math.isinf(value) and "inf" not in text.lower() else value


def parse_bool(text: str) -> bool | None:
    """Return the bool a text stands for, as Go's ParseBool reads it, or None."""
    if text in {"1", "t", "T", "TRUE", "true", "True"}:
        return True
    if text in {"0", "f", "F", "FALSE", "false", "False"}:
        return False
    return None


def int_from_double(value: float) -> int:
    """Return a double cut to an int."""
    if math.isfinite(value) and float(INT_MIN) < value < float(INT_MAX):
        return int(value)
    raise EvaluationError("integer overflow")


def uint_from_double(value: float) -> UInt:
    """Return a double cut to a uint."""
    if math.isfinite(value) and 0 <= value < float(1 << 64):
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def shortest(value: float) -> str:
    """Return a finite double with the fewest digits that tell it apart, without an exponent (Go's 'f', -1)."""
    text = repr(value)
    if "e" not in text:
        return text[:-2] if text.endswith(".0") else text
    shown = format(Decimal(text), "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def general(value: float) -> str:
    """Return a double as Go's %g shows it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).lstrip("0")
    stripped = written.rstrip("0")
    point = len(written) + exponent
    mark = "-" if sign else ""
    # The number of digits has no say: six is where an exponent takes over, however many there are.
    if not -4 <= point - 1 < 6:
        return f"{mark}{_scientific(stripped, point - 1)}"
    return f"{mark}{_plain(stripped, point)}"


def _plain(digits: str, point: int) -> str:
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def _scientific(digits: str, exponent: int) -> str:
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def fixed(value: float, precision: int) -> str:
    """Return a finite double with that many digits after the point, as C and Go round it."""
    return f"{value:.{precision}f}"


def scientific(value: float, precision: int) -> str:
    """Return a finite double with one digit before the point and an exponent of two digits or more."""
    return f"{value:.{precision}e}"


def exactly(value: float) -> Decimal:
    """Return a finite double as the decimal number it is."""
    return _EXACT.create_decimal(value)
