"""
Evaluates expressions without type checking: every type is dyn.

Only names are resolved: which dots belong to a qualified name, and which select a field.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from lamina.cel.ast import (
    Call,
    Checked,
    Comprehension,
    Expr,
    Ident,
    MakeList,
    MakeMap,
    MakeStruct,
    Parsed,
    Reference,
    Select,
)
from lamina.cel.declarations import Environment
from lamina.cel.types import DYN, TYPE, Type

TYPE_NAMES: Final = frozenset(
    [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
        "optional_type",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
    ]
)
"""The types that an expression can name."""


def unchecked(parsed: Parsed, environment: Environment) -> Checked:
    """Return an expression with resolved names and without types."""
    resolver = _Resolver(environment)
    expr = resolver.resolve(parsed.expr, frozenset())
    return Checked(parsed, expr, resolver.types, resolver.references, DYN)


def qualified_name(expr: Expr) -> str | None:
    """Return `a.b.c` for an expression that consists only of names and dots."""
    if isinstance(expr, Ident):
        return expr.name
    if isinstance(expr, Select) and not expr.test_only and not expr.optional:
        prefix = qualified_name(expr.operand)
        return None if prefix is None else f"{prefix}.{expr.field}"
    return None


class _Resolver:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}

    def resolve(self, expr: Expr, local: frozenset[str]) -> Expr:
        match expr:
            case Ident():
                return self._named(expr, expr.name, local) or expr
            case Select():
                name = qualified_name(expr)
                if name is not None and name.partition(".")[0] not in local:
                    found = self._named(expr, name, local)
                    if found is not None:
                        return found
                return replace(expr, operand=self.resolve(expr.operand, local))
            case Call():
                return self._call(expr, local)
            case MakeList():
                return replace(expr, items=tuple(self.resolve(item, local) for item in expr.items))
            case MakeMap():
                return replace(
                    expr,
                    entries=tuple(
                        replace(
                            entry, key=self.resolve(entry.key, local), value=self.resolve(entry.value, local)
                        )
                        for entry in expr.entries
                    ),
                )
            case MakeStruct():
                return replace(
                    expr,
                    fields=tuple(
                        replace(field, value=self.resolve(field.value, local)) for field in expr.fields
                    ),
                )
            case Comprehension():
                inside = local | {expr.iter_var, expr.iter_var2, expr.accu_var}
                return replace(
                    expr,
                    iter_range=self.resolve(expr.iter_range, local),
                    accu_init=self.resolve(expr.accu_init, local),
                    loop_condition=self.resolve(expr.loop_condition, inside),
                    loop_step=self.resolve(expr.loop_step, inside),
                    result=self.resolve(expr.result, local | {expr.accu_var}),
                )
            case _:
                return expr

    def _named(self, expr: Expr, name: str, local: frozenset[str]) -> Ident | None:
        if name in local:
            return None
        for candidate in self._environment.candidates(name):
            known = candidate in self._environment.variables
            if known or candidate in TYPE_NAMES or candidate in self._environment.types:
                self.types[expr.id] = DYN if known else TYPE
                self.references[expr.id] = Reference(candidate)
                return Ident(expr.id, expr.at, name)
        return None

    def _call(self, expr: Call, local: frozenset[str]) -> Expr:
        args = tuple(self.resolve(arg, local) for arg in expr.args)
        target = expr.target
        prefix = qualified_name(target) if target is not None else ""
        if prefix is not None:
            name = f"{prefix}.{expr.function}" if prefix else expr.function
            for candidate in self._environment.candidates(name):
                function = self._environment.functions.get(candidate)
                if function is not None and any(not overload.member for overload in function.overloads):
                    return replace(expr, function=candidate, target=None, args=args)
        return replace(expr, target=None if target is None else self.resolve(target, local), args=args)
