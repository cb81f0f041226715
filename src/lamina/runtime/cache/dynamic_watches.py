"""
Dynamic watches: the objects that keys follow beyond the watches of their controller.

A reconcile may query objects that no watch of its controller covers. A change to
an object that matches such a query, or did, enqueues the key, for as long as each
reconcile asks the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from lamina.core.model.queries import Affects, Follow
from lamina.core.model.world import Change
from lamina.objects import meta
from lamina.objects.types import GroupKind, Ref

_IndexKey: TypeAlias = tuple[str, GroupKind, str, str]
"""A cluster, a kind, a namespace and a name; an empty namespace or name stands for any."""


class DynamicWatches:
    """What each key follows, indexed by kind, and by namespace and name where the query names them."""

    def __init__(self) -> None:
        self._by_key: dict[Ref, frozenset[Follow]] = {}
        self._index: dict[_IndexKey, dict[Ref, list[Follow]]] = {}

    def set(self, ref: Ref, queries: Iterable[Follow]) -> None:
        """Have a key follow exactly this."""
        wanted = frozenset(queries)
        before = self._by_key.get(ref, frozenset())
        if wanted == before:
            return
        for index_key in {index_key for follow in before for index_key in _index_keys(follow)}:
            keys = self._index[index_key]
            del keys[ref]
            if not keys:
                del self._index[index_key]
        for follow in wanted:
            for index_key in _index_keys(follow):
                self._index.setdefault(index_key, {}).setdefault(ref, []).append(follow)
        if wanted:
            self._by_key[ref] = wanted
        else:
            self._by_key.pop(ref, None)

    def extend(self, ref: Ref, more: Iterable[Follow]) -> None:
        """Have a key follow this besides what it follows already."""
        self.set(ref, (*self._by_key.get(ref, ()), *more))

    def keys_for(self, change: Change) -> Iterator[Ref]:
        """Yield the keys that a change is to enqueue."""
        objects = [obj for obj in (change.before, change.after) if obj is not None]
        found: set[Ref] = set()
        affects = _Affected(change)
        for place in _places(meta.namespace(change.obj), meta.name(change.obj)):
            for ref, follows in self._index.get((change.cluster, change.kind.group_kind, *place), {}).items():
                if ref not in found and any(
                    follow.matches(obj) for follow in follows if affects(follow) for obj in objects
                ):
                    found.add(ref)
                    yield ref

    @property
    def keys(self) -> Iterable[Ref]:
        """Return the keys that follow anything."""
        return self._by_key.keys()

    def __iter__(self) -> Iterator[Follow]:
        """Yield everything that is followed."""
        return chain.from_iterable(self._by_key.values())


class _Affected:
    """Says whether a change affects a follower, computed once for all that share the function `affects`."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._known: dict[Affects, Collection[str] | None] = {}

    def __call__(self, follow: Follow) -> bool:
        before, after = self._change.before, self._change.after
        if follow.affects is None or before is None or after is None:
            return True
        if follow.affects not in self._known:
            self._known[follow.affects] = follow.affects(before, after)
        subscribers = self._known[follow.affects]
        return subscribers is None or follow.subscriber in subscribers


def _index_keys(follow: Follow) -> Iterator[_IndexKey]:
    names, namespaces = follow.names or ("",), follow.namespaces or ("",)
    if len(namespaces) > 1 < len(names):
        # Names alone distinguish enough, and need not be multiplied by the namespaces.
        namespaces = ("",)
    if follow.names != () and follow.namespaces != ():
        for name in sorted(set(names)):
            for namespace in sorted(set(namespaces)):
                yield follow.cluster, follow.kind.group_kind, namespace, name


def _places(namespace: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the namespaces and names under which queries that an object matches are found."""
    for either in {namespace: None, "": None}:
        yield either, ""
        yield either, name
