"""
The informers of a simulated process: they receive events at once or, while paused, later.

Events of one kind are delivered in order, as by a watch; between kinds there is no
order. A test that pauses informers, and delivers kind by kind or only the latest
event of each object, shows a process what a slow, broken or restarted watch would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lamina.core.model.world import Change
from lamina.errors import Forbidden
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.watch_spec import ChangeHandler, WatchSpec


class Event(NamedTuple):
    """An object as of a version of the cluster, or None where it was deleted."""

    ref: Ref
    obj: Obj | None
    version: int


class Informer:
    """
    Caches the objects of one watch spec, and calls its handlers with each change.

    `refused` is why its objects may not be listed; until they may be, it has none.
    """

    __slots__ = ("_cluster", "_record_deleted", "_spec", "handlers", "indexer", "refused")

    def __init__(self, spec: WatchSpec, record_deleted: Callable[[Obj], None], cluster: str = "") -> None:
        self._spec, self._record_deleted, self._cluster = spec, record_deleted, cluster
        self.indexer = Indexer(spec.kind)
        self.handlers: list[ChangeHandler] = []
        self.refused: Forbidden | None = None

    def put(self, ref: Ref, obj: Obj | None, version: int) -> None:
        """Store an object, or its deletion as of a version; version 0 is a live read, newer than any cache."""
        if self.refused is not None or not self._covers(ref.namespace, ref.name):
            return
        before = self.indexer.get(ref.namespace, ref.name)
        if obj is None:
            if before is not None and not 0 < version < meta.version_number(before):
                self.indexer.drop(ref.namespace, ref.name)
                self._record_deleted(before)
                self._handle(before, None)
            return
        kept = self._spec.keep(self._versioned(obj))
        if before is not None and meta.version_number(before) >= meta.version_number(kept):
            return
        self.indexer.put(kept)
        if before is not None and meta.uid(before) != meta.uid(kept):
            self._record_deleted(before)
        self._handle(before, kept)

    def seed(self, objects: Iterable[Obj]) -> None:
        """Store the existing objects, before there are handlers."""
        for obj in objects:
            if self._covers(meta.namespace(obj), meta.name(obj)):
                self.indexer.put(self._spec.keep(self._versioned(obj)))

    def _covers(self, namespace: str, name: str) -> bool:
        return self._spec.named in ("", name) and self._spec.namespace in ("", namespace)

    def _versioned(self, obj: Obj) -> Obj:
        version = self._spec.kind.api_version
        return obj if obj["apiVersion"] == version else {**obj, "apiVersion": version}

    def _handle(self, before: Obj | None, after: Obj | None) -> None:
        change = Change(self._spec.kind, before, after, self._cluster)
        for handler in self.handlers:
            handler(change)


class Informers:
    """All informers of one process on one cluster."""

    def __init__(
        self, list_objects: Callable[[Kind], Iterable[Obj]], deleted_uids: DeletedUids, cluster: str = ""
    ) -> None:
        self.list_objects, self.deleted_uids, self._cluster = list_objects, deleted_uids, cluster
        self._informers: dict[WatchSpec, Informer] = {}
        self._by_kind: dict[GroupKind, list[Informer]] = {}
        self._pending: dict[GroupKind, list[Event]] = {}
        self.paused = False
        """Whether events are kept until they are delivered."""

    def follow(self, spec: WatchSpec) -> Informer:
        """Return the informer of a spec, started if there is none yet."""
        informer = self._informers.get(spec)
        if informer is None:
            informer = self._informers[spec] = Informer(spec, self._record_deleted, self._cluster)
            self._by_kind.setdefault(spec.kind.group_kind, []).append(informer)
            self._list(spec, informer)
        elif informer.refused is not None:
            self._list(spec, informer)
        return informer

    def _list(self, spec: WatchSpec, informer: Informer) -> None:
        try:
            objects = self.list_objects(spec.kind)
        except Forbidden as error:
            informer.refused = error
            return
        informer.refused = None
        informer.seed(objects)

    def clear_handlers(self) -> None:
        """Remove the handlers of all informers."""
        for informer in self._informers.values():
            informer.handlers.clear()

    def receive(self, event: Event) -> None:
        """Handle an event, or keep it while paused."""
        kind = GroupKind(event.ref.group, event.ref.kind)
        if self.paused:
            self._pending.setdefault(kind, []).append(event)
        else:
            self._put(kind, event)

    def store_live(self, ref: Ref, obj: Obj | None) -> None:
        """Store an object as a live read returned it, whatever is pending."""
        self._put(GroupKind(ref.group, ref.kind), Event(ref, obj, 0))

    @property
    def pending_kinds(self) -> tuple[GroupKind, ...]:
        """Return the kinds with pending events."""
        return tuple(kind for kind, pending in self._pending.items() if pending)

    def deliver(self, kind: GroupKind, *, until: int | None = None, latest_only: bool = False) -> None:
        """Handle the pending events of a kind, up to a version; or only the latest of each object."""
        pending = self._pending.pop(kind, [])
        due = [event for event in pending if until is None or event.version <= until]
        if left := pending[len(due) :]:
            self._pending[kind] = left
        if latest_only:
            due = list({event.ref: event for event in due}.values())
        for event in due:
            self._put(kind, event)

    def _put(self, kind: GroupKind, event: Event) -> None:
        for informer in self._by_kind.get(kind, ()):
            informer.put(event.ref, event.obj, event.version)

    def _record_deleted(self, obj: Obj) -> None:
        self.deleted_uids.add(meta.uid(obj))
