"""
One reader of the changes in a bucket.

A reader holds a cursor into the bucket's history and nothing else, so it
cannot slow anybody down: the history moves on without it, and a cursor that is
no longer in it is an error. While it waits it has read everything, and its
cursor is set by whoever wakes it, to the change that did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from lamina.errors import Gone
from lamina.server.bucket import Bucket
from lamina.server.store import Event

BATCH = 1_000
"""How many events a reader gets at a time: what it holds is not bounded by the window any more."""


class Ends(Protocol):
    """What a reader asks the log: how far it is, and whether it goes on."""

    @property
    def version(self) -> int: ...

    @property
    def closed(self) -> bool: ...


class Reader:
    """A `Follower` of one bucket, or of one namespace in it."""

    __slots__ = ("_bucket", "_cursor", "_log", "_namespace", "_ready", "_version")

    def __init__(self, log: Ends, bucket: Bucket, namespace: str | None, version: int) -> None:
        self._log = log
        self._bucket = bucket
        self._namespace = namespace
        self._version = version  # handed out up to here, at least
        self._cursor = bucket.history.position(version)
        self._ready: asyncio.Future[None] | None = None

    @property
    def version(self) -> int:
        history = self._bucket.history
        unread = self._cursor - history.base
        if self._ready is not None or unread >= len(history.events):
            return max(self._version, self._log.version)
        return max(self._version, history.versions[unread] - 1) if unread >= 0 else self._version

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Sequence[Event]:
        batch = await self.next()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def next(self, timeout: float | None = None) -> Sequence[Event] | None:
        while True:
            batch = self._take()
            if batch:
                return batch
            if self._log.closed:
                return None
            if not await self._wait(timeout):
                return None if self._log.closed else ()

    def wake(self, position: int) -> None:
        """Go on reading at a position; whoever calls has taken the reader off the bucket's list."""
        ready, self._ready = self._ready, None
        self._cursor = position
        if ready is not None and not ready.done():
            ready.set_result(None)

    def _take(self) -> Sequence[Event]:
        history = self._bucket.history
        while True:
            start = self._cursor - history.base
            if start < 0:
                raise Gone(f"too old resource version: {self._version} ({history.floor})")
            events = history.events[start : start + BATCH]
            if not events:
                return events
            self._cursor += len(events)
            chosen: Sequence[Event] = events
            if self._namespace is not None:
                chosen = [event for event in chosen if event.row.key.namespace == self._namespace]
            if events[0].row.version <= self._version:  # a version was asked for that was yet to come
                chosen = [event for event in chosen if event.row.version > self._version]
            self._version = max(self._version, events[-1].row.version)
            if chosen:
                return chosen

    async def _wait(self, timeout: float | None) -> bool:
        """Return true once woken, false when the time is up."""
        if self._ready is not None:
            raise RuntimeError("a follower has one reader at a time")
        loop = asyncio.get_running_loop()
        self._ready = ready = loop.create_future()
        self._bucket.waiting.setdefault(self._namespace, set()).add(self)
        timer = None if timeout is None else loop.call_later(timeout, _resolve, ready)
        try:
            await ready
        finally:
            if timer is not None:
                timer.cancel()
            woken = self._ready is not ready
            if not woken:
                self._stop_waiting()
        return woken

    def _stop_waiting(self) -> None:
        self._ready = None
        waiting = self._bucket.waiting
        readers = waiting[self._namespace]
        readers.discard(self)
        if not readers:
            del waiting[self._namespace]
        # Nothing of ours came while we waited; what came for others may have
        # pushed the old position out of the history.
        self._cursor = self._bucket.history.end


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
