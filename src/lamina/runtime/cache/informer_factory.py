"""
Starts and stops the informers of one cluster: one for each watch spec, shared by all handlers of that spec.

Informers of the same objects that start together share a reflector. The caller
computes which specs are wanted whenever kinds change; this compares them with
the informers that run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from lamina.core.model.world import Change
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.reflector import Reflector, Watcher
from lamina.runtime.cache.watch_spec import ChangeHandler, WatchSpec

NO_KINDS = Kinds()


class InformerFactory:
    """All informers of one cluster, and their reflectors, which run in the given task group."""

    def __init__(self, watcher: Watcher, group: asyncio.TaskGroup, log: Logger, cluster: str = "") -> None:
        self.deleted_uids = DeletedUids()
        self._watcher, self._group, self._log, self._cluster = watcher, group, log, cluster
        self._running: dict[WatchSpec, Informer] = {}
        self._reflectors: dict[Reflector, asyncio.Task[None]] = {}
        self._handlers: dict[WatchSpec, Sequence[ChangeHandler]] = {}
        self._retained: dict[object, Indexer] = {}

    def set_watches(
        self, wanted: Mapping[WatchSpec, Sequence[ChangeHandler]], served: Kinds = NO_KINDS
    ) -> dict[WatchSpec, Informer]:
        """
        Run exactly the wanted informers with exactly these handlers, and return them by spec.

        An informer that is no longer wanted stops without delete events: that a
        kind is not served does not prove that its objects are deleted. Its cache
        is retained and seeds the next informer if the kind is served again, perhaps
        in another version; objects deleted in between are noticed then. Kinds that
        are served but not wanted are not retained.
        """
        if removed := {what: None for what in self._running if what not in wanted}:
            subjects = {what.subject for what in wanted}
            self._detach(removed)
            for what in removed:
                informer = self._running.pop(what)
                informer.stop()
                if informer.indexer.count and (what.subject in subjects or not what.named):
                    self._retained[what.subject] = informer.indexer
        self._handlers = dict(wanted)
        new = [what for what in wanted if what not in self._running]
        for what in new:
            informer = self._running[what] = Informer(what, self._handler(what), self._cluster, self._log)
            if self._retained and (retained := self._retained.pop(what.subject, None)):
                informer.seed(retained)
        self._start([self._running[what] for what in new])
        self._retained = {
            subject: indexer
            for subject, indexer in self._retained.items()
            if served.preferred(indexer.kind.group_kind) is None
        }
        return dict(self._running)

    def clear(self) -> None:
        """Drop all references, once every reflector has ended."""
        self._running, self._reflectors, self._handlers, self._retained = {}, {}, {}, {}

    def _start(self, informers: Sequence[Informer]) -> None:
        """Feed these informers, with as few reflectors as possible."""
        by_spec = {informer.what: informer for informer in informers}
        for what, fed in _shared_reflectors(by_spec).items():
            reflector = Reflector(self._watcher, what, self._log, on_split=self._start)
            for other in fed:
                reflector.attach(by_spec[other])
            self._reflectors[reflector] = self._group.create_task(reflector.run())

    def _detach(self, removed: Collection[WatchSpec]) -> None:
        """Stop feeding informers; a reflector ends with its last informer."""
        for reflector, task in list(self._reflectors.items()):
            reflector.detach(removed)
            if not reflector.has_informers:
                del self._reflectors[reflector]
                task.cancel()

    def has_informer(self, what: WatchSpec) -> bool:
        return what in self._running

    def informer(self, what: WatchSpec) -> Informer:
        """Return the informer of a spec that is wanted."""
        return self._running[what]

    def list_again(self, kind: GroupKind) -> None:
        """List the objects of a kind again once its watches end: its schema has changed."""
        for reflector in self._reflectors:
            if reflector.what.kind.group_kind == kind and not reflector.what.metadata_only:
                reflector.list_after_watch()

    async def wait_synced(self) -> None:
        """Wait until every informer has synced."""
        while waiting := [other for other in self._running.values() if not other.synced.is_set()]:
            await waiting[0].synced.wait()

    def _handler(self, what: WatchSpec) -> ChangeHandler:
        def handle(change: Change) -> None:
            self._record_deleted(change)
            for handler in self._handlers.get(what, ()):
                try:
                    handler(change)
                except Exception:
                    # A defect of one handler must not keep the change from the others.
                    self._log.exception("an event handler failed", object=str(change.ref))

        return handle

    def _record_deleted(self, change: Change) -> None:
        before, after = change.before, change.after
        if before is None:
            return
        uid = meta.uid(before)
        if after is not None and meta.uid(after) == uid:
            return
        # Recorded only for objects that still have dependents: no other uid is ever looked up.
        if any(informer.indexer.owned_by(uid) for informer in self._running.values()):
            self.deleted_uids.add(uid)


def _shared_reflectors(by_spec: Iterable[WatchSpec]) -> Mapping[WatchSpec, Sequence[WatchSpec]]:
    """Return the specs that need a reflector, and the specs each of these feeds, itself first."""
    fed: dict[WatchSpec, list[WatchSpec]] = {}
    of: dict[Kind, list[WatchSpec]] = {}
    # The widest specs come first.
    for what in sorted(by_spec, key=lambda other: (other.metadata_only, other.named, other.namespace)):
        earlier = of.setdefault(what.kind, [])
        feeder = next((other for other in earlier if other.can_feed(what)), None)
        if feeder is None:
            earlier.append(what)
            fed[what] = [what]
        else:
            fed[feeder].append(what)
    return fed


def covering(informers: Mapping[GroupKind, Informer], ref: Ref) -> Informer | None:
    """Return the informer whose spec covers an object, if there is one."""
    informer = informers.get(GroupKind(ref.group, ref.kind))
    if informer is None:
        return None
    what = informer.what
    if (what.named and what.named != ref.name) or (what.namespace and what.namespace != ref.namespace):
        return None
    return informer
