"""
`cel.block([a, b], body)`: expressions that are evaluated at most once, and referred to by index.

`cel.index(0)` is the first of them, in the body and in those that follow it.
`cel.iterVar(n, m)` and `cel.accuVar(n, m)` name the variables of loops. Optimizers
generate it; in source texts, `cel.bind` is used.
"""

from __future__ import annotations

from typing import Final

from lamina.cel.ast import UNUSED, Expr, Ident, Literal, LiteralKind, MakeList
from lamina.cel.declarations import Library, Macro, MacroContext


def _is_cel(target: Expr | None) -> bool:
    return isinstance(target, Ident) and target.name == "cel"


def _block(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    if not _is_cel(target):
        return None
    values, body = args
    if not isinstance(values, MakeList):
        raise make.fail("cel.block requires the first arg to be a list literal", values)
    for place in range(len(values.items) - 1, -1, -1):
        name = f"@index{place}"
        body = make.comprehension(
            make.make_list(),
            UNUSED,
            name,
            values.items[place],
            make.literal(False, LiteralKind.BOOL),
            make.ident(name),
            body,
        )
    return body


def _place(make: MacroContext, arg: Expr) -> int:
    if (
        isinstance(arg, Literal)
        and arg.kind is LiteralKind.INT
        and isinstance(arg.value, int)
        and arg.value >= 0
    ):
        return arg.value
    raise make.fail("cel.index requires a single non-negative int constant arg", arg)


def _index(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    return make.ident(f"@index{_place(make, args[0])}") if _is_cel(target) else None


def _named(prefix: str) -> Macro:
    def expand(make: MacroContext, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
        if not _is_cel(target):
            return None
        return make.ident(f"@{prefix}:{_place(make, args[0])}:{_place(make, args[1])}")

    return Macro("iterVar" if prefix == "it" else "accuVar", 2, True, expand)


BLOCK: Final = Library(
    name="block",
    macros=(Macro("block", 2, True, _block), Macro("index", 1, True, _index), _named("it"), _named("ac")),
)
