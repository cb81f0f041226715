"""
One reader of the changes in a bucket.

A reader holds a cursor into the bucket's history and nothing else, so it
cannot slow anybody down: the history moves on without it, and a cursor that is
no longer in it is an error. While it waits it has read everything, and its
cursor is set by whoever rouses it, to the change that did.

A reader that waits may have left an offer: what comes is then offered in its
turn, without waking anybody. Only where the offer is not taken does the reader
wake up, and finds everything where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from lamina.errors import Gone
from lamina.server.bucket import Bucket
from lamina.server.store import Event, Offer

BATCH = 1_000
"""How many events a reader gets at a time: what it holds is not bounded by the window any more."""


class Ends(Protocol):
    """What a reader asks of the log: how far it is, whether it goes on, and to be called on in its turn."""

    @property
    def version(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def call_on(self, reader: Reader) -> None: ...


class Reader:
    """A `Follower` of one bucket, or of one namespace in it."""

    __slots__ = (
        "_bucket",
        "_cursor",
        "_ended",
        "_log",
        "_namespace",
        "_offer",
        "_ready",
        "_roused",
        "_version",
    )

    def __init__(self, log: Ends, bucket: Bucket, namespace: str | None, version: int) -> None:
        self._log = log
        self._bucket = bucket
        self._namespace = namespace
        self._version = version  # handed out up to here, at least
        self._cursor = bucket.history.position(version)
        self._ready: asyncio.Future[None] | None = None
        self._offer: Offer | None = None
        self._roused = False  # whether it waits still, and something has come
        self._ended = False

    @property
    def version(self) -> int:
        history = self._bucket.history
        unread = self._cursor - history.base
        if (self._ready is not None and not self._roused) or unread >= len(history.events):
            return max(self._version, self._log.version)
        return max(self._version, history.versions[unread] - 1) if unread >= 0 else self._version

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Sequence[Event]:
        batch = await self.next()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def next(self, timeout: float | None = None, offer: Offer | None = None) -> Sequence[Event] | None:
        while not self._ended:
            batch = self._take()
            if batch:
                return batch
            if self._log.closed:
                return None
            if not await self._wait(timeout, offer):
                return None if self._log.closed or self._ended else ()
        return None

    def rouse(self, position: int) -> None:
        """Go on reading at a position; whoever calls has taken the reader off the bucket's list."""
        self._cursor = position
        self._roused = True
        if self._offer is None:
            self.wake()
        else:
            self._log.call_on(self)

    def offer(self) -> None:
        """Offer what has come, if the reader waits still, and wake it where that is not taken or not all."""
        if self._ready is None or not self._roused:
            return
        assert self._offer is not None
        cursor, version = self._cursor, self._version
        try:
            batch = self._take()
            taken = not batch or self._offer(batch)
        except Exception:
            # Whatever is wrong is found again, and raised, where somebody reads.
            taken = False
        if not taken:
            self._cursor, self._version = cursor, version
            self.wake()
        elif self._cursor < self._bucket.history.end:
            self.wake()
        else:
            self._park()

    def end(self) -> None:
        """Let this be all: whoever reads is told that nothing follows, as if the log had closed."""
        self._ended = True
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def wake(self) -> None:
        """End the wait."""
        ready, self._ready = self._ready, None
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

    async def _wait(self, timeout: float | None, offer: Offer | None) -> bool:
        """Return true once there is something to read or the log has closed, false when the time is up."""
        if self._ready is not None:
            raise RuntimeError("a follower has one reader at a time")
        loop = asyncio.get_running_loop()
        self._ready = ready = loop.create_future()
        self._offer = offer
        self._park()
        timer = None if timeout is None else loop.call_later(timeout, _resolve, ready)
        try:
            await ready
        finally:
            if timer is not None:
                timer.cancel()
            woken = self._roused or self._ready is not ready
            self._ready = self._offer = None
            if not woken:
                self._stop_waiting()
        return woken

    def _park(self) -> None:
        self._roused = False
        self._bucket.waiting.setdefault(self._namespace, set()).add(self)

    def _stop_waiting(self) -> None:
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
