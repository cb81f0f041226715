"""
Every cluster that is looked at: the one at home, and others by name.

At home is where everything begins: a server that does not answer there ends it.
Others come and go, and may keep silent; whoever looks at them sees to it that
this holds up nobody who does not need them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from lamina.client.client import Client
from lamina.core.controller import EVERYWHERE, Watch
from lamina.core.questions import Follow
from lamina.core.world import Change
from lamina.errors import NotSeenYet, UnknownCluster
from lamina.logs import Logger
from lamina.objects.types import GroupKind
from lamina.runtime.catalogue import Catalogue
from lamina.runtime.lookout import Lookout
from lamina.runtime.sight import Sight
from lamina.runtime.subscriptions import Hear, Subscription, subscribe, ways

_BY_NAME = 8


class Onlooker(Protocol):
    """Somebody who looks at clusters, and wants to be told what changes there."""

    @property
    def sight(self) -> Sight: ...

    def on(self, cluster: str) -> Sequence[tuple[Watch, Hear]]:
        """Return what is watched on a cluster, and whom to tell of it."""
        ...

    @property
    def follows(self) -> Iterable[tuple[str, Subscription]]:
        """Return what is followed besides, and on which cluster."""
        ...

    def overhear(self, change: Change) -> None: ...


class _Opened(NamedTuple):
    """Where everything runs that looking takes, and who is told when something is to be seen."""

    group: asyncio.TaskGroup
    changed: Callable[[Lookout], None]
    seen: Callable[[Lookout], None]


class Horizon:
    """
    All clusters, each seen through a lookout of its own.

    `others` is who reaches those that are not at home; everybody who reads or
    writes there holds this very table.
    """

    def __init__(
        self, client: Client, others: Mapping[str, Client] | None, log: Logger, discovers: float
    ) -> None:
        self.others: dict[str, Client] = {}
        self._ends: dict[str, Callable[[], None]] = {}
        self._client, self._log, self._discovers = client, log, discovers
        self._catalogue = self._kinds_of(client)
        self._lookouts: dict[str, Lookout] = {}
        self._closed = False
        self._opened: _Opened | None = None
        for cluster, other in (others or {}).items():
            self._reach(cluster, other)

    def __iter__(self) -> Iterator[Lookout]:
        """Yield every lookout, the one at home first."""
        return iter(self._lookouts.values())

    @property
    def is_open(self) -> bool:
        """Say whether anybody looks: not yet, or not any more."""
        return bool(self._lookouts) and not self._closed

    async def discover(self) -> None:
        """Find out what is served at home; raises what keeps the server from answering."""
        await self._catalogue.refresh()

    def open(
        self, group: asyncio.TaskGroup, changed: Callable[[Lookout], None], seen: Callable[[Lookout], None]
    ) -> None:
        """
        Begin to look, with everything it takes running in this group.

        From now on, `changed` is called when a cluster serves other kinds than
        before, and `seen` when another cluster has been seen for the first time.
        """
        self._opened = _Opened(group, changed, seen)
        home = self._lookouts[""] = Lookout("", self._client, self._catalogue, group, self._log)
        home.keep_up(partial(changed, home))
        for cluster, client in self.others.items():
            self._add(cluster, client)

    def close(self) -> None:
        """Look at nothing new: everything that runs is about to end."""
        self._closed = True

    def end(self) -> None:
        """Know nobody any more, once all that ran has ended."""
        self.close()
        for lookout in self._lookouts.values():
            lookout.forget()
        self._opened = None
        self._lookouts = {}

    def bind(self, cluster: str, client: Client) -> None:
        """Look at another cluster, too."""
        if cluster in ("", EVERYWHERE):
            raise ValueError(f"{cluster!r} is no name for another cluster")
        self._reach(cluster, client)
        if self.is_open:
            self._add(cluster, self.others[cluster])

    def _reach(self, cluster: str, client: Client) -> None:
        self.others[cluster], self._ends[cluster] = client.ending()

    def unbind(self, cluster: str) -> None:
        """Look at a cluster no more, and wait for nothing that it was asked."""
        if self.others.pop(cluster, None) is not None:
            self._ends.pop(cluster)()
        if cluster in self._lookouts and cluster:
            self._lookouts.pop(cluster).end()

    def _add(self, cluster: str, client: Client) -> None:
        assert self._opened is not None, "nobody looks"
        group, changed, seen = self._opened
        lookout = Lookout(cluster, client, self._kinds_of(client), group, self._log.bind(cluster=cluster))
        self._lookouts[cluster] = lookout
        lookout.attend(partial(changed, lookout), partial(seen, lookout))

    def _kinds_of(self, client: Client) -> Catalogue:
        return Catalogue(client, self._log, period=self._discovers)

    def sight(self, watches: Collection[Watch]) -> Sight:
        """Return what sees what is watched there, once it has been arranged."""
        return Sight(self._client, self._lookouts[""].informers.gone, watches, others=self.others)

    async def settled_at_home(self) -> None:
        """Wait until all that is watched at home has been seen once."""
        await self._lookouts[""].informers.settled()

    async def settled(self) -> None:
        """Wait until all that is watched has been seen once, on every cluster there is now."""
        _, *others = self._lookouts.values()
        await self.settled_at_home()
        for lookout in others:
            await lookout.seen.wait()
            await lookout.informers.settled()

    def arrange(self, onlookers: Sequence[Onlooker], only: Lookout | None = None) -> None:
        """Have everything followed that somebody looks at, and nothing else; on one cluster, or on all."""
        for onlooker in onlookers:
            onlooker.sight.bind(self._lookouts)
        for lookout in (only,) if only is not None else tuple(self._lookouts.values()):
            if lookout.is_known:
                self._look_through(lookout, onlookers)

    def _look_through(self, lookout: Lookout, onlookers: Sequence[Onlooker]) -> None:
        kinds, cluster = lookout.kinds, lookout.cluster
        wanted: dict[Subscription, list[Hear]] = {}
        looks: list[tuple[Sight, Mapping[GroupKind, Subscription]]] = []
        for onlooker in onlookers:
            if onlooker.sight.is_about(cluster):
                looks.append((onlooker.sight, subscribe(kinds, onlooker.on(cluster), wanted)))
            for where, what in onlooker.follows:
                if where == cluster:
                    wanted.setdefault(what, []).append(onlooker.overhear)
        following = lookout.arrange(wanted)
        for sight, sees in looks:
            sight.arrange(kinds, {kind: following[what] for kind, what in sees.items()}, cluster)

    def way(
        self, follow: Follow, already: Iterable[tuple[str, Subscription]]
    ) -> tuple[Lookout, Subscription]:
        """Return where and how to follow what a key asks for, given what is followed on its behalf already."""
        lookout = self._lookouts.get(follow.cluster)
        if lookout is None:
            raise UnknownCluster(follow.cluster, self.others)
        if not lookout.is_known:
            raise NotSeenYet(f"cluster {follow.cluster} has not answered yet")
        is_following = lookout.informers.is_following
        whole, *narrow = ways(follow)
        # A few by name are cheaper than all; many are not.
        one_by_one = sum(where == follow.cluster and what.kind == follow.kind for where, what in already)
        several = one_by_one >= _BY_NAME and not any(map(is_following, narrow))
        return lookout, whole if not narrow or several or is_following(whole) else narrow[0]
