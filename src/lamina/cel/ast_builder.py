"""The builder that macros use for their expansion."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lamina.cel.ast import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Entry,
    Expr,
    Ident,
    Literal,
    LiteralKind,
    MakeList,
    MakeMap,
    MakeStruct,
    Select,
)
from lamina.cel.declarations import MacroRefused


class AstBuilder:
    """Builds the expansion of one macro call; new nodes have the position of the call."""

    accumulator: str = ACCUMULATOR

    def __init__(self, new: Callable[[], int], at: int, macro_calls: dict[int, Call]) -> None:
        self._new, self._at, self._macro_calls = new, at, macro_calls

    def literal(self, value: int | float | str | bytes | bool | None, kind: LiteralKind) -> Expr:
        return Literal(self._new(), self._at, value, kind)

    def ident(self, name: str) -> Expr:
        return Ident(self._new(), self._at, name)

    def accumulated(self) -> Expr:
        return Ident(self._new(), self._at, ACCUMULATOR)

    def call(self, function: str, *args: Expr) -> Expr:
        return Call(self._new(), self._at, function, None, args)

    def member_call(self, function: str, target: Expr, *args: Expr) -> Expr:
        return Call(self._new(), self._at, function, target, args)

    def select(self, operand: Expr, field: str, *, test_only: bool = False) -> Expr:
        return Select(self._new(), self._at, operand, field, test_only)

    def make_list(self, *items: Expr) -> Expr:
        return MakeList(self._new(), self._at, items)

    def make_map(self, *entries: tuple[Expr, Expr]) -> Expr:
        made = tuple(Entry(self._new(), self._at, key, value) for key, value in entries)
        return MakeMap(self._new(), self._at, made)

    def comprehension(
        self,
        iter_range: Expr,
        iter_var: str,
        accu_var: str,
        accu_init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
        *,
        iter_var2: str = "",
    ) -> Expr:
        return Comprehension(
            self._new(),
            self._at,
            iter_var,
            iter_var2,
            iter_range,
            accu_var,
            accu_init,
            condition,
            step,
            result,
        )

    def copy(self, expr: Expr) -> Expr:
        """Return a copy of an expression with new ids."""
        fresh = self._new()
        if expr.id in self._macro_calls:
            self._macro_calls[fresh] = self._macro_calls[expr.id]
        match expr:
            case Select():
                return replace(expr, id=fresh, operand=self.copy(expr.operand))
            case Call():
                target = None if expr.target is None else self.copy(expr.target)
                return replace(expr, id=fresh, target=target, args=tuple(map(self.copy, expr.args)))
            case MakeList():
                return replace(expr, id=fresh, items=tuple(map(self.copy, expr.items)))
            case MakeStruct():
                fields = (replace(f, id=self._new(), value=self.copy(f.value)) for f in expr.fields)
                return replace(expr, id=fresh, fields=tuple(fields))
            case MakeMap():
                entries = (
                    replace(e, id=self._new(), key=self.copy(e.key), value=self.copy(e.value))
                    for e in expr.entries
                )
                return replace(expr, id=fresh, entries=tuple(entries))
            case Comprehension():
                return replace(
                    expr,
                    id=fresh,
                    iter_range=self.copy(expr.iter_range),
                    accu_init=self.copy(expr.accu_init),
                    loop_condition=self.copy(expr.loop_condition),
                    loop_step=self.copy(expr.loop_step),
                    result=self.copy(expr.result),
                )
            case _:
                return replace(expr, id=fresh)

    def fail(self, message: str, at: Expr | None = None) -> MacroRefused:
        return MacroRefused(message, self._at if at is None else at.at)
