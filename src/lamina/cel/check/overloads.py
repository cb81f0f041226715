"""
Overload resolution: the overloads that a call may dispatch to, and its type.

Results for argument types without type parameters hold for every expression, and
are cached in the function.
"""

from __future__ import annotations

from typing import Final

from lamina.cel.ast import ADD, Reference
from lamina.cel.check.unify import Substitution, same
from lamina.cel.declarations import Environment, Function, Overload
from lamina.cel.types import DYN, Kind, Type, list_of

_LIST: Final = Kind.LIST
_PARAM: Final = Kind.PARAM
_OPEN: Final = frozenset({Kind.PARAM, Kind.DYN, Kind.ANY, Kind.ERROR, Kind.NULL})
"""The kinds of types that may be assignable to another kind."""
_NUMBERS: Final = frozenset({Kind.INT, Kind.UINT, Kind.DOUBLE})
_ORDERED: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})


def _parameter(number: int) -> Type:
    return Type(_PARAM, f"_var{number}")


_FIRST: Final = tuple(map(_parameter, range(64)))
_FIRST_LISTS: Final = tuple(map(list_of, _FIRST))


class Overloads:
    """Resolves the calls of one expression; type parameters are numbered as in cel-go."""

    __slots__ = ("_as_function", "_as_member", "_compares", "_fresh", "_substitution")

    def __init__(self, environment: Environment, substitution: Substitution) -> None:
        self._compares = environment.flags.cross_type_numeric_comparisons
        self._as_member = "member" if self._compares else "member of equal numbers"
        self._as_function = "function" if self._compares else "function of equal numbers"
        self._substitution = substitution
        self._fresh = 0

    @property
    def made_parameters(self) -> bool:
        return self._fresh > 0

    def parameter(self) -> Type:
        """Return a new type parameter."""
        number = self._fresh
        self._fresh = number + 1
        return _FIRST[number] if number < len(_FIRST) else _parameter(number)

    def unknown_list(self) -> Type:
        """Return a list of a new type parameter."""
        number = self._fresh
        self._fresh = number + 1
        return _FIRST_LISTS[number] if number < len(_FIRST) else list_of(_parameter(number))

    def found(self, function: Function, args: list[Type], *, member: bool) -> tuple[Type, Reference] | None:
        """Return the type of a call and its overloads: dyn where their results differ, None without a match."""
        codes = [arg.code for arg in args]
        mode = self._as_member if member else self._as_function
        key = (mode, *codes)
        known = function.cache.get(key)
        if known is not None:
            result, reference, used = known
            self._fresh += used
            return result, reference
        before = self._fresh
        if function.name == ADD and (concatenated := self._concatenation(function, args, mode)) is not None:
            return concatenated
        found, reached = self._try_candidates(function, args, mode)
        if found is None:
            return None
        reference = Reference(overloads=tuple(reached))
        if found.code and all(codes):
            function.cache[key] = (found, reference, self._fresh - before)
        return found, reference

    def _concatenation(
        self, function: Function, args: list[Type], mode: str
    ) -> tuple[Type, Reference] | None:
        """
        Return the type of a concatenation to a list of unbound type, as in most loops.

        A fast path with the result of the general one.
        """
        made, more = args
        if made.kind is not _LIST or made.code or more.kind is not _LIST or not more.code:
            return None
        element = made.params[0]
        if element.kind is not _PARAM or self._substitution.knows(element.name):
            return None
        known = function.cache.get(mode)
        if known is None:
            (overload, before), (_, after) = self._candidates(function, args, mode)
            assert overload is not None
            reference = Reference(overloads=(overload.id,))
            known = function.cache[mode] = (reference, before + len(overload.type_params) + after)
        reference, used = known
        self._fresh += used
        self._substitution.bind(element.name, more.params[0])
        return more, reference

    def _try_candidates(
        self, function: Function, args: list[Type], mode: str
    ) -> tuple[Type | None, list[str]]:
        result: Type | None = None
        reached: list[str] = []
        assignable_all, resolve = self._substitution.assignable_all, self._substitution.resolve
        for overload, skipped in self._candidates(function, args, mode):
            self._fresh += skipped
            if overload is None:
                break
            params, answer = overload.params, overload.result
            if overload.type_params:
                fresh = {name: self.parameter() for name in overload.type_params}
                params = tuple([_instance(param, fresh) for param in params])
                answer = _instance(answer, fresh)
            if not assignable_all(args, params):
                continue
            reached.append(overload.id)
            found = resolve(answer)
            if result is None:
                result = found
            elif not result.is_dyn and not same(found, result):
                result = DYN
        return result, reached

    def _candidates(
        self, function: Function, args: list[Type], mode: str
    ) -> list[tuple[Overload | None, int]]:
        """
        Return the overloads whose parameter kinds may match those of the arguments.

        With each comes the number of type parameters of the overloads skipped
        before it; the last entry has no overload.
        """
        key = (None, mode, *[arg.kind for arg in args])
        known: list[tuple[Overload | None, int]] | None = function.cache.get(key)
        if known is not None:
            return known
        candidates: list[tuple[Overload | None, int]] = []
        skipped = 0
        for overload in function.members if mode == self._as_member else function.globals:
            if (
                len(overload.params) == len(args)
                and not self._compares
                and _compares_across(function.name, overload)
            ):
                continue
            if len(overload.params) == len(args) and all(map(_may_agree, overload.params, args)):
                candidates.append((overload, skipped))
                skipped = 0
            else:
                skipped += len(overload.type_params)
        candidates.append((None, skipped))
        function.cache[key] = candidates
        return candidates


def _may_agree(one: Type, other: Type) -> bool:
    return one.kind is other.kind or one.kind in _OPEN or other.kind in _OPEN


def _instance(type_: Type, fresh: dict[str, Type]) -> Type:
    """Return a type with the type parameters of a signature replaced by new ones."""
    if type_.kind is _PARAM:
        return fresh[type_.name]
    if not type_.params:
        return type_
    return Type(
        type_.kind, type_.name, tuple([_instance(inner, fresh) for inner in type_.params]), type_.nullable
    )


def _compares_across(function: str, overload: Overload) -> bool:
    return (
        function in _ORDERED
        and overload.params[0].kind in _NUMBERS
        and overload.params[1].kind in _NUMBERS
        and overload.params[0].kind is not overload.params[1].kind
    )
