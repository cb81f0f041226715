"""
Assignability of types, and the substitution of type parameters.

The rules are those of cel-go's checker: dyn and errors are assignable to
everything, null to objects, opaque types, durations, timestamps and wrappers, and a
type parameter is bound to the most general of its types.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Final

from lamina.cel.types import DYN, Kind, Type, list_of

# Module globals, because an attribute lookup in an enum takes as long as a call.
_ANY, _DURATION, _DYN, _ERROR, _LIST, _MAP, _NULL, _OBJECT, _OPAQUE, _PARAM, _TIMESTAMP, _TYPE = (
    Kind.ANY,
    Kind.DURATION,
    Kind.DYN,
    Kind.ERROR,
    Kind.LIST,
    Kind.MAP,
    Kind.NULL,
    Kind.OBJECT,
    Kind.OPAQUE,
    Kind.PARAM,
    Kind.TIMESTAMP,
    Kind.TYPE,
)
_NULLABLE: Final = frozenset({_OPAQUE, _OBJECT, _ANY, _DURATION, _TIMESTAMP})
_WILD: Final = frozenset({_DYN, _ANY, _ERROR})
_WITH_PARAMS: Final = frozenset({_OPAQUE, _LIST, _MAP})


def same(one: Type, other: Type) -> bool:
    """Say whether two types are equal, except for nullability."""
    if one is other:
        return True
    if one.kind is not other.kind or one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(same, one.params, other.params))


def equivalent(one: Type, other: Type) -> bool:
    """Say whether two types are equal, except for type parameters."""
    if one is other or (one.kind is _PARAM and other.kind is _PARAM):
        return True
    if one.kind is not other.kind or one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(equivalent, one.params, other.params))


def _less_specific(one: Type, other: Type) -> bool:
    kind = one.kind
    if one.is_dyn or kind is _PARAM:
        return True
    if other.is_dyn or other.kind is _PARAM or kind is not other.kind:
        return False
    if kind in _WITH_PARAMS:
        return (
            one.name == other.name
            and len(one.params) == len(other.params)
            and all(map(_less_specific, one.params, other.params))
        )
    return kind is _TYPE or same(one, other)


def most_general(one: Type, other: Type) -> Type:
    """Return the more general of two types; the first if they are equally general."""
    return one if _less_specific(one, other) else other


class Substitution:
    """The bindings of type parameters. Failed attempts are undone."""

    __slots__ = ("_known", "_trail")

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._trail: list[tuple[str, Type | None]] = []

    def assignable(self, one: Type, other: Type) -> bool:
        """Say whether one type is assignable to another, and bind type parameters."""
        if one is other and one.code:
            return True
        return self._attempt((one,), (other,))

    def assignable_all(self, ones: Sequence[Type], others: Sequence[Type]) -> bool:
        """Say whether types are assignable pairwise."""
        return len(ones) == len(others) and self._attempt(ones, others)

    def knows(self, name: str) -> bool:
        """Say whether a type parameter is bound."""
        return name in self._known

    def bind(self, name: str, to: Type) -> None:
        self._known[name] = to

    def resolve(self, type_: Type, *, to_dyn: bool = False) -> Type:
        """Return a type with its parameters substituted; `to_dyn` makes unbound ones dyn."""
        if type_.code:
            return type_
        kind, params = type_.kind, type_.params
        if kind is _PARAM:
            found = self._known.get(type_.name)
            if found is not None:
                return found if found.code else self.resolve(found, to_dyn=to_dyn)
            return DYN if to_dyn else type_
        if len(params) == 1:
            inner = self.resolve(params[0], to_dyn=to_dyn)
            if inner is params[0]:
                return type_
            return list_of(inner) if kind is _LIST else Type(kind, type_.name, (inner,), type_.nullable)
        resolved = tuple([self.resolve(param, to_dyn=to_dyn) for param in params])
        if all(map(is_, resolved, params)):
            return type_
        return Type(kind, type_.name, resolved, type_.nullable)

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
        if other_kind is _PARAM:
            valid, settled = self._substitutes(one, other)
            if valid or settled:
                return valid
        if kind is _PARAM:
            return self._substitutes(other, one)[0]
        if kind in _WILD or other_kind in _WILD:
            return True
        if kind is _NULL:
            return other_kind in _NULLABLE or other.nullable or other_kind is _NULL
        if other_kind is _NULL:
            return kind in _NULLABLE or one.nullable
        if kind is not other_kind:
            return False
        if kind in _WITH_PARAMS:
            return (
                one.name == other.name
                and len(one.params) == len(other.params)
                and all(map(self._agree, one.params, other.params))
            )
        return kind is _TYPE or one.name == other.name

    def _substitutes(self, one: Type, parameter: Type) -> tuple[bool, bool]:
        """Say whether a parameter can be bound to a type, and whether it was bound before."""
        if one.kind is _PARAM and one.name == parameter.name:
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
        """Say whether a parameter does not occur in a type."""
        if within.code:
            return True
        if within.kind is _PARAM:
            if within.name == name:
                return False
            known = self._known.get(within.name)
            return known is None or self._absent(name, known)
        return all(self._absent(name, inner) for inner in within.params)
