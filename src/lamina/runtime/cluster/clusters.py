"""
The clusters of a manager: the primary one, and others by name.

Discovery of the primary cluster must succeed or the manager fails. Other
clusters are bound and unbound at any time, are retried while they do not
respond, and delay only the controllers that name them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from lamina.client.client import Client
from lamina.core.model.controller import EVERYWHERE, Watch
from lamina.core.model.queries import Follow
from lamina.core.model.world import Change
from lamina.errors import CacheNotSynced, UnknownCluster
from lamina.logs import Logger
from lamina.objects.types import GroupKind
from lamina.runtime.cache.discovery import DiscoveryCache
from lamina.runtime.cache.watch_spec import ChangeHandler, WatchSpec, add_watches, specs_to_follow
from lamina.runtime.cluster.cache_view import CacheView
from lamina.runtime.cluster.cluster import Cluster

_MAX_INFORMERS_BY_NAME = 8


class Subscriber(Protocol):
    """Watches clusters and handles their changes: a controller or a source."""

    @property
    def cache(self) -> CacheView: ...

    def watches_on(self, name: str) -> Sequence[tuple[Watch, ChangeHandler]]:
        """Return the watches on a cluster with their handlers."""
        ...

    @property
    def follows(self) -> Iterable[tuple[str, WatchSpec]]:
        """Return the dynamic watches, each with its cluster."""
        ...

    def handle_dynamic(self, change: Change) -> None: ...


class _Started(NamedTuple):
    """The task group of all informers, and the callbacks."""

    group: asyncio.TaskGroup
    on_discovery: Callable[[Cluster], None]
    on_synced: Callable[[Cluster], None]


class Clusters:
    """
    All clusters of a manager.

    `others` has the clients of all but the primary cluster; every reader and
    writer shares this mapping, so a cluster that is bound is reachable at once.
    """

    def __init__(
        self, client: Client, others: Mapping[str, Client] | None, log: Logger, discovery_period: float
    ) -> None:
        self.others: dict[str, Client] = {}
        self._cancel: dict[str, Callable[[], None]] = {}
        self._client, self._log, self._discovery_period = client, log, discovery_period
        self._discovery = self._new_discovery(client)
        self._clusters: dict[str, Cluster] = {}
        self._stopped = False
        self._started: _Started | None = None
        for name, other in (others or {}).items():
            self._register(name, other)

    def __iter__(self) -> Iterator[Cluster]:
        """Yield every cluster, the primary one first."""
        return iter(self._clusters.values())

    @property
    def is_running(self) -> bool:
        """Say whether informers run: after `start` and before `stop`."""
        return bool(self._clusters) and not self._stopped

    async def discover(self) -> None:
        """Discover the kinds of the primary cluster; raises the error of a server that does not respond."""
        await self._discovery.refresh()

    def start(
        self,
        group: asyncio.TaskGroup,
        on_discovery: Callable[[Cluster], None],
        on_synced: Callable[[Cluster], None],
    ) -> None:
        """
        Start all clusters, with their tasks in this group.

        `on_discovery` is called when the served kinds of a cluster change, and
        `on_synced` when another cluster has synced for the first time.
        """
        self._started = _Started(group, on_discovery, on_synced)
        primary = self._clusters[""] = Cluster("", self._client, self._discovery, group, self._log)
        primary.follow_discovery(partial(on_discovery, primary))
        for name, client in self.others.items():
            self._add(name, client)

    def stop(self) -> None:
        """Start nothing more: the task group is about to end."""
        self._stopped = True

    def clear(self) -> None:
        """Drop all references, once every task has ended."""
        self.stop()
        for cluster in self._clusters.values():
            cluster.clear()
        self._started = None
        self._clusters = {}

    def bind(self, name: str, client: Client) -> None:
        """Add another cluster."""
        if name in ("", EVERYWHERE):
            raise ValueError(f"{name!r} is no name for another cluster")
        self._register(name, client)
        if self.is_running:
            self._add(name, self.others[name])

    def _register(self, name: str, client: Client) -> None:
        self.others[name], self._cancel[name] = client.cancellable()

    def unbind(self, name: str) -> None:
        """Remove a cluster, and cancel its requests."""
        if self.others.pop(name, None) is not None:
            self._cancel.pop(name)()
        if name in self._clusters and name:
            self._clusters.pop(name).stop()

    def _add(self, name: str, client: Client) -> None:
        assert self._started is not None, "clusters are added after start"
        group, on_discovery, on_synced = self._started
        cluster = Cluster(name, client, self._new_discovery(client), group, self._log.bind(cluster=name))
        self._clusters[name] = cluster
        cluster.connect(partial(on_discovery, cluster), partial(on_synced, cluster))

    def _new_discovery(self, client: Client) -> DiscoveryCache:
        return DiscoveryCache(client, self._log, period=self._discovery_period)

    def cache(self, watches: Collection[Watch]) -> CacheView:
        """Return a view for these watches; `set_watches` connects it to informers."""
        return CacheView(self._client, self._clusters[""].informers.deleted_uids, watches, others=self.others)

    async def wait_primary_synced(self) -> None:
        """Wait until the informers of the primary cluster have synced."""
        await self._clusters[""].informers.wait_synced()

    async def wait_synced(self) -> None:
        """Wait until the informers of all present clusters have synced."""
        _, *others = self._clusters.values()
        await self.wait_primary_synced()
        for cluster in others:
            await cluster.synced.wait()
            await cluster.informers.wait_synced()

    def set_watches(self, subscribers: Sequence[Subscriber], only: Cluster | None = None) -> None:
        """Run exactly the informers that the subscribers need, on one cluster or on all."""
        for subscriber in subscribers:
            subscriber.cache.bind(self._clusters)
        for cluster in (only,) if only is not None else tuple(self._clusters.values()):
            if cluster.is_discovered:
                self._set_watches_on(cluster, subscribers)

    def _set_watches_on(self, cluster: Cluster, subscribers: Sequence[Subscriber]) -> None:
        kinds, name = cluster.kinds, cluster.name
        wanted: dict[WatchSpec, list[ChangeHandler]] = {}
        views: list[tuple[CacheView, Mapping[GroupKind, WatchSpec]]] = []
        for subscriber in subscribers:
            if subscriber.cache.includes_cluster(name):
                views.append((subscriber.cache, add_watches(kinds, subscriber.watches_on(name), wanted)))
            for on, what in subscriber.follows:
                if on == name:
                    wanted.setdefault(what, []).append(subscriber.handle_dynamic)
        informers = cluster.set_watches(wanted)
        for cache, specs in views:
            cache.set_informers(kinds, {kind: informers[what] for kind, what in specs.items()}, name)

    def watch_for(
        self, follow: Follow, existing: Iterable[tuple[str, WatchSpec]]
    ) -> tuple[Cluster, WatchSpec]:
        """Return the cluster and spec by which to follow a query, given the existing dynamic watches."""
        cluster = self._clusters.get(follow.cluster)
        if cluster is None:
            raise UnknownCluster(follow.cluster, self.others)
        if not cluster.is_discovered:
            raise CacheNotSynced(f"cluster {follow.cluster} has not responded yet")
        has_informer = cluster.informers.has_informer
        whole, *narrow = specs_to_follow(follow)
        # A few watches by name are cheaper than one of the whole kind; many are not.
        one_by_one = sum(on == follow.cluster and what.kind == follow.kind for on, what in existing)
        several = one_by_one >= _MAX_INFORMERS_BY_NAME and not any(map(has_informer, narrow))
        return cluster, whole if not narrow or several or has_informer(whole) else narrow[0]
