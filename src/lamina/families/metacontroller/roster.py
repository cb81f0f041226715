"""
The children that one answer of a hook asks for, as they are looked for.

A hook that says the same twice wants the same children: what they are called is
worked out once, however many passes look them up.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import repeat
from operator import is_
from typing import TypeAlias

from lamina.families.metacontroller.desired import Desired, Key, observed
from lamina.families.metacontroller.view import View
from lamina.objects.types import GroupKind, Obj

Name: TypeAlias = tuple[GroupKind, str]
"""What a revision calls a child that it has."""


class Roster:
    """All children of one answer."""

    __slots__ = ("by_key", "by_name", "called", "children", "keys", "names", "rolling")

    def __init__(self, children: tuple[Desired, ...]) -> None:
        self.children = children
        self.by_key: dict[Key, Desired] = {child.key: child for child in children}
        self.keys: tuple[Key, ...] = tuple(self.by_key)
        """In their order, and the very same for two answers that want the same children, each in its own way."""
        self.names: tuple[Name | None, ...] = tuple(
            (child.key.kind, child.key.name) if child.rule.rolling else None for child in children
        )
        """What revisions call each of them; None for those that do not roll."""
        self.by_name: dict[Name, Desired] = {
            name: child for name, child in zip(self.names, children, strict=True) if name is not None
        }
        places = {name: place for place, name in enumerate(self.names) if name is not None}
        self.rolling = tuple((places[name], name, shown(name), child) for name, child in self.by_name.items())
        """Those that roll: their places, what revisions call them, and what people do."""
        self.called: dict[str, Name] = {words: name for _, name, words, _ in self.rolling}

    def like(self, other: Roster) -> tuple[Desired, ...]:
        """Return the children that another answer wants, each as this one does if it wants it at all."""
        if self.keys is other.keys:
            return self.children
        return tuple(self.by_key.get(child.key, child) for child in other.children)


def roster(view: View, wanted: tuple[Desired, ...]) -> Roster:
    """Return all children of one answer, as they are looked for."""
    rosters = view.recall.rosters
    known = rosters.find(wanted)
    if known is None:
        known = rosters.keep(Roster(wanted), wanted)
        known.keys = next((one.keys for one in rosters if one.keys == known.keys), known.keys)
    return known


def present(view: View, wanted: Roster) -> tuple[Obj | None, ...]:
    """Return the children of a roster that are there, in their order; None for those that are not."""
    known: list[tuple[tuple[Key, ...], tuple[Obj | None, ...]]] = view.notes.setdefault("present", [])
    for keys, found in known:
        if keys is wanted.keys:
            return found
    there = tuple(map(observed(view).get, wanted.keys))
    known.append((wanted.keys, there))
    return there


def strays(view: View, wanted: Roster) -> Set[Key]:
    """Return who is there and not wanted."""
    there = observed(view)
    missing = sum(map(is_, present(view, wanted), repeat(None)))
    return there.keys() - wanted.by_key.keys() if len(there) > len(wanted.keys) - missing else set()


def shown(name: Name) -> str:
    """Return what people call a child."""
    return f"{name[0].kind} {name[1]}"
