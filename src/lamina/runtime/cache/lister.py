"""Read access to the cached objects of one or more clusters: the `World` that a controller is given."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from itertools import chain

from lamina.core.model.world import Grouping, Index
from lamina.errors import Forbidden
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer


class Lister:
    """
    The world of one controller on one cluster: an indexer for each kind it watches.

    `others` are its worlds on other clusters, by the names that the controller uses
    for them; all of them share this mapping, which their creator keeps up to date.
    """

    def __init__(self, deleted_uids: DeletedUids, others: Mapping[str, Lister] | None = None) -> None:
        self._deleted_uids = deleted_uids
        self._others: Mapping[str, Lister] = others if others is not None else {}
        self._kinds = Kinds()
        self._indexers: Mapping[GroupKind, Indexer] = {}

    def set_indexers(self, kinds: Kinds, indexers: Mapping[GroupKind, Indexer]) -> None:
        """Read from these indexers from now on."""
        self._kinds, self._indexers = kinds, indexers

    @property
    def kinds(self) -> Kinds:
        return self._kinds

    @property
    def clusters(self) -> Collection[str]:
        return self._others.keys()

    def on(self, cluster: str) -> Lister:
        if not cluster:
            return self
        found = self._others.get(cluster)
        return found if found is not None else Lister(DeletedUids(), self._others)

    def refusals(self) -> Mapping[GroupKind, Forbidden]:
        return {
            name: indexer.refused for name, indexer in self._indexers.items() if indexer.refused is not None
        }

    def get(self, ref: Ref) -> Obj | None:
        if ref.cluster:
            return self.on(ref.cluster).get(ref._replace(cluster=""))
        indexer = self._indexers.get(GroupKind(ref.group, ref.kind))
        return indexer.get(ref.namespace, ref.name) if indexer is not None else None

    def every(self, kind: GroupKind, namespace: str | None = None) -> Collection[Obj]:
        indexer = self._indexers.get(kind)
        return indexer.every(namespace) if indexer is not None else ()

    def count(self, kind: GroupKind) -> int:
        indexer = self._indexers.get(kind)
        return indexer.count if indexer is not None else 0

    def in_namespace(self, namespace: str) -> Iterator[tuple[Kind, Collection[Obj]]]:
        for indexer in self._indexers.values():
            found = indexer.every(namespace)
            if found:
                yield indexer.kind, found

    def owned_by(self, uid: str, kind: GroupKind | None = None) -> Collection[Obj]:
        if kind is not None:
            indexer = self._indexers.get(kind)
            return indexer.owned_by(uid) if indexer is not None else ()
        return tuple(chain.from_iterable(indexer.owned_by(uid) for indexer in self._indexers.values()))

    def unclaimed(self, kind: GroupKind, namespace: str | None) -> Collection[Obj]:
        indexer = self._indexers.get(kind)
        return indexer.unclaimed(namespace) if indexer is not None else ()

    def by_index(self, kind: GroupKind, by: Index, key: str) -> Collection[Obj]:
        indexer = self._indexers.get(kind)
        return indexer.by_index(by, key) if indexer is not None else ()

    def grouped(self, kind: GroupKind, by: Grouping, key: str) -> Mapping[Hashable, Collection[Obj]]:
        indexer = self._indexers.get(kind)
        return indexer.grouped(by, key) if indexer is not None else {}

    def is_gone(self, uid: str) -> bool:
        return uid in self._deleted_uids
