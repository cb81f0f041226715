"""Caches the objects that a reflector lists and watches, and calls a handler with each change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from lamina.core.model.world import Change
from lamina.errors import Forbidden, LaminaError
from lamina.logs import Logger
from lamina.logs import log as default_log
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.runtime.cache.indexer import Indexer
from lamina.runtime.cache.watch_spec import WatchSpec

_Listed: TypeAlias = dict[tuple[str, str], Obj | None]
"""The objects of a list, by namespace and name; None where the cached object is the same or was replaced."""


class Informer:
    """
    Caches the objects of one watch spec, and calls `handler` with each change.

    `synced` is set after the first list, or when the list is refused, or when the
    informer stops. `version` is the resource version up to which every event is in
    the indexer. If the `keep` function of the spec fails on an object, its cached
    version stays. `refused` is why nothing may be listed, until a list succeeds: the
    indexer is empty then because its objects are not known.
    """

    def __init__(
        self,
        what: WatchSpec,
        handler: Callable[[Change], None],
        cluster: str = "",
        log: Logger = default_log,
    ) -> None:
        self.what, self._cluster, self._log = what, cluster, log
        self.indexer = Indexer(what.kind)
        self.synced = asyncio.Event()
        self.stopped = False
        self._was_listed = False
        self.version = 0
        self._handle = handler
        self._listed: _Listed | None = None
        """What has been listed so far, while a list is in progress."""
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def refused(self) -> Forbidden | None:
        """Return why nothing may be listed, until a list succeeds."""
        return self.indexer.refused

    def seed(self, indexer: Indexer) -> None:
        """
        Start with the cache of an earlier informer of the same kind.

        Objects that were deleted since are noticed at the end of the first list.
        """
        for obj in indexer.every():
            self.indexer.put({**obj, "apiVersion": self.what.kind.api_version})

    def stop(self) -> None:
        """Mark the informer as stopped, and wake everything that waits for it."""
        self.stopped = True
        self.synced.set()
        for _, woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

    async def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait until a condition on the indexer is true, or the informer stops."""
        if self.stopped or is_true():
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((is_true, woken))
        try:
            await woken
        finally:
            self._waiting = [(test, future) for test, future in self._waiting if future is not woken]

    def store_live(self, namespace: str, name: str, obj: Obj | None, cached: Obj | None) -> None:
        """
        Store an object as a live read returned it, or its absence, unless the cache is newer.

        `cached` is what the cache held before the read: an absent object may have been created since, and
        one that was found may have been deleted since.
        """
        now = self.indexer.get(namespace, name)
        if obj is None:
            if now is cached:
                self._remove(namespace, name)
        elif now is not None or meta.version_number(obj) > self.version:
            self._put_newer(obj)

    # ── fed by the reflector ──

    def refuse(self, error: LaminaError) -> None:
        """
        Mark the informer as synced although its list was refused.

        One that has listed before keeps what it has. A kind that is not served has no objects.
        """
        self.indexer.refused = error if isinstance(error, Forbidden) and not self._was_listed else None
        self.synced.set()

    def begin_list(self) -> None:
        """Begin a list: every existing object follows."""
        self._listed = {}

    def put(self, obj: Obj) -> None:
        """Store an object that was listed, added or modified."""
        try:
            if self._listed is None:
                self._put_newer(obj)
            else:
                self._put_listed(obj, self._listed)
        except Exception:
            self._log_rejected(obj)

    def delete(self, obj: Obj) -> None:
        """Remove an object that was deleted, but not a newer one of its name."""
        full_name = _key(obj)
        if self._listed is not None:
            self._listed.pop(full_name, None)
        cached = self.indexer.get(*full_name)
        if cached is not None and (
            meta.uid(cached) == meta.uid(obj) or meta.version_number(cached) <= meta.version_number(obj)
        ):
            self._remove(*full_name)

    def end_list(self, version: str) -> None:
        """
        End a list: remove what was not listed, and mark the informer as synced.

        An object from a live read may be newer than the list, and stays. If the list itself is older than the
        cache, the server was reset (restored from a backup, say), and the list replaces the whole cache.
        """
        listed_places, self._listed = self._listed or {}, None
        list_version = int(version) if version.isdigit() else 0
        was_reset = list_version < self.version
        if was_reset:
            self.version = 0
        for full_name in [
            one
            for one in self.indexer.full_names()
            if one not in listed_places or listed_places[one] is not None
        ]:
            cached, listed = self.indexer.get(*full_name), listed_places.get(full_name)
            if cached is not None and meta.version_number(cached) > list_version and not was_reset:
                continue
            if listed is None:
                self._remove(*full_name)
            else:
                try:
                    self._store(listed)
                except Exception:
                    self._log_rejected(listed)
        self.advance(version)
        self.indexer.refused, self._was_listed = None, True
        self.synced.set()

    def advance(self, version: str) -> None:
        """Note that every event up to a version has been handled."""
        if version.isdigit() and int(version) > self.version:
            self.version = int(version)
            self._wake()

    # ── the cache ──

    def _put_listed(self, obj: Obj, listed_places: _Listed) -> None:
        """Store a listed object; one that contradicts a cached object that seems newer is decided at the end."""
        before = self.indexer.get(*_key(obj))
        differs = before is not None and _identity(before) != _identity(obj)
        # It exists, even if storing it fails.
        listed_places[_key(obj)] = None
        if before is not None and not differs and self.what.keep(obj) != before:
            # A server shows the same version in another way once the schema of its kind has changed.
            self._store(obj)
        self._put_newer(obj)
        listed_places[_key(obj)] = obj if differs and self.indexer.get(*_key(obj)) is before else None

    def _put_newer(self, obj: Obj) -> None:
        before = self.indexer.get(*_key(obj))
        if before is None or meta.version_number(before) < meta.version_number(obj):
            self._store(obj)

    def _store(self, obj: Obj) -> None:
        kept = self.what.keep(obj)
        before = self.indexer.put(kept)
        self._handle(Change(self.what.kind, before, kept, self._cluster))
        self._wake()

    def _log_rejected(self, obj: Obj) -> None:
        # The failure is limited to this object: the same reflector feeds others.
        self._log.exception("an object could not be cached", kind=self.what.kind.kind, object=meta.name(obj))

    def _remove(self, namespace: str, name: str) -> None:
        before = self.indexer.drop(namespace, name)
        if before is not None:
            self._handle(Change(self.what.kind, before, None, self._cluster))
            self._wake()

    def _wake(self) -> None:
        for is_true, woken in self._waiting:
            if not woken.done() and is_true():
                woken.set_result(None)


def _identity(obj: Obj) -> tuple[str, int]:
    return meta.uid(obj), meta.version_number(obj)


def _key(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]
