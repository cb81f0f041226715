"""
Whether one type can stand for another, and what type parameters must be for that.

The rules are those of cel-go's checker: dyn and errors fit everything, null fits
objects, opaque types, durations, timestamps and wrappers, and a type parameter
takes the most general of the types it has to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lamina.cel.types import DYN, Kind, Type

_NULLABLE: Final = frozenset({Kind.OPAQUE, Kind.OBJECT, Kind.ANY, Kind.DURATION, Kind.TIMESTAMP})
_WILD: Final = frozenset({Kind.DYN, Kind.ANY, Kind.ERROR})
_WITH_PARAMS: Final = frozenset({Kind.OPAQUE, Kind.LIST, Kind.MAP})


def same(one: Type, other: Type) -> bool:
    """Whether two types are one, wrapped or not."""
    if one is other:
        return True
    if one.kind is not other.kind or one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(same, one.params, other.params))


def equivalent(one: Type, other: Type) -> bool:
    """Whether two types are one but for their type parameters."""
    if one is other or (one.kind is Kind.PARAM and other.kind is Kind.PARAM):
        return True
    if one.kind is not other.kind or one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(equivalent, one.params, other.params))


def is_assignable(one: Type, other: Type) -> bool:
    """Whether a value of type `other` can stand where `one` is wanted, by the checker's rules."""
    return Substitution().assignable(one, other)


def _less_specific(one: Type, other: Type) -> bool:
    kind = one.kind
    if one.is_dyn or kind is Kind.PARAM:
        return True
    if other.is_dyn or other.kind is Kind.PARAM or kind is not other.kind:
        return False
    if kind in _WITH_PARAMS:
        return (
            one.name == other.name
            and len(one.params) == len(other.params)
            and all(map(_less_specific, one.params, other.params))
        )
    return kind is Kind.TYPE or same(one, other)


def most_general(one: Type, other: Type) -> Type:
    """Return whichever of two types says less; the first if both say the same."""
    return one if _less_specific(one, other) else other


class Substitution:
    """What type parameters stand for, as far as is known. Failed attempts leave no trace."""

    __slots__ = ("_known", "_trail")

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._trail: list[tuple[str, Type | None]] = []

    def assignable(self, one: Type, other: Type) -> bool:
        """Whether two types agree; remember what parameters must be for that."""
        if one is other and not one.params and one.kind is not Kind.PARAM:
            return True
        return self._attempt((one,), (other,))

    def assignable_all(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        """Whether the types of two lists agree one by one."""
        return len(ones) == len(others) and self._attempt(ones, others)

    def bind(self, name: str, to: Type) -> None:
        self._known[name] = to

    def resolve(self, type_: Type, *, to_dyn: bool = False) -> Type:
        """Return a type with its parameters replaced; `to_dyn` makes the unknown ones dyn."""
        kind = type_.kind
        if kind is Kind.PARAM:
            found = self._known.get(type_.name)
            if found is not None:
                return self.resolve(found, to_dyn=to_dyn)
            return DYN if to_dyn else type_
        if not type_.params:
            return type_
        params = tuple([self.resolve(inner, to_dyn=to_dyn) for inner in type_.params])
        if all(map(lambda a, b: a is b, params, type_.params)):
            return type_
        return Type(kind, type_.name, params, type_.nullable)

    def _attempt(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        mark = len(self._trail)
        for one, other in zip(ones, others, strict=True):
            if not self._agree(one, other):
                while len(self._trail) > mark:
                    name, before = self._trail.pop()
                    if before is None:
                        del self._known[name]
                    else:
                        self._known[name] = before
                return False
        return True

    def _set(self, name: str, to: Type) -> None:
        self._trail.append((name, self._known.get(name)))
        self._known[name] = to

    def _agree(self, one: Type, other: Type) -> bool:
        kind, other_kind = one.kind, other.kind
        if other_kind is Kind.PARAM:
            valid, settled = self._substitutes(one, other)
            if valid or settled:
                return valid
        if kind is Kind.PARAM:
            return self._substitutes(other, one)[0]
        if kind in _WILD or other_kind in _WILD:
            return True
        if kind is Kind.NULL:
            return other_kind in _NULLABLE or other.nullable or other_kind is Kind.NULL
        if other_kind is Kind.NULL:
            return kind in _NULLABLE or one.nullable
        if kind is not other_kind:
            return False
        if kind in _WITH_PARAMS:
            return (
                one.name == other.name
                and len(one.params) == len(other.params)
                and all(map(self._agree, one.params, other.params))
            )
        return kind is Kind.TYPE or one.name == other.name

    def _substitutes(self, one: Type, parameter: Type) -> tuple[bool, bool]:
        """Whether a type can be what a parameter stands for, and whether that was settled before."""
        if one.kind is Kind.PARAM and one.name == parameter.name:
            return True, True
        known = self._known.get(parameter.name)
        if known is not None:
            if same(one, known):
                return True, True
            if self._agree(one, known):
                general = most_general(one, known)
                if self._absent(parameter.name, general):
                    self._set(parameter.name, general)
                return True, True
            return False, True
        if self._absent(parameter.name, one):
            self._set(parameter.name, one)
            return True, False
        return False, False

    def _absent(self, name: str, within: Type) -> bool:
        """Whether a parameter does not occur in a type."""
        if within.kind is Kind.PARAM:
            if within.name == name:
                return False
            known = self._known.get(within.name)
            return known is None or self._absent(name, known)
        return all(self._absent(name, inner) for inner in within.params)
