"""Kubernetes' list library: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from lamina.cel.declarations import Library
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import method, to_functions
from lamina.cel.numbers import UInt
from lamina.cel.operators import add
from lamina.cel.times import Duration, Timestamp
from lamina.cel.values import Value, compare, equal, no_such_overload

_ORDERED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZERO: Final[dict[str, Value]] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


def _comparison(one: Value, two: Value) -> int:
    """Return how two values compare; 0 for values that cannot be ordered."""
    if not isinstance(two, (bool, int, float, str, bytes, Duration, Timestamp)):
        raise no_such_overload()
    try:
        return compare(one, two)
    except EvaluationError:
        return 0


def is_sorted(items: list[Any]) -> bool:
    return all(_comparison(one, two) <= 0 for one, two in itertools.pairwise(items))


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Value]:
    def choose(items: list[Any]) -> Value:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        found = items[0]
        for item in items[1:]:
            if _comparison(found, item) == sign:
                found = item
        return found

    return choose


def _total(start: Value) -> Callable[[list[Any]], Value]:
    def total(items: list[Any]) -> Value:
        found = start
        for item in items:
            found = add(found, item)
        return found

    return total


def index_of(items: list[Any], item: Value) -> int:
    return next((place for place, one in enumerate(items) if equal(one, item)), -1)


def last_index_of(items: list[Any], item: Value) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if equal(items[place], item)), -1)


_least, _greatest = _extreme("min", 1), _extreme("max", -1)

AGGREGATES: Final = Library(
    name="kubernetes.lists",
    functions=to_functions(
        [
            *(
                method("isSorted", f"list_{k}_is_sorted_bool", f"list({k}) -> bool", is_sorted)
                for k in _ORDERED
            ),
            *(
                method("sum", f"list_{k}_sum_{k}", f"list({k}) -> {k}", _total(zero))
                for k, zero in _ZERO.items()
            ),
            *(method("min", f"list_{k}_min_{k}", f"list({k}) -> {k}", _least) for k in _ORDERED),
            *(method("max", f"list_{k}_max_{k}", f"list({k}) -> {k}", _greatest) for k in _ORDERED),
            method("indexOf", "list_a_index_of_int", "list(A), A -> int", index_of),
            method("lastIndexOf", "list_a_last_index_of_int", "list(A), A -> int", last_index_of),
        ]
    ),
)
