"""
Sizes and costs that are known only within bounds.

Both are a smallest and a largest number, and neither ever exceeds what fits in
64 bits: the largest number there stands for "no idea".
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
"""What looking at one character of a string costs."""
REGEX_LENGTH: Final = 0.25
"""What one character of a regular expression costs, for each unit of the string it is applied to."""
LIST_BASE: Final = 10
MAP_BASE: Final = 30
STRUCT_BASE: Final = 40


class Span(NamedTuple):
    """A size or a cost that is at least `least` and at most `most`."""

    least: int
    most: int

    def plus(self, other: Span) -> Span:
        return Span(min(self[0] + other[0], MOST), min(self[1] + other[1], MOST))

    def times(self, other: Span) -> Span:
        return Span(min(self[0] * other[0], MOST), min(self[1] * other[1], MOST))

    def scaled(self, factor: float) -> Span:
        """Multiply, and round up."""
        return Span(scaled(self[0], factor), scaled(self[1], factor))

    def union(self, other: Span) -> Span:
        return Span(min(self[0], other[0]), max(self[1], other[1]))


def scaled(amount: int, factor: float) -> int:
    """Multiply by a fraction and round up, without exceeding 64 bits."""
    exact = float(amount)
    if exact > 0 and factor > 0 and exact > MOST / factor:
        return MOST
    up = math.ceil(exact * factor)
    return MOST if up >= 2**64 else up


def exactly(amount: int) -> Span:
    return Span(amount, amount)


UNKNOWN: Final = Span(0, MOST)
NOTHING: Final = Span(0, 0)
ONE: Final = Span(1, 1)


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """What one call costs without its arguments, and how large its result can be, where that is known."""

    cost: Span
    result: Span | None = None


@dataclass(frozen=True, slots=True)
class CostNode:
    """
    A part of an expression, as seen by an estimate.

    `path` leads to it from a variable, through fields, `@items`, `@keys`,
    `@values` and `@indices`, where it is data that came in. `computed` is the
    size the expression itself tells; `size` is that, or what the schema says, or
    unknown.
    """

    path: tuple[str, ...]
    type: Type
    expr: Expr | None
    computed: Span | None
    sizes: Sizes

    @property
    def size(self) -> Span:
        if self.computed is not None:
            return self.computed
        return self.sizes(self) or UNKNOWN

    @property
    def element(self) -> CostNode | None:
        """The elements of a list, and of anything else with a parameter."""
        if not self.type.params:
            return None
        path = (*self.path, "@items") if self.path else ()
        return CostNode(path, self.type.params[0], None, None, self.sizes)


Sizes: TypeAlias = Callable[[CostNode], Span | None]
"""How large something can be that came in, where that is known."""


def no_sizes(node: CostNode) -> Span | None:
    """Nothing is known about the size of what comes in."""
    return None
