"""The lists extension: slicing, flattening, sorting, ranges, reversal, distinct items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any, Final

from lamina.cel.ast import ADD, UNUSED, Call, Comprehension, Expr, Ident, LiteralKind, MakeList, Select
from lamina.cel.declarations import Library, Macro, MacroContext
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.values import Value, compare, equal, type_of

_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ID_NAMES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
_INPUT: Final = "@__sortBy_input__"
# A list that would not fit into memory is refused before it is created; its cost is counted afterwards.
_LONGEST: Final = 10_000_000


def cut(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat = list(items)
    while depth > 0 and any(isinstance(item, list) for item in flat):
        flat = [part for item in flat for part in (item if isinstance(item, list) else [item])]
        depth -= 1
    return flat


def sort(items: list[Any]) -> list[Any]:
    return sort_by_keys(items, items)


def sort_by_keys(items: list[Any], keys: list[Any]) -> list[Any]:
    """Return items sorted by their keys, which have one type."""
    if len(items) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    if isinstance(keys[0], (list, dict)) or keys[0] is None:
        raise EvaluationError("list elements must be comparable")
    kind = type_of(keys[0])
    if len(keys) > 1 and any(type_of(key) != kind for key in keys):
        raise EvaluationError("list elements must have the same type")
    pairs = sorted(zip(keys, items, strict=True), key=cmp_to_key(_order_of_keys))
    return [item for _, item in pairs]


def _order_of_keys(one: tuple[Value, Value], two: tuple[Value, Value]) -> int:
    try:
        return compare(one[0], two[0])
    except EvaluationError:
        # NaN has no order.
        return 0


def numbers(count: int) -> list[int]:
    if count > _LONGEST:
        raise EvaluationError(f"lists.range({count}) is too long")
    return list(range(count))


def reverse(items: list[Any]) -> list[Any]:
    return items[::-1]


def distinct(items: list[Any]) -> list[Any]:
    """Return the items without those that equal an earlier one."""
    if all(type(item) is str for item in items):
        return list(dict.fromkeys(items))
    found: list[Any] = []
    for item in items:
        if not any(equal(item, other) for other in found):
            found.append(item)
    return found


def _sort_by(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    """Expand to a bound list, the list of its keys, and the sort of the one by the other."""
    if not isinstance(target, (MakeList, Select, Ident, Comprehension, Call)):
        raise make.fail(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            target,
        )
    if not isinstance(args[0], Ident):
        raise make.fail("argument is not an identifier", args[0])
    keys = make.comprehension(
        make.ident(_INPUT),
        args[0].name,
        make.accumulator,
        make.make_list(),
        make.literal(True, LiteralKind.BOOL),
        make.call(ADD, make.accumulated(), make.make_list(args[1])),
        make.accumulated(),
    )
    return make.comprehension(
        make.make_list(),
        UNUSED,
        _INPUT,
        target,
        make.literal(False, LiteralKind.BOOL),
        make.ident(_INPUT),
        make.member_call("@sortByAssociatedKeys", make.ident(_INPUT), keys),
    )


def _allocating(factor: float, size: int) -> int:
    return int(size * factor) + 11


def _by_result(_: Sequence[Any], result: Any) -> int:
    return _allocating(1, len(result) if isinstance(result, list) else 1)


def _by_depth(args: Sequence[Any], _: Any) -> int:
    return _allocating(float(args[1]) if len(args) == 2 else 1.0, len(args[0]))


def _by_square(place: int) -> Callable[[Sequence[Any], Any], int]:
    def cost(args: Sequence[Any], _: Any) -> int:
        items = args[place]
        factor = 2.1 if items and isinstance(items[0], (str, bytes)) else 2.0
        return _allocating(factor, len(items) ** 2)

    return cost


_FUNCTIONS: Final = [
    method("slice", "list_slice", "list(T), int, int -> list(T)", cut, cost=_by_result),
    method("flatten", "list_flatten", "list(list(T)) -> list(T)", flatten, cost=_by_depth),
    method("flatten", "list_flatten_int", "list(dyn), int -> list(dyn)", flatten, cost=_by_depth),
    *(
        method(
            "sort",
            f"list_{_ID_NAMES.get(kind, kind)}_sort",
            f"list({kind}) -> list({kind})",
            sort,
            cost=_by_square(0),
        )
        for kind in _COMPARABLE
    ),
    *(
        method(
            "@sortByAssociatedKeys",
            f"list_{_ID_NAMES.get(kind, kind)}_sortByAssociatedKeys",
            f"list(T), list({kind}) -> list(T)",
            sort_by_keys,
            cost=_by_square(1),
        )
        for kind in _COMPARABLE
    ),
    function("lists.range", "lists_range", "int -> list(int)", numbers, cost=_by_result),
    method("reverse", "list_reverse", "list(T) -> list(T)", reverse, cost=_by_result),
    method("distinct", "list_distinct", "list(T) -> list(T)", distinct, cost=_by_square(0)),
]

LISTS: Final = Library(
    name="lists", functions=to_functions(_FUNCTIONS), macros=(Macro("sortBy", 2, True, _sort_by),)
)
"""Every function of the extension."""
