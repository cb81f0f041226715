"""
The cached worlds of one controller, kept consistent with its own writes.

A worker reads its own writes: before a reconcile it waits until its informers
have reached every version that it wrote; after a timeout it reads the objects
live. A version is only compared with the cache of the cluster it was written to.

The clusters that a controller names are waited for: without the hub, an agent
can decide nothing. A cluster that it only watches because it watches EVERYWHERE
joins its world when its caches have synced, and delays only keys of that cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from lamina.core.model.controller import EVERYWHERE, Watch
from lamina.core.model.effects import Written
from lamina.errors import CacheNotSynced, NotFound, UnknownCluster, UnknownKind
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Made, Ref
from lamina.runtime.cache.indexer import DeletedUids
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.informer_factory import covering
from lamina.runtime.cache.lister import Lister
from lamina.runtime.cache.watch_spec import named_clusters
from lamina.runtime.cluster.cluster import Cluster
from lamina.runtime.cluster.lookup import resolve

_TIMEOUT = 2.0


class LiveReader(Protocol):
    """The part of a client that live reads use."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...


class _ClusterCache:
    """The cache of one cluster, and the events it has to wait for until it is synced."""

    __slots__ = ("awaited", "informers", "world")

    def __init__(self, world: Lister, awaited: Sequence[asyncio.Event] = ()) -> None:
        self.world = world
        self.informers: Mapping[GroupKind, Informer] = {}
        self.awaited = awaited

    @property
    def is_synced(self) -> bool:
        if self.awaited:
            self.awaited = [one for one in self.awaited if not one.is_set()]
        return not self.awaited

    async def next_synced(self) -> None:
        """Wait for one of the events that are missing."""
        await self.awaited[-1].wait()


