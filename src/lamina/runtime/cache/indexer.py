"""Stores the objects of one kind with indexes, as client-go's Indexer does."""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterator, Mapping
from itertools import chain
from typing import Any

from lamina.core.model.world import Grouping, Index
from lamina.errors import Forbidden
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj

_MAX_DELETED_UIDS = 4096


class Indexer:
    """The objects of one kind, by namespace and name, by owner, without a controller, and by added indexes."""

    __slots__ = ("_groupings", "_indexes", "_objects", "_owned", "_unclaimed", "count", "kind", "refused")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.count = 0
        self.refused: Forbidden | None = None
        """Why its objects may not be listed: it is empty then because they are not known."""
        self._objects: dict[str, dict[str, Obj]] = {}
        self._owned: dict[str, dict[tuple[str, str], Obj]] = {}
        self._unclaimed: dict[str, dict[str, Obj]] = {}
        self._indexes: dict[Index, dict[str, dict[tuple[str, str], Obj]]] = {}
        self._groupings: dict[Grouping, _GroupIndex] = {}

    def get(self, namespace: str, name: str) -> Obj | None:
        found = self._objects.get(namespace)
        return found.get(name) if found is not None else None

    def put(self, obj: Obj) -> Obj | None:
        """Store an object, and return the one it replaces."""
        metadata: Mapping[str, Any] = obj["metadata"]
        namespace, name = metadata.get("namespace") or "", metadata["name"]
        found = self._objects.get(namespace)
        if found is None:
            found = self._objects[sys.intern(namespace)] = {}
        old = found.get(name)
        found[name] = obj
        if old is None:
            self.count += 1
        else:
            self._drop_owned(namespace, name, old)
        claimed = False
        for owner in metadata.get("ownerReferences") or ():
            self._owned.setdefault(owner["uid"], {})[namespace, name] = obj
            claimed = claimed or bool(owner.get("controller"))
        if not claimed:
            self._unclaimed.setdefault(namespace, {})[name] = obj
        elif old is not None:
            self._drop_unclaimed(namespace, name)
        if self._indexes:
            self._reindex((namespace, name), old, obj)
        for grouping in self._groupings.values():
            grouping.update((namespace, name), obj)
        return old

    def drop(self, namespace: str, name: str) -> Obj | None:
        """Remove an object, and return it."""
        found = self._objects.get(namespace)
        old = found.pop(name, None) if found is not None else None
        if old is None:
            return None
        if not found:
            del self._objects[namespace]
        self.count -= 1
        self._drop_owned(namespace, name, old)
        self._drop_unclaimed(namespace, name)
        if self._indexes:
            self._reindex((namespace, name), old, None)
        for grouping in self._groupings.values():
            grouping.update((namespace, name), None)
        return old

    def _drop_unclaimed(self, namespace: str, name: str) -> None:
        found = self._unclaimed.get(namespace)
        if found is not None:
            found.pop(name, None)
            if not found:
                del self._unclaimed[namespace]

    def _drop_owned(self, namespace: str, name: str, obj: Obj) -> None:
        for owner in meta.owner_refs(obj):
            owned = self._owned.get(owner["uid"])
            if owned is not None:
                owned.pop((namespace, name), None)
                if not owned:
                    del self._owned[owner["uid"]]

    def _reindex(self, full_name: tuple[str, str], old: Obj | None, new: Obj | None) -> None:
        """Update the added indexes."""
        for by, index in self._indexes.items():
            for key in by(old) if old is not None else ():
                found = index.get(key, {})
                if found.pop(full_name, None) is not None and not found:
                    del index[key]
            if new is not None:
                for key in by(new):
                    index.setdefault(key, {})[full_name] = new

    def every(self, namespace: str | None = None) -> Collection[Obj]:
        if namespace is not None:
            found = self._objects.get(namespace)
            return found.values() if found is not None else ()
        return tuple(chain.from_iterable(found.values() for found in self._objects.values()))

    def full_names(self) -> Iterator[tuple[str, str]]:
        """Yield the namespace and name of every object."""
        for namespace, found in self._objects.items():
            for name in found:
                yield namespace, name

    def owned_by(self, uid: str) -> Collection[Obj]:
        owned = self._owned.get(uid)
        return owned.values() if owned is not None else ()

    def unclaimed(self, namespace: str | None) -> Collection[Obj]:
        if namespace is None:
            return tuple(chain.from_iterable(found.values() for found in self._unclaimed.values()))
        found = self._unclaimed.get(namespace)
        return found.values() if found is not None else ()

    def by_index(self, by: Index, key: str) -> Collection[Obj]:
        """Return the objects for which `by` yields a key; the first call builds the index."""
        index = self._indexes.get(by)
        if index is None:
            index = self._indexes[by] = {}
            for namespace, objects in self._objects.items():
                for name, obj in objects.items():
                    for one in by(obj):
                        index.setdefault(one, {})[namespace, name] = obj
        found = index.get(key)
        return found.values() if found is not None else ()

    def grouped(self, by: Grouping, key: str) -> Mapping[Hashable, Collection[Obj]]:
        """Return the objects of a key by their group; the first call groups all objects."""
        grouping = self._groupings.get(by)
        if grouping is None:
            grouping = self._groupings[by] = _GroupIndex(by)
            for namespace, objects in self._objects.items():
                for name, obj in objects.items():
                    grouping.update((namespace, name), obj)
        return grouping.groups(key)


class _GroupIndex:
    """Objects by a key, and below it by their group."""

    __slots__ = ("_by", "_group_of", "_groups")

    def __init__(self, by: Grouping) -> None:
        self._by = by
        self._groups: dict[str, dict[Hashable, dict[tuple[str, str], Obj]]] = {}
        self._group_of: dict[tuple[str, str], tuple[str, Hashable]] = {}

    def update(self, full_name: tuple[str, str], obj: Obj | None) -> None:
        """Move an object to the group it belongs to now."""
        old_group = self._group_of.get(full_name)
        new_group = self._by(obj) if obj is not None else None
        if old_group is not None and old_group != new_group:
            key, value = old_group
            groups = self._groups[key]
            group = groups[value]
            del group[full_name]
            if not group:
                del groups[value]
                if not groups:
                    del self._groups[key]
            del self._group_of[full_name]
        if new_group is not None and obj is not None:
            key, value = new_group
            self._groups.setdefault(key, {}).setdefault(value, {})[full_name] = obj
            self._group_of[full_name] = new_group

    def groups(self, key: str) -> Mapping[Hashable, Collection[Obj]]:
        return {value: group.values() for value, group in self._groups.get(key, {}).items()}


class DeletedUids:
    """The uids of the last few thousand objects whose deletion was seen."""

    __slots__ = ("_capacity", "_uids")

    def __init__(self, capacity: int = _MAX_DELETED_UIDS) -> None:
        self._capacity = capacity
        self._uids: dict[str, None] = {}

    def add(self, uid: str) -> None:
        self._uids[uid] = None
        if len(self._uids) > self._capacity:
            del self._uids[next(iter(self._uids))]

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids
