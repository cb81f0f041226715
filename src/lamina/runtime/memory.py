"""
What is remembered of a cluster, and how it is found again.

A shelf holds the objects of one kind; a memory is several shelves, looked at
as one world; memories of several clusters lead from one to another. Nothing here
waits or fetches: between two events a memory is as still as any picture.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterator, Mapping
from itertools import chain
from typing import Any

from lamina.core.world import Index, Likeness
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref

_MOST_GONE = 4096


class Shelf:
    """The objects of one kind, found by namespace and name, by owner or the want of one, and as anybody asks."""

    __slots__ = ("_counts", "_indexes", "_objects", "_owned", "_unclaimed", "count", "kind")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.count = 0
        self._objects: dict[str, dict[str, Obj]] = {}
        self._owned: dict[str, dict[tuple[str, str], Obj]] = {}
        self._unclaimed: dict[str, dict[str, Obj]] = {}
        self._indexes: dict[Index, dict[str, dict[tuple[str, str], Obj]]] = {}
        self._counts: dict[Likeness, _Count] = {}

    def get(self, namespace: str, name: str) -> Obj | None:
        there = self._objects.get(namespace)
        return there.get(name) if there is not None else None

    def put(self, obj: Obj) -> Obj | None:
        """Remember an object, and return what it takes the place of."""
        metadata: Mapping[str, Any] = obj["metadata"]
        namespace, name = metadata.get("namespace") or "", metadata["name"]
        there = self._objects.get(namespace)
        if there is None:
            there = self._objects[sys.intern(namespace)] = {}
        old = there.get(name)
        there[name] = obj
        if old is None:
            self.count += 1
        else:
            self._disown(namespace, name, old)
        claimed = False
        for owner in metadata.get("ownerReferences") or ():
            self._owned.setdefault(owner["uid"], {})[namespace, name] = obj
            claimed = claimed or bool(owner.get("controller"))
        if not claimed:
            self._unclaimed.setdefault(namespace, {})[name] = obj
        elif old is not None:
            self._claim(namespace, name)
        if self._indexes:
            self._note((namespace, name), old, obj)
        for count in self._counts.values():
            count.note((namespace, name), obj)
        return old

    def drop(self, namespace: str, name: str) -> Obj | None:
        """Forget an object, and return what was remembered of it."""
        there = self._objects.get(namespace)
        old = there.pop(name, None) if there is not None else None
        if old is None:
            return None
        if not there:
            del self._objects[namespace]
        self.count -= 1
        self._disown(namespace, name, old)
        self._claim(namespace, name)
        if self._indexes:
            self._note((namespace, name), old, None)
        for count in self._counts.values():
            count.note((namespace, name), None)
        return old

    def _claim(self, namespace: str, name: str) -> None:
        there = self._unclaimed.get(namespace)
        if there is not None:
            there.pop(name, None)
            if not there:
                del self._unclaimed[namespace]

    def _disown(self, namespace: str, name: str, obj: Obj) -> None:
        for owner in meta.owner_refs(obj):
            owned = self._owned.get(owner["uid"])
            if owned is not None:
                owned.pop((namespace, name), None)
                if not owned:
                    del self._owned[owner["uid"]]

    def _note(self, place: tuple[str, str], old: Obj | None, new: Obj | None) -> None:
        """Keep up to date what has been asked for."""
        for by, index in self._indexes.items():
            for key in by(old) if old is not None else ():
                there = index.get(key, {})
                if there.pop(place, None) is not None and not there:
                    del index[key]
            if new is not None:
                for key in by(new):
                    index.setdefault(key, {})[place] = new

    def every(self, namespace: str | None = None) -> Collection[Obj]:
        if namespace is not None:
            there = self._objects.get(namespace)
            return there.values() if there is not None else ()
        return tuple(chain.from_iterable(there.values() for there in self._objects.values()))

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield the namespace and name of everything remembered."""
        for namespace, there in self._objects.items():
            for name in there:
                yield namespace, name

    def owned_by(self, uid: str) -> Collection[Obj]:
        owned = self._owned.get(uid)
        return owned.values() if owned is not None else ()

    def unclaimed(self, namespace: str | None) -> Collection[Obj]:
        if namespace is None:
            return tuple(chain.from_iterable(there.values() for there in self._unclaimed.values()))
        there = self._unclaimed.get(namespace)
        return there.values() if there is not None else ()

    def found(self, by: Index, key: str) -> Collection[Obj]:
        """Return the objects for which `by` yields a key; the first to ask has all of them looked at."""
        index = self._indexes.get(by)
        if index is None:
            index = self._indexes[by] = {}
            for namespace, objects in self._objects.items():
                for name, obj in objects.items():
                    for one in by(obj):
                        index.setdefault(one, {})[namespace, name] = obj
        there = index.get(key)
        return there.values() if there is not None else ()

    def alike(self, by: Likeness, key: str) -> Mapping[Hashable, Collection[Obj]]:
        """Return the objects that are counted under a key; the first to ask has all of them counted."""
        count = self._counts.get(by)
        if count is None:
            count = self._counts[by] = _Count(by)
            for namespace, objects in self._objects.items():
                for name, obj in objects.items():
                    count.note((namespace, name), obj)
        return count.under(key)


class _Count:
    """Objects by a key, and under it by what they have in common."""

    __slots__ = ("_by", "_groups", "_places")

    def __init__(self, by: Likeness) -> None:
        self._by = by
        self._groups: dict[str, dict[Hashable, dict[tuple[str, str], Obj]]] = {}
        self._places: dict[tuple[str, str], tuple[str, Hashable]] = {}

    def note(self, place: tuple[str, str], obj: Obj | None) -> None:
        """Count an object where it belongs now, and no more where it did."""
        was = self._places.get(place)
        now = self._by(obj) if obj is not None else None
        if was is not None and was != now:
            key, likeness = was
            groups = self._groups[key]
            group = groups[likeness]
            del group[place]
            if not group:
                del groups[likeness]
                if not groups:
                    del self._groups[key]
            del self._places[place]
        if now is not None and obj is not None:
            key, likeness = now
            self._groups.setdefault(key, {}).setdefault(likeness, {})[place] = obj
            self._places[place] = now

    def under(self, key: str) -> Mapping[Hashable, Collection[Obj]]:
        return {likeness: group.values() for likeness, group in self._groups.get(key, {}).items()}


class Gone:
    """The uids whose end was seen, the latest few thousand: certain where it says yes."""

    __slots__ = ("_most", "_uids")

    def __init__(self, most: int = _MOST_GONE) -> None:
        self._most = most
        self._uids: dict[str, None] = {}

    def add(self, uid: str) -> None:
        self._uids[uid] = None
        if len(self._uids) > self._most:
            del self._uids[next(iter(self._uids))]

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids


class Memory:
    """
    The world of one controller on one cluster: a shelf for each kind it watches.

    `others` are its worlds on other clusters, by the names it has for them; all
    of them share one such table, which whoever made them keeps up to date.
    """

    def __init__(self, gone: Gone, others: Mapping[str, Memory] | None = None) -> None:
        self._gone = gone
        self._others: Mapping[str, Memory] = others if others is not None else {}
        self._kinds = Kinds()
        self._shelves: Mapping[GroupKind, Shelf] = {}

    def arrange(self, kinds: Kinds, shelves: Mapping[GroupKind, Shelf]) -> None:
        """Look at these shelves from now on."""
        self._kinds, self._shelves = kinds, shelves

    @property
    def kinds(self) -> Kinds:
        return self._kinds

    @property
    def clusters(self) -> Collection[str]:
        return self._others.keys()

    def on(self, cluster: str) -> Memory:
        if not cluster:
            return self
        there = self._others.get(cluster)
        return there if there is not None else Memory(Gone(), self._others)

    def get(self, ref: Ref) -> Obj | None:
        if ref.cluster:
            return self.on(ref.cluster).get(ref._replace(cluster=""))
        shelf = self._shelves.get(GroupKind(ref.group, ref.kind))
        return shelf.get(ref.namespace, ref.name) if shelf is not None else None

    def every(self, kind: GroupKind, namespace: str | None = None) -> Collection[Obj]:
        shelf = self._shelves.get(kind)
        return shelf.every(namespace) if shelf is not None else ()

    def count(self, kind: GroupKind) -> int:
        shelf = self._shelves.get(kind)
        return shelf.count if shelf is not None else 0

    def in_namespace(self, namespace: str) -> Iterator[tuple[Kind, Collection[Obj]]]:
        for shelf in self._shelves.values():
            there = shelf.every(namespace)
            if there:
                yield shelf.kind, there

    def owned_by(self, uid: str, kind: GroupKind | None = None) -> Collection[Obj]:
        if kind is not None:
            shelf = self._shelves.get(kind)
            return shelf.owned_by(uid) if shelf is not None else ()
        return tuple(chain.from_iterable(shelf.owned_by(uid) for shelf in self._shelves.values()))

    def unclaimed(self, kind: GroupKind, namespace: str | None) -> Collection[Obj]:
        shelf = self._shelves.get(kind)
        return shelf.unclaimed(namespace) if shelf is not None else ()

    def found(self, kind: GroupKind, by: Index, key: str) -> Collection[Obj]:
        shelf = self._shelves.get(kind)
        return shelf.found(by, key) if shelf is not None else ()

    def alike(self, kind: GroupKind, by: Likeness, key: str) -> Mapping[Hashable, Collection[Obj]]:
        shelf = self._shelves.get(kind)
        return shelf.alike(by, key) if shelf is not None else {}

    def is_gone(self, uid: str) -> bool:
        return uid in self._gone