class CacheView:
    """
    The worlds of one controller, and the means to bring them up to date.

    `others` reads live from the clusters other than the primary one.
    """

    def __init__(
        self,
        reader: LiveReader,
        deleted_uids: DeletedUids,
        watches: Collection[Watch] = (),
        *,
        others: Mapping[str, LiveReader] | None = None,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._worlds: dict[str, Lister] = {}
        self.world = Lister(deleted_uids, self._worlds)
        self._reader, self._timeout = reader, timeout
        self._others: Mapping[str, LiveReader] = others if others is not None else {}
        self._caches = {"": _ClusterCache(self.world)}
        self.every_cluster = any(watch.cluster == EVERYWHERE for watch in watches)
        """Whether the controller watches every cluster that is bound."""
        self._names = named_clusters(watches)
        self._clusters: dict[str, Cluster] = {}
        self._unbound = self._names
        self._awaited = [self._caches[""]]

    # ── clusters and informers ──

    def includes_cluster(self, cluster: str) -> bool:
        return not cluster or self.every_cluster or cluster in self._names

    def bind(self, clusters: Mapping[str, Cluster]) -> None:
        """Read from exactly these clusters, as far as the controller watches them."""
        if not self._names and not self.every_cluster:
            return
        for cluster, bound in list(self._clusters.items()):
            if clusters.get(cluster) is not bound:
                del self._caches[cluster], self._clusters[cluster]
                self._worlds.pop(cluster, None)
        for cluster, found in clusters.items():
            if cluster and cluster not in self._caches and self.includes_cluster(cluster):
                cache = _ClusterCache(Lister(found.informers.deleted_uids, self._worlds), (found.discovered,))
                self._caches[cluster], self._clusters[cluster] = cache, found
                if cluster in self._names:
                    self._worlds[cluster] = cache.world
        self._unbound = self._names - self._caches.keys()
        self._awaited = [
            cache for cluster, cache in self._caches.items() if not cluster or cluster in self._names
        ]

    def set_informers(self, kinds: Kinds, informers: Mapping[GroupKind, Informer], cluster: str = "") -> None:
        """Read a cluster through these informers from now on."""
        cache = self._caches[cluster]
        cache.informers = informers
        cache.awaited = [one.synced for one in informers.values()]
        self.set_kinds(kinds, cluster)
        if cluster and cache.is_synced:
            self._worlds[cluster] = cache.world

    def set_kinds(self, kinds: Kinds, cluster: str = "") -> None:
        """Set the served kinds of a cluster; its informers stay."""
        cache = self._caches[cluster]
        cache.world.set_indexers(
            kinds, {kind: informer.indexer for kind, informer in cache.informers.items()}
        )

    @property
    def bindings(self) -> Mapping[str, object]:
        """Return the reader of each other cluster: a name may be bound to another cluster later."""
        return dict(self._others)

    def same_bindings(self, clusters: Iterable[str], then: Mapping[str, object]) -> bool:
        """Say whether these names are still bound to the same clusters."""
        return all(self._others.get(cluster) is then.get(cluster) for cluster in clusters)

    # ── whether it is up to date ──

    @property
    def is_synced(self) -> bool:
        """Say whether every informer that is waited for has synced."""
        has_informers = any(cache.informers for cache in self._awaited)
        return has_informers and not self._unbound and all(cache.is_synced for cache in self._awaited)

    def is_unbound(self, cluster: str) -> bool:
        """Say whether this is a cluster that the controller does not name and that has been unbound."""
        return self.every_cluster and cluster not in self._caches and cluster not in self._names

    async def wait_synced(self, cluster: str = "") -> None:
        """Wait until the caches that a reconcile of a key on this cluster needs have synced."""
        while (unsynced := self._next_unsynced()) is not None:
            # Other informers may be missing afterwards.
            await unsynced.next_synced()
        if cluster:
            wanted = self._caches.get(cluster)
            if wanted is None:
                raise UnknownCluster(cluster, self._worlds)
            if not wanted.is_synced:
                # An unresponsive cluster is not waited for: it must not occupy a worker.
                raise CacheNotSynced(f"the caches of cluster {cluster} have not synced yet")

    def _next_unsynced(self) -> _ClusterCache | None:
        """Return a cache that has to sync first; raises UnknownCluster where a named cluster is not bound."""
        if self._unbound:
            raise UnknownCluster(min(self._unbound), self._worlds)
        for cache in self._awaited:
            if not cache.is_synced:
                return cache
        return None

    async def wait_written(self, written: Iterable[Written]) -> None:
        """Wait until the caches contain these writes; after a timeout, read the objects live."""
        try:
            async with asyncio.timeout(self._timeout):
                for write in written:
                    await self._wait_for(write)
        except TimeoutError:
            await self.refresh(write.ref for write in written if self._is_missed(write))

    async def _wait_for(self, write: Written) -> None:
        """Wait until the cache contains a write; if its informer stops, wait for the next one of that kind."""
        while (informer := self._covering(write.ref)) is not None and not informer.stopped:
            await informer.wait_until(partial(_contains, informer, write))
            if not informer.stopped:
                return

    def contains(self, written: Iterable[Written]) -> bool:
        """Say whether the caches contain all of these writes."""
        return not any(map(self._is_missed, written))

    def _is_missed(self, write: Written) -> bool:
        informer = self._covering(write.ref)
        return informer is not None and not _contains(informer, write)

    def _covering(self, ref: Ref) -> Informer | None:
        cache = self._caches.get(ref.cluster)
        return covering(cache.informers, ref) if cache is not None else None

    async def refresh(self, refs: Iterable[Ref]) -> None:
        """Read these objects live, and store them in the cache."""
        for ref in refs:
            informer = self._covering(ref)
            if informer is None or not ref.name:
                continue
            reader = resolve(ref.cluster, self._reader, self._others)
            cached = informer.indexer.get(ref.namespace, ref.name)
            try:
                found = await reader.get(ref, metadata_only=informer.what.metadata_only)
            except NotFound:
                informer.store_live(ref.namespace, ref.name, None, cached)
            except UnknownKind:
                continue
            else:
                informer.store_live(ref.namespace, ref.name, found, cached)


def _contains(informer: Informer, write: Written) -> bool:
    if write.version is not None:
        return informer.version >= write.version
    cached = informer.indexer.get(write.ref.namespace, write.ref.name)
    return cached is None or meta.uid(cached) != write.uid or meta.is_deleting(cached)
