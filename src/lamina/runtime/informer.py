"""
List, watch, remember.

An informer follows the objects of one kind. It asks for what exists and for
what happens from then on in one stream, where the server offers that, and
lists first and watches afterwards where it does not. A stream that ends is
taken up where it ended; one that has fallen too far behind starts over, and
what has gone in between is noticed then.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from time import monotonic
from typing import Protocol, TypeAlias

from lamina.client.client import Listing
from lamina.core.world import Change
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
from lamina.runtime.memory import Shelf
from lamina.runtime.subscriptions import Subscription

_INITIAL_END = "k8s.io/initial-events-end"
_SOONEST, _LATEST = 0.05, 30.0
_LASTING = 5.0
_DICE = random.Random()
"""Our own: whoever seeds or checks the one that everybody shares may do so in another thread."""
_SHORTEST, _LONGEST, _APART = 300, 600, 15
"""How many seconds a watch lasts: not all end together, and requests that are alike are read once."""

_Fresh: TypeAlias = dict[tuple[str, str], Obj | None]
"""What a server says that exists, by its place; itself, too, where it is not what is known."""


class Watcher(Protocol):
    """What following takes: the client's lists and watches."""

    async def list(
        self, what: Kind, namespace: str = "", *, fields: str = "", metadata_only: bool = False
    ) -> Listing: ...

    def watch(
        self,
        what: Kind,
        namespace: str = "",
        *,
        version: str = "",
        initial: bool = False,
        fields: str = "",
        metadata_only: bool = False,
        seconds: int | None = None,
        hear: Callable[[WatchEvent], bool] | None = None,
    ) -> AsyncGenerator[WatchEvent, None]: ...


