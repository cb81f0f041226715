"""
What one controller sees: its worlds, and whether they are up to date with its own deeds.

A worker sees its own writes. Before it looks, it waits until its informers have
seen every version it wrote; after a while it stops waiting and reads for itself.
Versions are compared with what was seen of the cluster they were written on, and
never with those of another.

Of several clusters, those that the controller names are waited for: without the
hub, an agent knows nothing. One that it sees only because it looks everywhere is
in its world once it has been seen, and until then holds up nobody who does not
ask about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from lamina.core.controller import EVERYWHERE, Watch
from lamina.errors import NotFound, NotSeenYet, UnknownCluster, UnknownKind
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Made, Ref
from lamina.runtime.bindings import bound
from lamina.runtime.executor import Written
from lamina.runtime.informer import Informer
from lamina.runtime.informers import covering
from lamina.runtime.lookout import Lookout
from lamina.runtime.memory import Gone, Memory
from lamina.runtime.subscriptions import named

_PATIENCE = 2.0


class Looker(Protocol):
    """What looking for real takes."""

    async def get(self, ref: Ref, *, metadata_only: bool = False) -> Made: ...


class _Part:
    """What is seen of one cluster, and what has to happen before all of it is."""

    __slots__ = ("awaited", "informers", "world")

    def __init__(self, world: Memory, awaited: Sequence[asyncio.Event] = ()) -> None:
        self.world = world
        self.informers: Mapping[GroupKind, Informer] = {}
        self.awaited = awaited

    @property
    def is_seen(self) -> bool:
        if self.awaited:
            self.awaited = [one for one in self.awaited if not one.is_set()]
        return not self.awaited

    async def next_seen(self) -> None:
        """Wait until some more of it has been seen."""
        await self.awaited[-1].wait()


class Sight:
    """
    The worlds of one controller, and how to bring them up to date.

    `others` is how to look for real on clusters other than the one at home.
    """

    def __init__(
        self,
        looker: Looker,
        gone: Gone,
        watches: Collection[Watch] = (),
        *,
        others: Mapping[str, Looker] | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self._worlds: dict[str, Memory] = {}
        self.world = Memory(gone, self._worlds)
        self._looker, self._patience = looker, patience
        self._others: Mapping[str, Looker] = others if others is not None else {}
        self._parts = {"": _Part(self.world)}
        self.is_wide = any(watch.cluster == EVERYWHERE for watch in watches)
        """Whether whatever clusters there are belong to it."""
        self._names = named(watches)
        self._lookouts: dict[str, Lookout] = {}
        self._unbound = self._names
        self._awaited = [self._parts[""]]

    # ── of which clusters, through whom ──

    def is_about(self, cluster: str) -> bool:
        return not cluster or self.is_wide or cluster in self._names

    def bind(self, lookouts: Mapping[str, Lookout]) -> None:
        """See exactly these clusters from now on, as far as they are its business."""
        if not self._names and not self.is_wide:
            return
        for cluster, known in list(self._lookouts.items()):
            if lookouts.get(cluster) is not known:
                del self._parts[cluster], self._lookouts[cluster]
                self._worlds.pop(cluster, None)
        for cluster, lookout in lookouts.items():
            if cluster and cluster not in self._parts and self.is_about(cluster):
                part = _Part(Memory(lookout.informers.gone, self._worlds), (lookout.known,))
                self._parts[cluster], self._lookouts[cluster] = part, lookout
                if cluster in self._names:
                    self._worlds[cluster] = part.world
        self._unbound = self._names - self._parts.keys()
        self._awaited = [
            part for cluster, part in self._parts.items() if not cluster or cluster in self._names
        ]

    def arrange(self, kinds: Kinds, informers: Mapping[GroupKind, Informer], cluster: str = "") -> None:
        """See a cluster through these informers from now on."""
        part = self._parts[cluster]
        part.informers = informers
        part.awaited = [one.settled for one in informers.values()]
        self.know(kinds, cluster)
        if cluster and part.is_seen:
            self._worlds[cluster] = part.world

    def know(self, kinds: Kinds, cluster: str = "") -> None:
        """Know of these kinds from now on, and see what was seen before."""
        part = self._parts[cluster]
        part.world.arrange(kinds, {kind: informer.shelf for kind, informer in part.informers.items()})

    @property
    def bindings(self) -> Mapping[str, object]:
        """Return who reaches which other cluster now: what has this name later may be another one."""
        return dict(self._others)

    def are_still(self, clusters: Iterable[str], then: Mapping[str, object]) -> bool:
        """Say whether these clusters are those that had their names then."""
        return all(self._others.get(cluster) is then.get(cluster) for cluster in clusters)

    # ── whether it is up to date ──

    @property
    def is_settled(self) -> bool:
        """Say whether every kind that is watched has been seen once."""
        looks = any(part.informers for part in self._awaited)
        return looks and not self._unbound and all(part.is_seen for part in self._awaited)

    def is_lost(self, cluster: str) -> bool:
        """Say whether this is a cluster that was seen because it was there, and is there no more."""
        return self.is_wide and cluster not in self._parts and cluster not in self._names

    async def settled(self, cluster: str = "") -> None:
        """Wait until everything has been seen once that a look at something on this cluster takes."""
        while (unseen := self._first_unseen()) is not None:
            # What is to be waited for may be something else afterwards.
            await unseen.next_seen()
        if cluster:
            asked = self._parts.get(cluster)
            if asked is None:
                raise UnknownCluster(cluster, self._worlds)
            if not asked.is_seen:
                # Whoever stays silent is not waited for: others want to be looked at.
                raise NotSeenYet(f"cluster {cluster} has not been seen in full yet")

    def _first_unseen(self) -> _Part | None:
        """Return what has still to be seen before anything can be decided; raises where that is not to be had."""
        if self._unbound:
            raise UnknownCluster(min(self._unbound), self._worlds)
        for part in self._awaited:
            if not part.is_seen:
                return part
        return None

    async def caught_up(self, written: Sequence[Written]) -> None:
        """Wait until what was written can be seen, and look for it on the server if that takes too long."""
        try:
            async with asyncio.timeout(self._patience):
                for write in written:
                    await self._seen(write)
        except TimeoutError:
            await self.look(write.ref for write in written if self._is_missed(write))

    async def _seen(self, write: Written) -> None:
        """Wait until what was written can be seen; if whoever follows it leaves, through whoever does then."""
        while (informer := self._covering(write.ref)) is not None and not informer.has_ended:
            await informer.wait_until(partial(_is_seen, informer, write))
            if not informer.has_ended:
                return

    def has_seen(self, written: Sequence[Written]) -> bool:
        """Say whether everything that was written can be seen already."""
        return not any(map(self._is_missed, written))

    def _is_missed(self, write: Written) -> bool:
        informer = self._covering(write.ref)
        return informer is not None and not _is_seen(informer, write)

    def _covering(self, ref: Ref) -> Informer | None:
        part = self._parts.get(ref.cluster)
        return covering(part.informers, ref) if part is not None else None

    async def look(self, refs: Iterable[Ref]) -> None:
        """Read these objects from the server, and remember what was found."""
        for ref in refs:
            informer = self._covering(ref)
            if informer is None or not ref.name:
                continue
            looker = bound(ref.cluster, self._looker, self._others)
            known = informer.shelf.get(ref.namespace, ref.name)
            try:
                found = await looker.get(ref, metadata_only=informer.what.metadata_only)
            except NotFound:
                informer.learn(ref.namespace, ref.name, None, known)
            except UnknownKind:
                continue
            else:
                informer.learn(ref.namespace, ref.name, found, known)


def _is_seen(informer: Informer, write: Written) -> bool:
    if write.version is not None:
        return informer.seen >= write.version
    there = informer.shelf.get(write.ref.namespace, write.ref.name)
    return there is None or meta.uid(there) != write.uid or meta.is_deleting(there)
