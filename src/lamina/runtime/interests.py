"""
Who asked to be told of what.

A pass over a key may ask to follow objects that no watch of its controller is
about. What the last pass asked is what the key is interested in, and a change
to an object that matches, or did, brings the key round again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lamina.core.questions import Follow
from lamina.core.world import Change
from lamina.objects.types import GroupKind, Ref


class Interests:
    """What each key asked to follow, found by kind."""

    def __init__(self) -> None:
        self._of: dict[Ref, frozenset[Follow]] = {}
        self._in: dict[tuple[str, GroupKind], dict[Ref, list[Follow]]] = {}
        """By cluster and kind."""

    def set(self, ref: Ref, asked: Iterable[Follow]) -> None:
        """Have a key be interested in exactly this."""
        wanted = frozenset(asked)
        before = self._of.get(ref, frozenset())
        if wanted == before:
            return
        for place in set(map(_place, before)):
            keys = self._in[place]
            del keys[ref]
            if not keys:
                del self._in[place]
        for follow in wanted:
            self._in.setdefault(_place(follow), {}).setdefault(ref, []).append(follow)
        if wanted:
            self._of[ref] = wanted
        else:
            self._of.pop(ref, None)

    def concerned(self, change: Change) -> Iterator[Ref]:
        """Yield the keys that a change is of interest to."""
        shown = [obj for obj in (change.before, change.after) if obj is not None]
        for ref, follows in self._in.get((change.cluster, change.kind.group_kind), {}).items():
            if any(follow.matches(obj) for follow in follows for obj in shown):
                yield ref

    def __iter__(self) -> Iterator[Follow]:
        """Yield everything that anybody follows."""
        return chain.from_iterable(self._of.values())


def _place(follow: Follow) -> tuple[str, GroupKind]:
    return follow.cluster, follow.kind.group_kind
