"""
The clusters on paper that one process looks at: the one at home, and others by the names it has for them.

What each of them looks like from here is a sight of its own, told when something
happens there, at once or later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from lamina.core.controller import Watch
from lamina.core.world import Change
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.paper.cluster import Listener, Paper
from lamina.paper.sight import Hear, Informer, News, Sight, Subject, subjects
from lamina.runtime.bindings import bound
from lamina.runtime.memory import Gone, Memory, Shelf
from lamina.runtime.subscriptions import is_about


class Place(NamedTuple):
    """One cluster as it is seen from here."""

    paper: Paper
    sight: Sight
    listener: Listener


class Horizon:
    """
    What one process sees, cluster by cluster.

    `knows` says which kinds are looked at, `seen` what there is of one when it is
    first looked at, and `gone` what is known of those whose end was seen: all
    three of the cluster at home. `changed` is called when a cluster serves other
    kinds than before.
    """

    def __init__(
        self,
        home: Paper,
        others: Mapping[str, Paper],
        *,
        knows: Callable[[Kind], bool],
        seen: Callable[[Kind], Iterable[Obj]],
        gone: Gone,
        changed: Callable[[], None],
    ) -> None:
        self._knows, self._changed = knows, changed
        self._kinds: dict[str, Kinds] = {}
        self._places: dict[str, Place] = {}
        self._add("", home, Sight(seen, gone))
        self.home = self._places[""]
        for cluster, paper in others.items():
            self.bind(cluster, paper)

    def bind(self, cluster: str, paper: Paper) -> None:
        """Look at another cluster, too."""
        self.unbind(cluster)
        self._add(cluster, paper, Sight(paper.listed, Gone(), cluster))

    def unbind(self, cluster: str) -> None:
        """Look at a cluster no more."""
        place = self._places.pop(cluster, None)
        self._kinds.pop(cluster, None)
        if place is not None:
            place.paper.listeners.remove(place.listener)

    def leave(self) -> None:
        """Hear of nothing any more."""
        for place in self._places.values():
            place.paper.listeners.remove(place.listener)

    def _add(self, cluster: str, paper: Paper, sight: Sight) -> None:
        place = self._places[cluster] = Place(paper, sight, partial(self._hear, cluster))
        paper.listeners.append(place.listener)

    def _hear(self, cluster: str, ref: Ref, before: Obj | None, after: Obj | None) -> None:
        paper, sight, _ = self._places[cluster]
        sight.hear(News(ref, after, paper.version))
        if paper.kinds is not self._kinds.get(cluster):
            self._changed()

    def has(self, cluster: str) -> bool:
        return cluster in self._places

    @property
    def papers(self) -> tuple[Paper, ...]:
        return tuple(place.paper for place in self._places.values())

    def on(self, cluster: str) -> Place:
        """Return the cluster of that name; raises UnknownCluster where there is none."""
        return bound(cluster, self.home, self._places)

    def refresh(self) -> list[str]:
        """Look with what is served now, tell nobody any more, and return where that is news."""
        changed = []
        for cluster, place in self._places.items():
            before, now = self._kinds.get(cluster), place.paper.kinds
            if before is not now and before != now:
                changed.append(cluster)
            self._kinds[cluster] = now
            place.sight.deafen()
        return changed

    def worlds(self) -> Worlds:
        return Worlds(self.home.sight.gone)

    def look(self, worlds: Worlds, watches: Iterable[tuple[Watch, Hear | None]]) -> None:
        """Have worlds show what these watches see, and tell whoever comes with a watch what changes there."""
        seen: dict[str, dict[GroupKind, Shelf]] = {cluster: {} for cluster in self._places}
        about = {""}
        for watch, hear in watches:
            about |= {cluster for cluster in self._places if is_about(watch, cluster)}
            for cluster, subject, informer in self.informers(watch):
                if hear is not None:
                    informer.listeners.append(hear)
                seen[cluster].setdefault(subject.kind.group_kind, informer.shelf)
        worlds.keep(about)
        for cluster in about:
            world = worlds.on(cluster, self._places[cluster].sight.gone)
            world.arrange(self._kinds[cluster], seen[cluster])

    def informers(self, watch: Watch) -> Iterator[tuple[str, Subject, Informer]]:
        """Yield who follows what a watch is about, and on which cluster."""
        for cluster, place in self._places.items():
            if is_about(watch, cluster):
                for subject in subjects(self._kinds[cluster], watch):
                    if cluster or self._knows(subject.kind):
                        yield cluster, subject, place.sight.follow(subject)

    def known(self, watch: Watch) -> Iterator[Change]:
        """Yield everything a watch sees, as if it had just come."""
        for cluster, subject, informer in self.informers(watch):
            for obj in tuple(informer.shelf.every()):
                yield Change(subject.kind, None, obj, cluster)


class Worlds:
    """What one controller sees, cluster by cluster."""

    def __init__(self, gone: Gone) -> None:
        self._others: dict[str, Memory] = {}
        self.home = Memory(gone, self._others)

    def on(self, cluster: str, gone: Gone) -> Memory:
        """Return the world of a cluster, a new one if there is none yet."""
        if not cluster:
            return self.home
        if cluster not in self._others:
            self._others[cluster] = Memory(gone, self._others)
        return self._others[cluster]

    def keep(self, clusters: set[str]) -> None:
        """See no cluster but these."""
        for cluster in self._others.keys() - clusters:
            del self._others[cluster]
