"""
Who asked to be told of what.

A pass over a key may ask to follow objects that no watch of its controller is
about. What the last pass asked is what the key is interested in, and a change
to an object that matches, or did, brings the key round again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from lamina.core.questions import Follow, Parties
from lamina.core.world import Change
from lamina.objects import meta
from lamina.objects.types import GroupKind, Ref

_Place: TypeAlias = tuple[str, GroupKind, str]
"""A cluster, a kind, and a name; without one, whatever the name."""


class Interests:
    """What each key asked to follow, found by kind, and by name where somebody asked by name."""

    def __init__(self) -> None:
        self._of: dict[Ref, frozenset[Follow]] = {}
        self._in: dict[_Place, dict[Ref, list[Follow]]] = {}

    def set(self, ref: Ref, asked: Iterable[Follow]) -> None:
        """Have a key be interested in exactly this."""
        wanted = frozenset(asked)
        before = self._of.get(ref, frozenset())
        if wanted == before:
            return
        for place in {place for follow in before for place in _places(follow)}:
            keys = self._in[place]
            del keys[ref]
            if not keys:
                del self._in[place]
        for follow in wanted:
            for place in _places(follow):
                self._in.setdefault(place, {}).setdefault(ref, []).append(follow)
        if wanted:
            self._of[ref] = wanted
        else:
            self._of.pop(ref, None)

    def concerned(self, change: Change) -> Iterator[Ref]:
        """Yield the keys that a change is of interest to."""
        shown = [obj for obj in (change.before, change.after) if obj is not None]
        told: set[Ref] = set()
        heed = _Heed(change)
        for name in ("", meta.name(change.obj)):
            for ref, follows in self._in.get((change.cluster, change.kind.group_kind, name), {}).items():
                if ref not in told and any(
                    follow.matches(obj) for follow in follows if heed(follow) for obj in shown
                ):
                    told.add(ref)
                    yield ref

    @property
    def keys(self) -> Iterable[Ref]:
        """Return who is interested in anything."""
        return self._of.keys()

    def __iter__(self) -> Iterator[Follow]:
        """Yield everything that anybody follows."""
        return chain.from_iterable(self._of.values())


class _Heed:
    """Whom a change is news to, found out once for all who follow in the same way."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._known: dict[Parties, Collection[str] | None] = {}

    def __call__(self, follow: Follow) -> bool:
        before, after = self._change.before, self._change.after
        if follow.parties is None or before is None or after is None:
            return True
        if follow.parties not in self._known:
            self._known[follow.parties] = follow.parties(before, after)
        whom = self._known[follow.parties]
        return whom is None or follow.party in whom


def _places(follow: Follow) -> Iterator[_Place]:
    for name in ("",) if follow.names is None else sorted(set(follow.names)):
        yield follow.cluster, follow.kind.group_kind, name
