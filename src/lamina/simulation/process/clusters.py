"""
The simulated clusters of one process: the primary one, and others by name.

The process has informers of its own on each; they receive events at once or, while
paused, later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from lamina.core.model.controller import Watch
from lamina.core.model.world import Change
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister
from lamina.runtime.cache.watch_spec import ChangeHandler, WatchSpec, watch_specs, watches_cluster
from lamina.runtime.cluster.lookup import resolve
from lamina.simulation.cluster.apiserver import Listener, SimulatedCluster
from lamina.simulation.process.informers import Event, Informer, Informers


class ConnectedCluster(NamedTuple):
    """One cluster, the informers of the process on it, and the listener that feeds them."""

    cluster: SimulatedCluster
    informers: Informers
    listener: Listener


class Clusters:
    """
    The clusters that one process is connected to.

    On the primary cluster `watches_kind` says which kinds are watched,
    `list_objects` returns the objects of a kind when its informer starts, and
    `deleted_uids` are known already. `changed` is called when the served kinds of
    a cluster change.
    """

    def __init__(
        self,
        primary: SimulatedCluster,
        others: Mapping[str, SimulatedCluster],
        *,
        watches_kind: Callable[[Kind], bool],
        list_objects: Callable[[Kind], Iterable[Obj]],
        deleted_uids: DeletedUids,
        changed: Callable[[], None],
    ) -> None:
        self._watches_kind, self._changed = watches_kind, changed
        self._kinds: dict[str, Kinds] = {}
        self._connected: dict[str, ConnectedCluster] = {}
        self._add("", primary, Informers(list_objects, deleted_uids))
        self.primary = self._connected[""]
        for name, cluster in others.items():
            self.bind(name, cluster)

    def bind(self, name: str, cluster: SimulatedCluster) -> None:
        """Add another cluster."""
        self.unbind(name)
        self._add(name, cluster, Informers(cluster.list_allowed, DeletedUids(), name))

    def unbind(self, name: str) -> None:
        """Remove a cluster."""
        connected = self._connected.pop(name, None)
        self._kinds.pop(name, None)
        if connected is not None:
            connected.cluster.listeners.remove(connected.listener)

    def stop(self) -> None:
        """Receive no more events."""
        for connected in self._connected.values():
            connected.cluster.listeners.remove(connected.listener)

    def _add(self, name: str, cluster: SimulatedCluster, informers: Informers) -> None:
        connected = self._connected[name] = ConnectedCluster(cluster, informers, partial(self._receive, name))
        cluster.listeners.append(connected.listener)

    def _receive(self, name: str, ref: Ref, before: Obj | None, after: Obj | None) -> None:
        cluster, informers, _ = self._connected[name]
        informers.receive(Event(ref, after, cluster.version))
        if cluster.kinds is not self._kinds.get(name):
            self._changed()

    def has(self, name: str) -> bool:
        return name in self._connected

    @property
    def clusters(self) -> tuple[SimulatedCluster, ...]:
        return tuple(connected.cluster for connected in self._connected.values())

    def on(self, name: str) -> ConnectedCluster:
        """Return the cluster of that name; raises UnknownCluster where there is none."""
        return resolve(name, self.primary, self._connected)

    def refresh(self) -> list[str]:
        """Take over the served kinds, remove all handlers, and return the clusters whose kinds changed."""
        changed = []
        for name, connected in self._connected.items():
            before, now = self._kinds.get(name), connected.cluster.kinds
            if before is not now and before != now:
                changed.append(name)
            self._kinds[name] = now
            connected.informers.clear_handlers()
        return changed

    def worlds(self) -> Worlds:
        return Worlds(self.primary.informers.deleted_uids)

    def set_watches(self, worlds: Worlds, watches: Iterable[tuple[Watch, ChangeHandler | None]]) -> None:
        """Have worlds read from the informers of these watches, and add the handlers of the watches."""
        indexers: dict[str, dict[GroupKind, Indexer]] = {name: {} for name in self._connected}
        included = {""}
        for watch, handler in watches:
            included |= {name for name in self._connected if watches_cluster(watch, name)}
            for name, spec, informer in self.informers_for(watch):
                if handler is not None:
                    informer.handlers.append(handler)
                indexers[name].setdefault(spec.kind.group_kind, informer.indexer)
        worlds.keep(included)
        for name in included:
            world = worlds.on(name, self._connected[name].informers.deleted_uids)
            world.set_indexers(self._kinds[name], indexers[name])

    def informers_for(self, watch: Watch) -> Iterator[tuple[str, WatchSpec, Informer]]:
        """Yield the informers of a watch, each with its cluster and spec."""
        for name, connected in self._connected.items():
            if watches_cluster(watch, name):
                for spec in watch_specs(self._kinds[name], watch):
                    if name or self._watches_kind(spec.kind):
                        yield name, spec, connected.informers.follow(spec)

    def existing(self, watch: Watch) -> Iterator[Change]:
        """Yield the existing objects of a watch as additions."""
        for name, spec, informer in self.informers_for(watch):
            for obj in tuple(informer.indexer.every()):
                yield Change(spec.kind, None, obj, name)


class Worlds:
    """The worlds of one controller, by cluster."""

    def __init__(self, deleted_uids: DeletedUids) -> None:
        self._others: dict[str, Lister] = {}
        self.primary = Lister(deleted_uids, self._others)

    def on(self, name: str, deleted_uids: DeletedUids) -> Lister:
        """Return the world of a cluster, a new one if there is none yet."""
        if not name:
            return self.primary
        if name not in self._others:
            self._others[name] = Lister(deleted_uids, self._others)
        return self._others[name]

    def keep(self, clusters: set[str]) -> None:
        """Drop the worlds of all other clusters."""
        for name in self._others.keys() - clusters:
            del self._others[name]
