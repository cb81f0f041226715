"""
Kubernetes' quantities: `quantity('1.5Gi').isGreaterThan(quantity('500M'))`.

A quantity is kept in one of two forms, and only the first of them can say that
it is an integer. Which one a text gets depends on how many digits it has; sums
stay in the first as long as they fit 64 bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from lamina.cel.declare import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, gathered, method
from lamina.cel.numbers import INT_MAX, INT_MIN
from lamina.cel.values import CelObject, TypeValue

_WRITTEN: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*(?:[+-]?[0-9]*)?)", re.ASCII)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_FAST_DIGITS: Final = 18
_NANO: Final = -9
_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NO_SUFFIX: Final = "unable to parse quantity's suffix"
_NO_NUMBER: Final = "unable to parse numeric part of quantity"
# What is written with a larger exponent is refused, not worked out.
_LARGEST_EXPONENT: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Quantity(CelObject):
    """`unscaled` times ten to the power of `scale`; `exact` is the form that can be an integer."""

    cel_type: ClassVar[TypeValue] = TypeValue("kubernetes.Quantity")

    unscaled: int
    scale: int
    exact: bool

    @property
    def amount(self) -> Fraction:
        return self.unscaled * Fraction(10) ** self.scale

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)


def parse(text: str) -> Quantity:
    """Return the quantity a text stands for."""
    found = _WRITTEN.fullmatch(text)
    if not text or found is None:
        raise EvaluationError(_WRONG)
    sign, whole, fraction, suffix = found[1], (found[2] or "").lstrip("0"), found[3] or "", found[4]
    if not found[2] and found[3] is None and suffix:
        whole = ""
    binary, exponent = _suffix(suffix)
    digits = (whole or "0") + fraction
    negative = sign == "-"
    fast = _fast(whole or "0", fraction, binary, exponent)
    if fast is not None:
        return Quantity(-fast[0] if negative else fast[0], fast[1], True)
    if not (found[2] or fraction):
        raise EvaluationError(_NO_NUMBER)
    if len(digits) > _LARGEST_EXPONENT or abs(exponent) > _LARGEST_EXPONENT:
        raise EvaluationError(_NO_NUMBER)
    unscaled, scale = int(digits), -len(fraction)
    if binary:
        unscaled <<= exponent
    else:
        scale += exponent
    # Less than nothing at all, but more than nothing, is rounded up to the least there is.
    if scale < _NANO:
        unscaled, scale = -(-unscaled // 10 ** (_NANO - scale)), _NANO
    if binary and unscaled * Fraction(10) ** scale > INT_MAX:
        unscaled, scale = INT_MAX, 0
    return Quantity(-unscaled if negative else unscaled, scale, False)


def _suffix(suffix: str) -> tuple[bool, int]:
    """Return whether a suffix is a power of two, and the exponent."""
    if suffix in _BINARY:
        return True, _BINARY[suffix]
    if suffix in _DECIMAL:
        return False, _DECIMAL[suffix]
    written = _EXPONENT.fullmatch(suffix)
    if written is None or len(written[1]) > 12:
        raise EvaluationError(_NO_SUFFIX)
    return False, int(written[1])


def _fast(whole: str, fraction: str, binary: bool, exponent: int) -> tuple[int, int] | None:
    """Return the value and scale of what is short enough for 64 bits."""
    if binary:
        if fraction or 15 - len(whole) - int(exponent * 3 / 10) - 1 < 0:
            return None
        value = int(whole) << exponent
        return (value, 0) if value <= INT_MAX else None
    scale = exponent - len(fraction)
    if len(whole) + len(fraction) > _FAST_DIGITS or scale < _NANO:
        return None
    return int(whole + fraction), scale


def is_quantity(text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def _integer(value: Quantity) -> int | None:
    if not value.exact or value.scale < 0 or value.scale > _FAST_DIGITS:
        return 0 if value.exact and value.unscaled == 0 and value.scale >= 0 else None
    found = value.unscaled * 10**value.scale
    return found if INT_MIN <= found <= INT_MAX else None


def as_integer(value: Quantity) -> int:
    found = _integer(value)
    if found is None:
        raise EvaluationError("cannot convert value to integer")
    return found


def is_integer(value: Quantity) -> bool:
    return _integer(value) is not None


def as_float(value: Quantity) -> float:
    try:
        base = float(value.unscaled)
        return base if not value.scale else base * float(f"1e{value.scale}")
    except OverflowError:
        return float("inf") if value.unscaled > 0 else float("-inf")


def sign(value: Quantity) -> int:
    return (value.unscaled > 0) - (value.unscaled < 0)


def compare(one: Quantity, two: Quantity) -> int:
    return (one.amount > two.amount) - (one.amount < two.amount)


def add(one: Quantity, two: Quantity | int) -> Quantity:
    other = two if isinstance(two, Quantity) else Quantity(two, 0, True)
    if one.exact and other.exact:
        if not other.unscaled:
            return one
        if not one.unscaled:
            return other
    scale = min(one.scale, other.scale)
    total = one.unscaled * 10 ** (one.scale - scale) + other.unscaled * 10 ** (other.scale - scale)
    fits = all(INT_MIN <= value <= INT_MAX for value in (total, *_scaled(one, other, scale)))
    return Quantity(total, scale, one.exact and other.exact and fits)


def _scaled(one: Quantity, two: Quantity, scale: int) -> tuple[int, int]:
    return one.unscaled * 10 ** (one.scale - scale), two.unscaled * 10 ** (two.scale - scale)


def subtract(one: Quantity, two: Quantity | int) -> Quantity:
    other = two if isinstance(two, Quantity) else Quantity(two, 0, True)
    return add(one, Quantity(-other.unscaled, other.scale, other.exact))


_Q: Final = "kubernetes.Quantity"

QUANTITY: Final = Library(
    name="kubernetes.quantity",
    functions=gathered(
        [
            function("quantity", "string_to_quantity", f"string -> {_Q}", parse),
            function("isQuantity", "is_quantity_string", "string -> bool", is_quantity),
            function("sign", "quantity_sign", f"{_Q} -> int", sign),
            method(
                "isGreaterThan",
                "quantity_is_greater_than",
                f"{_Q}, {_Q} -> bool",
                lambda a, b: compare(a, b) > 0,
            ),
            method(
                "isLessThan", "quantity_is_less_than", f"{_Q}, {_Q} -> bool", lambda a, b: compare(a, b) < 0
            ),
            method("compareTo", "quantity_compare_to", f"{_Q}, {_Q} -> int", compare),
            method("asApproximateFloat", "quantity_get_float", f"{_Q} -> double", as_float),
            method("asInteger", "quantity_get_int", f"{_Q} -> int", as_integer),
            method("isInteger", "quantity_is_integer", f"{_Q} -> bool", is_integer),
            method("add", "quantity_add", f"{_Q}, {_Q} -> {_Q}", add),
            method("add", "quantity_add_int", f"{_Q}, int -> {_Q}", add),
            method("sub", "quantity_sub", f"{_Q}, {_Q} -> {_Q}", subtract),
            method("sub", "quantity_sub_int", f"{_Q}, int -> {_Q}", subtract),
        ]
    ),
)
