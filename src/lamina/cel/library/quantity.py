"""
Kubernetes' quantity library: `quantity('1.5Gi').isGreaterThan(quantity('500M'))`.

A quantity is an int64 with a scale, or a decimal of any length; only the first can
be an integer. The number of digits of the text decides; sums stay int64 as long as
they fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.numbers import INT_MAX, INT_MIN
from lamina.cel.values import CelObject, TypeValue
from lamina.objects.quantities import quantity

_FAST_DIGITS: Final = 18


@dataclass(frozen=True, slots=True, eq=False)
class Quantity(CelObject):
    """`unscaled` times ten to the power of `scale`; `exact` says that it is an int64 amount."""

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
    """Return the quantity of a text."""
    try:
        found = quantity(text)
    except ValueError as wrong:
        raise EvaluationError(str(wrong)) from None
    return Quantity(found.unscaled, found.scale, found.is_int64)


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
    functions=to_functions(
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
