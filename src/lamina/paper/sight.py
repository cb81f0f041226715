"""
What a process sees of a cluster on paper: informers that are told, at once or later.

News of one kind come in the order they happened, as a watch brings them; of two
kinds either may be ahead. Who holds the news back, and lets go of them kind by
kind or only of the last word on each object, has a process see what a slow, cut
or restarted watch would have shown it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from lamina.core.controller import Watch
from lamina.core.world import Change, Keep
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.runtime.memory import Gone, Shelf

Hear: TypeAlias = Callable[[Change], None]


class Subject(NamedTuple):
    """What is followed: those who ask for the same share what is remembered."""

    kind: Kind
    keep: Keep
    named: str
    namespace: str = ""

    def covers(self, namespace: str, name: str) -> bool:
        return self.named in ("", name) and self.namespace in ("", namespace)


class News(NamedTuple):
    """What became of an object, or that it is gone, as of a version of the cluster."""

    ref: Ref
    obj: Obj | None
    version: int


class Informer:
    """Remembers one subject, and tells whoever listens what changes."""

    __slots__ = ("_bury", "_cluster", "_what", "listeners", "shelf")

    def __init__(self, what: Subject, bury: Callable[[Obj], None], cluster: str = "") -> None:
        self._what, self._bury, self._cluster = what, bury, cluster
        self.shelf = Shelf(what.kind)
        self.listeners: list[Hear] = []

    def learn(self, ref: Ref, obj: Obj | None, version: int) -> None:
        """Take note of what an object is, or that it is gone as of a version; 0 is now, whatever is known."""
        if not self._what.covers(ref.namespace, ref.name):
            return
        before = self.shelf.get(ref.namespace, ref.name)
        if obj is None:
            if before is not None and not 0 < version < _version(before):
                self.shelf.drop(ref.namespace, ref.name)
                self._bury(before)
                self._tell(before, None)
            return
        kept = self._what.keep(self._versioned(obj))
        if before is not None and _version(before) >= _version(kept):
            return
        self.shelf.put(kept)
        if before is not None and meta.uid(before) != meta.uid(kept):
            self._bury(before)
        self._tell(before, kept)

    def fill(self, objects: Iterable[Obj]) -> None:
        """Remember what there is, before anybody listens."""
        for obj in objects:
            if self._what.covers(meta.namespace(obj), meta.name(obj)):
                self.shelf.put(self._what.keep(self._versioned(obj)))

    def _versioned(self, obj: Obj) -> Obj:
        version = self._what.kind.api_version
        return obj if obj["apiVersion"] == version else {**obj, "apiVersion": version}

    def _tell(self, before: Obj | None, after: Obj | None) -> None:
        change = Change(self._what.kind, before, after, self._cluster)
        for hear in self.listeners:
            hear(change)


class Sight:
    """All informers of one process on one cluster."""

    def __init__(self, seen: Callable[[Kind], Iterable[Obj]], gone: Gone, cluster: str = "") -> None:
        self.seen, self.gone, self._cluster = seen, gone, cluster
        self._informers: dict[Subject, Informer] = {}
        self._by_kind: dict[GroupKind, list[Informer]] = {}
        self._held: dict[GroupKind, list[News]] = {}
        self.holds = False
        """Whether news are held back."""

    def follow(self, what: Subject) -> Informer:
        """Return who follows that, from now on if nobody did before."""
        informer = self._informers.get(what)
        if informer is None:
            informer = self._informers[what] = Informer(what, self._bury, self._cluster)
            informer.fill(self.seen(what.kind))
            self._by_kind.setdefault(what.kind.group_kind, []).append(informer)
        return informer

    def deafen(self) -> None:
        """Have nobody listen to anything, until somebody says so again."""
        for informer in self._informers.values():
            informer.listeners.clear()

    def hear(self, news: News) -> None:
        """Take in what happened, or keep it for later."""
        kind = GroupKind(news.ref.group, news.ref.kind)
        if self.holds:
            self._held.setdefault(kind, []).append(news)
        else:
            self._learn(kind, news)

    def look(self, ref: Ref, obj: Obj | None) -> None:
        """Take in an object as it really is, whatever is held back."""
        self._learn(GroupKind(ref.group, ref.kind), News(ref, obj, 0))

    @property
    def held(self) -> tuple[GroupKind, ...]:
        """Return the kinds of which news are held back."""
        return tuple(kind for kind, held in self._held.items() if held)

    def let_go(self, kind: GroupKind, *, until: int | None = None, last_words: bool = False) -> None:
        """Take in what was held back of a kind, up to a version; or the last word on each object alone."""
        held = self._held.pop(kind, [])
        due = [one for one in held if until is None or one.version <= until]
        if left := held[len(due) :]:
            self._held[kind] = left
        if last_words:
            due = list({one.ref: one for one in due}.values())
        for news in due:
            self._learn(kind, news)

    def _learn(self, kind: GroupKind, news: News) -> None:
        for informer in self._by_kind.get(kind, ()):
            informer.learn(news.ref, news.obj, news.version)

    def _bury(self, obj: Obj) -> None:
        self.gone.add(meta.uid(obj))


def subjects(kinds: Kinds, watch: Watch) -> Iterator[Subject]:
    """Yield what a watch follows, given what is served."""
    among = kinds.versions() if watch.api_version else iter(kinds)
    for kind in among:
        fits = not watch.api_version or kind.api_version == watch.api_version
        if fits and kind.can("list", "watch") and watch.selects(kind):
            yield Subject(kind, watch.keep, watch.named, watch.namespace if kind.namespaced else "")


def _version(obj: Obj) -> int:
    version = meta.resource_version(obj)
    return int(version) if version.isdigit() else 0
