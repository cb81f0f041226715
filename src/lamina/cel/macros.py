"""
The macros, which the parser expands.

Most expand to a comprehension, a loop with an accumulator. The expansions are those
of cel-go, because costs are counted on them.
"""

from __future__ import annotations

from typing import Final

from lamina.cel.ast import (
    ACCUMULATOR,
    ADD,
    AND,
    CONDITIONAL,
    EQUALS,
    NOT,
    NOT_STRICTLY_FALSE,
    OR,
    UNUSED,
    Expr,
    Ident,
    LiteralKind,
    Select,
)
from lamina.cel.declarations import Macro, MacroContext

MAP_INSERT: Final = "cel.@mapInsert"
# Module globals, because an attribute lookup in an enum takes as long as a call.
_BOOL, _INT = LiteralKind.BOOL, LiteralKind.INT
_RESERVED_NAMES: Final = frozenset({ACCUMULATOR, "__result__"})


def _true(make: MacroContext) -> Expr:
    return make.literal(True, _BOOL)


def _variable(make: MacroContext, arg: Expr, message: str = "argument must be a simple name") -> str:
    """Return the identifier of an argument; raise where it is none, or reserved."""
    if not isinstance(arg, Ident) or arg.name.startswith("."):
        raise make.fail(message, arg)
    if arg.name in _RESERVED_NAMES:
        raise make.fail("iteration variable overwrites accumulator variable", arg)
    return arg.name


def _variables(make: MacroContext, first: Expr, second: Expr) -> tuple[str, str]:
    for arg in (first, second):
        if not isinstance(arg, Ident) or arg.name.startswith("."):
            raise make.fail("argument must be a simple name", arg)
    if first.name == second.name:  # type: ignore[union-attr]  # both are names, as was just seen
        raise make.fail(f"duplicate variable name: {_variable(make, first)}", second)
    return _variable(make, first), _variable(make, second)


def _has(make: MacroContext, _: Expr | None, args: tuple[Expr, ...]) -> Expr:
    if isinstance(args[0], Select) and not args[0].optional:
        return make.select(args[0].operand, args[0].field, test_only=True)
    raise make.fail("invalid argument to has() macro", args[0])


def _loop(
    make: MacroContext,
    target: Expr | None,
    args: tuple[Expr, ...],
    *,
    start: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
) -> Expr:
    """Return a loop with one or two variables, which the first arguments name."""
    assert target is not None
    first, second = (_variable(make, args[0]), "") if len(args) == 2 else _variables(make, args[0], args[1])
    return make.comprehension(
        target, first, make.accumulator, start, condition, step, result, iter_var2=second
    )


