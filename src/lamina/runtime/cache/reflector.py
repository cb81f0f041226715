"""
Lists and watches the objects of one watch spec, and feeds informers.

Where the server offers a watch list, one request returns the existing objects
and the events that follow; otherwise a list precedes the watch. A watch that
ends is resumed at its last resource version. If that version is too old (410),
the reflector lists again, and the informers notice what was deleted meanwhile.
It also lists again when the watch ends after the schema of a custom resource has
changed: the last events are still of the old one, without fields that are new.

One reflector also feeds informers of narrower specs: metadata only, one name,
one namespace. If its request is forbidden, informers of fewer objects are split
off, since a narrower request may be allowed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Protocol

from lamina.client.client import Listing
from lamina.errors import (
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    LaminaError,
    MethodNotAllowed,
    NotFound,
    UnknownKind,
    Unreachable,
)
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj, WatchEvent
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.watch_spec import WatchSpec

_INITIAL_END = "k8s.io/initial-events-end"
_MIN_DELAY, _MAX_DELAY = 0.05, 30.0
_STABLE_AFTER = 5.0
_RANDOM = random.Random()
"""Not the shared instance: another thread may seed it."""
_MIN_SECONDS, _MAX_SECONDS, _SECONDS_STEP = 300, 600, 15
"""The timeoutSeconds of watches: spread, so that not all end together, and in steps, so that few distinct URLs are parsed."""


class Watcher(Protocol):
    """The part of a client that a reflector uses."""

    async def list(
        self, what: Kind, namespace: str = "", *, fields: str = "", metadata_only: bool = False
    ) -> Listing: ...

    async def follow(
        self,
        what: Kind,
        handle: Callable[[WatchEvent], None],
        namespace: str = "",
        *,
        version: str = "",
        initial: bool = False,
        fields: str = "",
        metadata_only: bool = False,
        seconds: int | None = None,
    ) -> None: ...


class Reflector:
    """
    Feeds the informer of one watch spec, and informers of narrower specs.

    It runs as long as one informer is left. `on_split` is called with informers
    that need a reflector of their own.
    """

    def __init__(
        self,
        watcher: Watcher,
        what: WatchSpec,
        log: Logger,
        on_split: Callable[[Sequence[Informer]], None],
        *,
        min_delay: float = _MIN_DELAY,
        max_delay: float = _MAX_DELAY,
    ) -> None:
        self.what = what
        self._min_delay, self._max_delay = min_delay, max_delay
        self._targets: list[tuple[Informer, _Filter | None]] = []
        self._watcher, self._log, self._on_split = watcher, log, on_split
        self._can_watch_list = True
        self._synced = False
        self._resume_from = ""
        self._has_new_schema = False

    def attach(self, informer: Informer) -> None:
        """Feed an informer; called before `run`."""
        self._targets.append(
            (informer, None if informer.what.can_feed(self.what) else _Filter(informer.what))
        )

    def detach(self, specs: Collection[WatchSpec]) -> None:
        """Stop feeding the informers of these specs."""
        self._targets = [
            (informer, selection) for informer, selection in self._targets if informer.what not in specs
        ]

    def list_after_watch(self) -> None:
        """
        List again when the current watch ends: the schema of the kind has changed.

        A server keeps that watch open for about a second, with objects as the old schema has them.
        """
        self._has_new_schema = True

    @property
    def has_informers(self) -> bool:
        """Say whether any informer is left."""
        return bool(self._targets)

    async def run(self) -> None:
        """List and watch as long as any informer is left."""
        delay = self._min_delay
        while self._targets:
            self._narrow()
            version_before, began = self._version, monotonic()
            try:
                if self._resume_from:
                    await self._watch(version=self._resume_from)
                elif self._can_watch_list:
                    await self._watch_list()
                else:
                    await self._list_and_watch()
            except Gone:
                self._resume_from = ""
                self._logger.debug("watch starts over", because="its resource version is too old")
            except (Forbidden, NotFound, MethodNotAllowed, UnknownKind) as error:
                if isinstance(error, Forbidden):
                    self._split_off_narrower()
                # Not readable, at least for now: nothing should wait for it.
                for informer, _ in self._targets:
                    informer.refuse(error)
                self._logger.debug("watch refused", because=str(error))
            except Unreachable as error:
                self._logger.debug("watch broke off", because=str(error))
            except LaminaError as error:
                self._logger.warning("watch failed", because=str(error))
            except Exception:
                self._logger.exception("watch failed because of a defect")
            if self._version > version_before or monotonic() - began > _STABLE_AFTER:
                delay = self._min_delay
            # Spread, so that reflectors that lost their server together do not all reconnect at once.
            await asyncio.sleep(delay * _RANDOM.uniform(0.5, 1.5))
            delay = min(delay * 2, self._max_delay)

    @property
    def _version(self) -> int:
        return max((informer.version for informer, _ in self._targets), default=0)

    @property
    def _logger(self) -> Logger:
        return self._log.bind(kind=self.what.kind.kind, api_version=self.what.kind.api_version)

    # ── which informers ──

    def _narrow(self) -> None:
        """Once the informer of this spec has gone, request only what the remaining ones need."""
        left = [informer for informer, _ in self._targets]
        if all(informer.what != self.what for informer in left):
            for one in left:
                if all(one.what.can_feed(other.what) for other in left):
                    self.what, self._targets = one.what, []
                    for informer in left:
                        self.attach(informer)
                    return

    def _split_off_narrower(self) -> None:
        """Split off the informers of fewer objects: a request for those may be allowed."""
        where = self.what.named, self.what.namespace
        fewer = [one for one, _ in self._targets if (one.what.named, one.what.namespace) != where]
        if fewer:
            self.detach({informer.what for informer in fewer})
            self._on_split(fewer)

    # ── requests ──

    async def _watch_list(self) -> None:
        """Request the existing objects and the events that follow in one watch."""
        self._begin_list()
        try:
            await self._watch(initial=True)
        except (Invalid, BadRequest):
            if self._synced:
                raise
            self._can_watch_list = False
            await self._list_and_watch()

    async def _list_and_watch(self) -> None:
        what = self.what
        listing = await self._watcher.list(
            what.kind, what.namespace, fields=what.fields, metadata_only=what.metadata_only
        )
        self._begin_list()
        for obj in listing.items:
            self._put(obj)
        self._end_list(listing.version)
        await self._watch(version=self._resume_from)

    async def _watch(self, *, version: str = "", initial: bool = False) -> None:
        what = self.what
        await self._watcher.follow(
            what.kind,
            self._handle,
            what.namespace,
            version=version,
            initial=initial,
            fields=what.fields,
            metadata_only=what.metadata_only,
            seconds=_RANDOM.randrange(_MIN_SECONDS, _MAX_SECONDS, _SECONDS_STEP),
        )
        if self._has_new_schema:
            self._has_new_schema, self._resume_from = False, ""

    # ── events ──

    def _handle(self, event: WatchEvent) -> None:
        """Handle one event; a server in this process calls it directly, without a task switch."""
        obj = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._put(obj)
            case "DELETED":
                for informer, selection in self._targets:
                    if selection is None or selection.matches(obj):
                        informer.delete(obj)
            case "BOOKMARK" if not self._synced:
                if _INITIAL_END in meta.annotations(obj):
                    self._end_list(meta.resource_version(obj))
                return
        if self._synced:
            self._resume_from = version = meta.resource_version(obj)
            for informer, _ in self._targets:
                informer.advance(version)

    def _put(self, obj: Obj) -> None:
        for informer, selection in self._targets:
            if selection is None:
                informer.put(obj)
            elif selection.matches(obj):
                informer.put(selection.trim(obj))

    def _begin_list(self) -> None:
        self._synced = False
        for informer, _ in self._targets:
            informer.begin_list()

    def _end_list(self, version: str) -> None:
        for informer, _ in self._targets:
            informer.end_list(version)
        # Only now: if an informer fails here, everything has to be listed again.
        self._synced = True
        self._resume_from = version


class _Filter:
    """The part of a watch that a narrower spec needs."""

    __slots__ = ("_metadata_only", "_name", "_namespace")

    def __init__(self, what: WatchSpec) -> None:
        self._name, self._namespace, self._metadata_only = what.named, what.namespace, what.metadata_only

    def matches(self, obj: Obj) -> bool:
        return (not self._name or meta.name(obj) == self._name) and (
            not self._namespace or meta.namespace(obj) == self._namespace
        )

    def trim(self, obj: Obj) -> Obj:
        if not self._metadata_only:
            return obj
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]}
