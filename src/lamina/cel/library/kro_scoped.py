"""
kro's functions that exist only in some fields of a resource graph.

`OMIT` is for templates, `CONDITIONS` for conditions in the status, and the result of
`pacing` for propagateWhen. The library is added to the environment of these fields
only, so that its names are undeclared elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lamina.cel.ast import Expr, Ident, Literal, LiteralKind, MakeMap
from lamina.cel.declarations import Function, Library, Macro, MacroContext, Overload
from lamina.cel.errors import EvaluationError
from lamina.cel.library.signature import function, method, to_functions
from lamina.cel.types import DYN, STRING, Field, ObjectType, map_of
from lamina.cel.values import OMITTED, Value

OMIT: Final = Library(
    name="graph.omit", functions=to_functions([function("omit", "omit", "-> dyn", lambda: OMITTED)])
)
"""`omit()`: leaves out the field or element that it is the value of."""

_STATUSES: Final = ("True", "False", "Unknown")
_KEYS: Final = ("type", "status", "reason", "message")
_MADE: Final = "runtime.@newCondition"

CONDITION: Final = ObjectType(
    "runtime.Condition", {name: Field(STRING, required=True) for name in (*_KEYS, "lastTransitionTime")}
)
"""A condition; a missing one has empty fields."""


def _new_condition(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    """Expand field names, which are identifiers, to strings."""
    if not isinstance(target, Ident) or target.name != "runtime":
        return None
    written = args[0]
    if not isinstance(written, MakeMap):
        raise make.fail("runtime.newCondition takes a map that is written out", written)
    entries: dict[str, Expr] = {}
    for entry in written.entries:
        key = entry.key
        if not isinstance(key, Ident):
            raise make.fail(f"a key of a condition is one of the bare names {', '.join(_KEYS)}", key)
        if key.name not in _KEYS:
            raise make.fail(f'unknown key "{key.name}"', key)
        if key.name in entries:
            raise make.fail(f'key "{key.name}" is there twice', key)
        entries[key.name] = entry.value
    for name in ("type", "status"):
        if name not in entries:
            raise make.fail(f'key "{name}" is missing', written)
    _check_literals(make, entries)
    pairs = [(make.literal(name, LiteralKind.STRING), value) for name, value in entries.items()]
    return make.call(_MADE, make.make_map(*pairs))


def _check_literals(make: MacroContext, entries: dict[str, Expr]) -> None:
    status, type_ = entries["status"], entries["type"]
    if isinstance(status, Literal) and status.value not in _STATUSES:
        raise make.fail(f"status must be one of {', '.join(_STATUSES)}", status)
    if isinstance(type_, Literal) and type_.value == "":
        raise make.fail("type must not be empty", type_)


def _condition(given: dict[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if not isinstance(value, str):
            raise EvaluationError(f"{name} of a condition is a string")
    if not given["type"]:
        raise EvaluationError("type must not be empty")
    if given["status"] not in _STATUSES:
        raise EvaluationError(f"status must be one of {', '.join(_STATUSES)}")
    return _with_all_fields(given)


def _found(obj: Value, type_: str) -> dict[str, Any]:
    """Return a condition of an object, or an empty one."""
    status = obj.get("status") if isinstance(obj, dict) else None
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == type_:
            return _with_all_fields(condition)
    return _with_all_fields({})


def _with_all_fields(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given.get(name) or "" for name in CONDITION.fields}


CONDITIONS: Final = Library(
    name="graph.conditions",
    functions=(
        Function(
            _MADE,
            (Overload("runtime_newCondition", (map_of(STRING, DYN),), CONDITION, implementation=_condition),),
        ),
        Function(
            "runtime.condition",
            (Overload("runtime_condition", (DYN, STRING), CONDITION, implementation=_found),),
        ),
    ),
    macros=(Macro("newCondition", 1, True, _new_condition),),
    types=(CONDITION,),
)
"""`runtime.newCondition({type: …})` and `runtime.condition(obj, 'Type')`."""


def pacing(is_updated: Callable[[Value], bool], is_ready: Callable[[Value], bool]) -> Library:
    """
    Return the functions that propagate a change in waves.

    `is_updated` says whether an item has the change, and `is_ready` whether it
    is ready; `each.index` is its index. The list and the item may be given in
    either order, and each function has two names.
    """

    def many(items: list[Any]) -> int:
        return sum(map(is_updated, items))

    def exponentially(one: Value, two: Value) -> bool:
        items, index = _list_and_index(one, two)
        return index == 0 or many(items) >= 1 << (index.bit_length() - 1)

    def linearly(one: Value, two: Value, step: int) -> bool:
        items, index = _list_and_index(one, two)
        if step <= 0:
            raise EvaluationError(f"a wave has at least one item, not {step}")
        return many(items) >= step * (index // step)

    return Library(
        name="graph.pacing",
        functions=to_functions(
            [
                *(
                    function(
                        f"exponentially{word}", f"exponentially{word}", "dyn, dyn -> bool", exponentially
                    )
                    for word in ("Updated", "Ready")
                ),
                *(
                    function(f"linearly{word}", f"linearly{word}", "dyn, dyn, int -> bool", linearly)
                    for word in ("Updated", "Ready")
                ),
                method("updated", "item_updated", "dyn -> bool", is_updated),
                method("ready", "item_ready", "dyn -> bool", is_ready),
            ]
        ),
    )


def _list_and_index(one: Value, two: Value) -> tuple[list[Any], int]:
    items, item = (one, two) if isinstance(one, list) else (two, one)
    if not isinstance(items, list):
        raise EvaluationError("one of the arguments is the list of all items")
    index = item.get("index") if isinstance(item, dict) else None
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise EvaluationError("the other argument is an item that knows its index")
    return items, index