def _all(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    return _loop(
        make,
        target,
        args,
        start=_true(make),
        condition=make.call(NOT_STRICTLY_FALSE, make.accumulated()),
        step=make.call(AND, make.accumulated(), args[-1]),
        result=make.accumulated(),
    )


def _exists(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    return _loop(
        make,
        target,
        args,
        start=make.literal(False, _BOOL),
        condition=make.call(NOT_STRICTLY_FALSE, make.call(NOT, make.accumulated())),
        step=make.call(OR, make.accumulated(), args[-1]),
        result=make.accumulated(),
    )


def _exists_one(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    more = make.call(ADD, make.accumulated(), make.literal(1, _INT))
    return _loop(
        make,
        target,
        args,
        start=make.literal(0, _INT),
        condition=_true(make),
        step=make.call(CONDITIONAL, args[-1], more, make.accumulated()),
        result=make.call(EQUALS, make.accumulated(), make.literal(1, _INT)),
    )


def _map(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    variable = _variable(make, args[0], "argument is not an identifier")
    step = make.call(ADD, make.accumulated(), make.make_list(args[-1]))
    if len(args) == 3:
        step = make.call(CONDITIONAL, args[1], step, make.accumulated())
    return make.comprehension(
        target, variable, make.accumulator, make.make_list(), _true(make), step, make.accumulated()
    )


def _filter(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    variable = _variable(make, args[0], "argument is not an identifier")
    step = make.call(ADD, make.accumulated(), make.make_list(args[0]))
    step = make.call(CONDITIONAL, args[1], step, make.accumulated())
    return make.comprehension(
        target, variable, make.accumulator, make.make_list(), _true(make), step, make.accumulated()
    )


def _transform(
    make: MacroContext, target: Expr | None, args: tuple[Expr, ...], step: Expr, start: Expr
) -> Expr:
    assert target is not None
    first, second = _variables(make, args[0], args[1])
    if len(args) == 4:
        step = make.call(CONDITIONAL, args[2], step, make.accumulated())
    return make.comprehension(
        target,
        first,
        make.accumulator,
        start,
        _true(make),
        step,
        make.accumulated(),
        iter_var2=second,
    )


def _transform_list(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    step = make.call(ADD, make.accumulated(), make.make_list(args[-1]))
    return _transform(make, target, args, step, make.make_list())


def _transform_map(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    first, _ = _variables(make, args[0], args[1])
    step = make.call(MAP_INSERT, make.accumulated(), make.ident(first), args[-1])
    return _transform(make, target, args, step, make.make_map())


def _transform_map_entry(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    step = make.call(MAP_INSERT, make.accumulated(), args[-1])
    return _transform(make, target, args, step, make.make_map())


def _bound(make: MacroContext, name: str, value: Expr, body: Expr) -> Expr:
    """Return `body` with a name bound to `value`: a loop over an empty list whose accumulator is the name."""
    return make.comprehension(
        make.make_list(),
        UNUSED,
        name,
        value,
        make.literal(False, _BOOL),
        make.ident(name),
        body,
    )


def _bind(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident) or args[0].name.startswith("."):
        raise make.fail("cel.bind() variable names must be simple identifiers", args[0])
    return _bound(make, args[0].name, args[1], args[2])


def _opt_map(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    if not isinstance(args[0], Ident) or args[0].name.startswith("."):
        raise make.fail("optMap() variable name must be a simple identifier", args[0])
    value = make.member_call("value", make.copy(target))
    return make.call(
        CONDITIONAL,
        make.member_call("hasValue", target),
        make.call("optional.of", _bound(make, args[0].name, value, args[1])),
        make.call("optional.none"),
    )


def _opt_flat_map(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    if not isinstance(args[0], Ident) or args[0].name.startswith("."):
        raise make.fail("optFlatMap() variable name must be a simple identifier", args[0])
    value = make.member_call("value", make.copy(target))
    return make.call(
        CONDITIONAL,
        make.member_call("hasValue", target),
        _bound(make, args[0].name, value, args[1]),
        make.call("optional.none"),
    )


STANDARD: Final = (
    Macro("has", 1, False, _has),
    Macro("all", 2, True, _all),
    Macro("exists", 2, True, _exists),
    Macro("exists_one", 2, True, _exists_one),
    Macro("map", 2, True, _map),
    Macro("map", 3, True, _map),
    Macro("filter", 2, True, _filter),
)
"""The macros of the language definition."""

EXISTS_ONE_CAMEL: Final = Macro("existsOne", 2, True, _exists_one)
"""The newer name of `exists_one`, which Kubernetes does not have."""

TWO_VARIABLES: Final = (
    Macro("all", 3, True, _all),
    Macro("exists", 3, True, _exists),
    Macro("existsOne", 3, True, _exists_one),
    Macro("exists_one", 3, True, _exists_one),
    Macro("transformList", 3, True, _transform_list),
    Macro("transformList", 4, True, _transform_list),
    Macro("transformMap", 3, True, _transform_map),
    Macro("transformMap", 4, True, _transform_map),
    Macro("transformMapEntry", 3, True, _transform_map_entry),
    Macro("transformMapEntry", 4, True, _transform_map_entry),
)
"""Two-variable macros; they need the function `cel.@mapInsert`."""

BINDINGS: Final = (Macro("bind", 3, True, _bind),)
"""`cel.bind(name, value, body)`."""

OPTIONALS: Final = (Macro("optMap", 2, True, _opt_map), Macro("optFlatMap", 2, True, _opt_flat_map))
"""The macros of optional types."""
