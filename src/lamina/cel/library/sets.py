"""The sets extension: lists as sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from lamina.cel.declarations import Library
from lamina.cel.library.signature import function, to_functions
from lamina.cel.values import contains


def holds(items: list[Any], others: list[Any]) -> bool:
    return all(contains(items, other) for other in others)


def equivalent(one: list[Any], two: list[Any]) -> bool:
    return holds(one, two) and holds(two, one)


def intersects(one: list[Any], two: list[Any]) -> bool:
    return any(contains(two, item) for item in one)


def _cost(factor: int) -> Callable[[Sequence[Any], Any], int]:
    return lambda args, _: 1 + len(args[0]) * len(args[1]) * factor


SETS: Final = Library(
    name="sets",
    functions=to_functions(
        [
            function(
                "sets.contains", "list_sets_contains_list", "list(T), list(T) -> bool", holds, cost=_cost(1)
            ),
            function(
                "sets.equivalent",
                "list_sets_equivalent_list",
                "list(T), list(T) -> bool",
                equivalent,
                cost=_cost(2),
            ),
            function(
                "sets.intersects",
                "list_sets_intersects_list",
                "list(T), list(T) -> bool",
                intersects,
                cost=_cost(1),
            ),
        ]
    ),
)
