"""
Quantities with the grammar, the canonical form and the error texts of Kubernetes: `250m`, `16Gi`, `2e3`.

A quantity keeps its text where Kubernetes considers it canonical:
`1.500` stays, `0.5` becomes `500m`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

_FORMAT_WRONG: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_NUMERIC_WRONG: Final = "unable to parse numeric part of quantity"
_SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

_QUANTITY: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?(([eEinumkKMGTP]*)[-+]?[0-9]*)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9]{1,12})")
_LARGEST: Final = 2**63 - 1
_NANO: Final = -9
_DIGITS: Final = 18
"""The number of decimal digits that always fit 64 bits; longer numbers are exact, and rounded up to nano."""
_MOST_DIGITS: Final = 4000
_LARGEST_SCALE: Final = 10_000
"""Larger exponents are refused: arithmetic with them would take all memory."""


class Quantity(NamedTuple):
    """`unscaled` times ten to the `scale`, in one of three notations (`form`)."""

    unscaled: int
    scale: int
    form: str
    text: str = ""
    """The text it was parsed from, if that is canonical."""
    is_int64: bool = True
    """Whether Kubernetes keeps it as a 64-bit integer and a scale."""

    @property
    def amount(self) -> Fraction:
        return self.unscaled * Fraction(10) ** self.scale

    def __str__(self) -> str:
        return self.text or _to_text(self)


@lru_cache(maxsize=4096)
def quantity(text: str) -> Quantity:
    """Return the quantity of a text; raises ValueError with Kubernetes' message."""
    if text == "0":
        return Quantity(0, 0, "DecimalSI", text)
    match = _QUANTITY.fullmatch(text)
    if not text or match is None:
        raise ValueError(_FORMAT_WRONG)
    sign, whole, part, suffix, _ = match.groups()
    if match.end(2) == len(text) and not whole:
        return Quantity(0, 0, "DecimalSI")
    base, exponent, form = _suffix(suffix)
    whole, part = whole or "0", part or ""
    shifted = whole + part
    if len(shifted) > _MOST_DIGITS or exponent > _LARGEST_SCALE:
        raise ValueError(_NUMERIC_WRONG)
    number = -int(shifted) if sign == "-" else int(shifted)
    scale = exponent - len(part)
    if base == 10:
        fits = len(shifted) <= _DIGITS and scale >= _NANO
    else:
        fits = not part and 15 - len(whole) - int(exponent * 3 / 10) - 1 >= 0
    if not fits:
        if not text[len(sign) : match.start(4)].strip("."):
            raise ValueError(_NUMERIC_WRONG)
        return _exact(number, scale, form) if base == 10 else _exact(number << exponent, -len(part), form)
    if base == 2:
        kept = exponent % 10 == 0 and int(whole) & 7 != 0
        return Quantity(number << exponent, 0, form, text if kept else "")
    kept = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
    return Quantity(number, scale, form, text if kept else "")


def canonical_quantity(value: object) -> str:
    """Return the text of a quantity as the API writes it; numbers are quantities too."""
    if type(value) is str:
        return _canonical(value)
    if type(value) is int or type(value) is float:
        return _canonical(repr(value).replace("e+", "e"))
    raise ValueError(_FORMAT_WRONG)


@lru_cache(maxsize=4096)
def milli_quantity(text: str) -> str:
    """Return the text of a quantity rounded up to thousandths, as amounts of resources are."""
    found = quantity(text.strip())
    if found.scale >= -3:
        return str(found)
    return str(Quantity(_rounded_up(found.unscaled, -3 - found.scale), -3, found.form))


@lru_cache(maxsize=4096)
def thousandths(text: str) -> int:
    """Return a quantity in thousandths, rounded up; 0 for a text that is not a quantity."""
    try:
        unscaled, scale, *_ = quantity(text.strip())
    except ValueError:
        return 0
    return int(unscaled * 10 ** (scale + 3)) if scale >= -3 else -(-unscaled // int(10 ** (-3 - scale)))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    return str(quantity(text.strip()))


def _suffix(suffix: str) -> tuple[int, int, str]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    if exponent := _EXPONENT.fullmatch(suffix):
        return 10, int(exponent[1]), "DecimalExponent"
    raise ValueError(_SUFFIX_WRONG)


def _exact(number: int, scale: int, form: str) -> Quantity:
    if scale < _NANO:
        # Rounded up, so that a small request does not become zero.
        number, scale = _rounded_up(number, _NANO - scale), _NANO
    if form == "BinarySI":
        amount = number * Fraction(10) ** scale
        if abs(amount) > _LARGEST:
            number, scale = (_LARGEST if number > 0 else -_LARGEST), 0
        elif 0 < abs(amount) < 1:
            form = "DecimalSI"
    return Quantity(number, scale, form, is_int64=False)


def _rounded_up(number: int, places: int) -> int:
    """Return a number without its last decimal places, rounded away from zero."""
    if places > _MOST_DIGITS:
        kept = int(number != 0)
    else:
        kept = -(-abs(number) // int(10**places))
    return -kept if number < 0 else kept


def _to_text(found: Quantity) -> str:
    number, scale, form = found.unscaled, found.scale, found.form
    if not number:
        return "0"
    if form == "BinarySI":
        amount = found.amount
        if -1024 < amount < 1024 or amount.denominator != 1:
            form = "DecimalSI"
        else:
            whole, times = amount.numerator, 0
            while whole % 1024 == 0:
                whole, times = whole // 1024, times + 10
            return f"{whole}{_BINARY_SUFFIX.get(times, '')}"
    while number % 10 == 0:
        number, scale = number // 10, scale + 1
    number, scale = number * 10 ** (scale % 3), scale - scale % 3
    if form == "DecimalSI":
        return f"{number}{_DECIMAL_SUFFIX.get(scale, '')}"
    return f"{number}e{scale}" if scale else str(number)
