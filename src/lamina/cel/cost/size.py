"""
Estimates of sizes and costs, as ranges.

Both ends are capped at the largest 64-bit number, which also stands for "unknown".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from lamina.cel.ast import Expr
from lamina.cel.types import Type

MOST: Final = 2**64 - 1
STRING_TRAVERSAL: Final = 0.1
"""The cost of traversing one character of a string."""
REGEX_LENGTH: Final = 0.25
"""The cost of one character of a regular expression, for each cost unit of the string it is matched with."""
LIST_BASE: Final = 10
MAP_BASE: Final = 30
STRUCT_BASE: Final = 40


class Estimate(NamedTuple):
    """A size or a cost that is at least `least` and at most `most`."""

    least: int
    most: int

    def plus(self, other: Estimate) -> Estimate:
        return Estimate(min(self[0] + other[0], MOST), min(self[1] + other[1], MOST))

    def times(self, other: Estimate) -> Estimate:
        return Estimate(min(self[0] * other[0], MOST), min(self[1] * other[1], MOST))

    def scaled(self, factor: float) -> Estimate:
        """Multiply, and round up."""
        return Estimate(scaled(self[0], factor), scaled(self[1], factor))

    def union(self, other: Estimate) -> Estimate:
        return Estimate(min(self[0], other[0]), max(self[1], other[1]))


def scaled(amount: int, factor: float) -> int:
    """Multiply by a fraction and round up, without exceeding 64 bits."""
    exact = float(amount)
    if exact > 0 and factor > 0 and exact > MOST / factor:
        return MOST
    up = math.ceil(exact * factor)
    return MOST if up >= 2**64 else up


def exactly(amount: int) -> Estimate:
    return Estimate(amount, amount)


UNKNOWN: Final = Estimate(0, MOST)
NOTHING: Final = Estimate(0, 0)
ONE: Final = Estimate(1, 1)


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """The cost of one call without its arguments, and the size of its result, where that is known."""

    cost: Estimate
    result: Estimate | None = None


@dataclass(frozen=True, slots=True)
class CostNode:
    """
    A node of an expression, as the estimate uses it.

    `path` is the path of input data from a variable, through fields, `@items`,
    `@keys`, `@values` and `@indices`. `computed` is the size derived from the
    expression itself; `size` is that, or the schema's, or unknown.
    """

    path: tuple[str, ...]
    type: Type
    expr: Expr | None
    computed: Estimate | None
    sizes: SizeEstimator

    @property
    def size(self) -> Estimate:
        if self.computed is not None:
            return self.computed
        return self.sizes(self) or UNKNOWN

    @property
    def element(self) -> CostNode | None:
        """The node of the elements of a list or another parameterized type."""
        if not self.type.params:
            return None
        path = (*self.path, "@items") if self.path else ()
        return CostNode(path, self.type.params[0], None, None, self.sizes)


SizeEstimator: TypeAlias = Callable[[CostNode], Estimate | None]
"""Returns the size of input data, where it is known."""


def no_sizes(node: CostNode) -> Estimate | None:
    """Return None: no size of the input is known."""
    return None
