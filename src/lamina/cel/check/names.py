"""
Resolves names to variables, types and constants, with the scopes of loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeAlias

from lamina.cel.ast import Expr, Ident, Literal, Reference, Select
from lamina.cel.declarations import Environment, Function
from lamina.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    ERROR,
    INT,
    LIST,
    MAP,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    type_of,
)

_LANGUAGE: Final = MappingProxyType(
    {
        type_.name: type_of(type_)
        for type_ in (BOOL, BYTES, DOUBLE, DURATION, INT, LIST, MAP, NULL, STRING, TIMESTAMP, TYPE, UINT)
    }
)

Found: TypeAlias = tuple[str, Type, Literal | None, Reference]
"""The full name, the type, the value of a constant, and the Reference."""

_local: Final = lru_cache(256)(Reference)


class Names:
    """Looks up names; `enter` and `leave` delimit the scope of a loop."""

    __slots__ = ("_anywhere", "_environment", "_scopes")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[dict[str, Found]] = []
        self._anywhere = bool(environment.container)

    def qualified(self, expr: Expr) -> str | None:
        """Return `a.b.c` for an expression that may be a qualified name."""
        parts: list[str] = []
        while isinstance(expr, Select):
            if expr.test_only or expr.optional:
                return None
            parts.append(expr.field)
            expr = expr.operand
        if not isinstance(expr, Ident):
            return None
        name = expr.name
        if not self.may_be_prefix(name):
            return None
        parts.append(name)
        return ".".join(reversed(parts))

    def enter(self, name: str, type_: Type, second: str = "", second_type: Type = ERROR) -> None:
        """Declare one name, or two, until `leave`."""
        scope: dict[str, Found] = {name: (name, type_, None, _local(name))}
        if second:
            scope[second] = (second, second_type, None, _local(second))
        self._scopes.append(scope)

    def leave(self) -> None:
        self._scopes.pop()

    def find(self, name: str) -> Found | None:
        """Return the declaration of a name in the current scope."""
        if self._scopes and name[0] != ".":
            for scope in reversed(self._scopes):
                if name in scope:
                    return scope[name]
        cache = self._environment.cache
        known: Found | None = cache.get(name)
        if known is None:
            known = self._declared(name)
            if known is not None:
                cache[name] = known
        return known

    def _declared(self, name: str) -> Found | None:
        environment = self._environment
        for candidate in environment.candidates(name):
            variable = environment.variables.get(candidate)
            if variable is not None:
                return candidate, variable.type, None, Reference(candidate)
            declared = environment.types.get(candidate)
            if declared is not None:
                return candidate, type_of(declared), None, Reference(candidate)
            known = _LANGUAGE.get(candidate)
            if known is not None:
                return candidate, known, None, Reference(candidate)
            constant = environment.constants.get(candidate)
            if constant is not None:
                value = environment.literal(constant)
                return candidate, constant.type, value, Reference(candidate, constant=value)
        return None

    def function(self, name: str) -> Function | None:
        functions = self._environment.functions
        if not self._anywhere and name[0] != ".":
            return functions.get(name)
        for candidate in self._environment.candidates(name):
            found = functions.get(candidate)
            if found is not None:
                return found
        return None

    def may_be_prefix(self, name: str) -> bool:
        """Say whether a name may be the first part of a qualified one."""
        return self._anywhere or name.removeprefix(".") in self._environment.namespaces

    def is_local(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)

    def closest_variable(self, name: str) -> str | None:
        """Return a suggestion for an unknown variable."""
        known = [*self._environment.variables, *(n for scope in self._scopes for n in scope)]
        return closest_name(name, known)

    def closest_function(self, name: str) -> str | None:
        macros = {macro for macro, *_ in self._environment.macros}
        return closest_name(name, [*self._environment.functions, *macros])


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return a suggestion with the closest known name, if one is close."""
    names = [n for n in known if n[:1].isalpha() or n[:1] == "_"]
    lowered = {n.lower(): n for n in reversed(names)}
    found = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"did you mean '{lowered[found[0]]}'?" if found else None