class Informer:
    """
    Follows one subscription, and tells whoever listens what changes.

    `settled` is set once everything that existed has been seen, or once it is
    clear that it cannot be seen, or that nobody looks any more. `seen` is the version up to which everything
    that happened is on the shelf.
    """

    def __init__(
        self,
        watcher: Watcher,
        what: Subscription,
        tell: Callable[[Change], None],
        log: Logger,
        cluster: str = "",
    ) -> None:
        self.what, self._cluster = what, cluster
        self.shelf = Shelf(what.kind)
        self.settled = asyncio.Event()
        self.has_ended = False
        self.seen = 0
        self._watcher, self._tell = watcher, tell
        self._log = log.bind(kind=what.kind.kind, api_version=what.kind.api_version)
        self._streams = True
        self._caught_up = False
        self._resume_from = ""
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def inherit(self, shelf: Shelf) -> None:
        """
        Begin with what another informer of the same kind remembered.

        Whatever has gone since is then noticed when everything has been seen.
        """
        for obj in shelf.every():
            self.shelf.put({**obj, "apiVersion": self.what.kind.api_version})

    async def run(self) -> None:
        """Follow for ever."""
        delay = _SOONEST
        while True:
            heard_of, began = self.seen, monotonic()
            try:
                if self._resume_from:
                    await self._resume()
                elif self._streams:
                    await self._start_over()
                else:
                    await self._list_first()
            except Gone:
                self._resume_from = ""
                self._log.debug("watch starts over", because="the server no longer keeps where it ended")
            except (Forbidden, NotFound, MethodNotAllowed, UnknownKind) as refused:
                # Not to be seen, at least for now. Nobody should wait for it.
                self.settled.set()
                self._log.debug("watch refused", because=str(refused))
            except Unreachable as trouble:
                self._log.debug("watch broke off", because=str(trouble))
            except LaminaError as trouble:
                self._log.warning("watch failed", because=str(trouble))
            except Exception:
                self._log.exception("watch failed by a mistake of ours")
            if self.seen > heard_of or monotonic() - began > _LASTING:
                delay = _SOONEST
            # Spread, so that informers that lost their server together do not all come back together.
            await asyncio.sleep(delay * _DICE.uniform(0.5, 1.5))
            delay = min(delay * 2, _LATEST)

    def end(self) -> None:
        """Take note that nobody follows this any more: whoever waits for it should look for it elsewhere."""
        self.has_ended = True
        self.settled.set()

    async def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what is on the shelf to make something true."""
        if is_so():
            return
        happened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((is_so, happened))
        try:
            await happened
        finally:
            self._waiting = [(test, future) for test, future in self._waiting if future is not happened]

    def learn(self, namespace: str, name: str, obj: Obj | None, known: Obj | None) -> None:
        """
        Take note of an object as somebody saw it on the server, unless something newer is known.

        `known` is what was known of it when they went to look: that it is not there says nothing about one
        that came meanwhile, and one that was there may have gone since.
        """
        now = self.shelf.get(namespace, name)
        if obj is None:
            if now is known:
                self._drop(namespace, name)
        elif now is not None or _version(obj) > self.seen:
            self._put(obj)

    # ── three ways of following ──

    async def _start_over(self) -> None:
        """Ask for everything that exists, and for what follows, in one stream."""
        self._caught_up = False
        fresh: _Fresh | None = {}
        try:
            async with aclosing(self._watch(initial=True)) as events:
                async for event in events:
                    if fresh is None:
                        self._take(event)
                    elif event["type"] == "BOOKMARK":
                        if _INITIAL_END in meta.annotations(event["object"]):
                            self._complete(fresh, meta.resource_version(event["object"]))
                            fresh = None
                    elif event["type"] == "DELETED":
                        fresh.pop(_key(event["object"]), None)
                        self._end(event["object"])
                    else:
                        self._list(event["object"], fresh)
        except (Invalid, BadRequest):
            if fresh is None:
                raise
            self._streams = False
            await self._list_first()

    async def _list_first(self) -> None:
        what = self.what
        listing = await self._watcher.list(
            what.kind, what.namespace, fields=what.fields, metadata_only=what.metadata_only
        )
        fresh: _Fresh = {}
        for obj in listing.items:
            self._list(obj, fresh)
        self._complete(fresh, listing.version)
        await self._resume()

    async def _resume(self) -> None:
        async with aclosing(self._watch(version=self._resume_from)) as events:
            async for event in events:
                self._take(event)

    def _watch(self, *, version: str = "", initial: bool = False) -> AsyncGenerator[WatchEvent, None]:
        return self._watcher.watch(
            self.what.kind,
            self.what.namespace,
            version=version,
            initial=initial,
            fields=self.what.fields,
            metadata_only=self.what.metadata_only,
            seconds=_DICE.randrange(_SHORTEST, _LONGEST, _APART),
            hear=self._hear,
        )

    # ── remembering ──

    def _hear(self, event: WatchEvent) -> bool:
        """Take in what a server in this process says without our having to wake up for it."""
        if not self._caught_up:
            return False
        self._take(event)
        return True

    def _take(self, event: WatchEvent) -> None:
        obj = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._put(obj)
            case "DELETED":
                self._end(obj)
        self._reached(meta.resource_version(obj))

    def _list(self, obj: Obj, fresh: _Fresh) -> None:
        """Take in one of those that exist; what contradicts something that seems newer is kept for the end."""
        before = self.shelf.get(*_key(obj))
        differs = before is not None and _identity(before) != _identity(obj)
        self._put(obj)
        fresh[_key(obj)] = obj if differs and self.shelf.get(*_key(obj)) is before else None

    def _complete(self, fresh: _Fresh, version: str) -> None:
        """
        Forget what is there no more, and know that everything that is has been seen.

        What somebody read for himself meanwhile may be newer than that. If all of it is older than what
        was seen before, though, the server has another past than it had, and what was known is worth nothing.
        """
        then = int(version) if version.isdigit() else 0
        is_another = then < self.seen
        if is_another:
            self.seen = 0
        for place in [one for one in self.shelf.places() if one not in fresh or fresh[one] is not None]:
            known, listed = self.shelf.get(*place), fresh.get(place)
            if known is not None and _version(known) > then and not is_another:
                continue
            if listed is None:
                self._drop(*place)
            else:
                self._remember(listed)
        self._reached(version)
        self._caught_up = True
        self.settled.set()

    def _put(self, obj: Obj) -> None:
        before = self.shelf.get(*_key(obj))
        if before is None or _version(before) < _version(obj):
            self._remember(obj)

    def _remember(self, obj: Obj) -> None:
        kept = self.what.keep(obj)
        before = self.shelf.put(kept)
        self._tell(Change(self.what.kind, before, kept, self._cluster))
        self._look_up()

    def _end(self, obj: Obj) -> None:
        """Take note that an object has gone; one that came after it and has its name has not."""
        known = self.shelf.get(*_key(obj))
        if known is not None and (meta.uid(known) == meta.uid(obj) or _version(known) <= _version(obj)):
            self._drop(*_key(obj))

    def _drop(self, namespace: str, name: str) -> None:
        before = self.shelf.drop(namespace, name)
        if before is not None:
            self._tell(Change(self.what.kind, before, None, self._cluster))
            self._look_up()

    def _reached(self, version: str) -> None:
        self._resume_from = version
        if version.isdigit() and int(version) > self.seen:
            self.seen = int(version)
            self._look_up()

    def _look_up(self) -> None:
        for is_so, happened in self._waiting:
            if not happened.done() and is_so():
                happened.set_result(None)


def _identity(obj: Obj) -> tuple[str, int]:
    return meta.uid(obj), _version(obj)


def _key(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _version(obj: Obj) -> int:
    version = meta.resource_version(obj)
    return int(version) if version.isdigit() else 0
