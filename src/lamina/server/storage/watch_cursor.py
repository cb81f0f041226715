"""
One reader of the events in a bucket.

A cursor holds a position in the bucket's history and nothing else, so it cannot block
writers: the history moves on, and a position that was dropped is an error (Gone). A
waiting cursor has read everything, and the event that wakes it sets its position.

A waiting reader may pass a `deliver` callback: events are then delivered through it
without waking the reader's task. The task wakes only if the callback does not accept a
batch, and reads it then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from lamina.errors import Gone
from lamina.server.storage.bucket_history import Bucket
from lamina.server.storage.store import Deliver, Event

BATCH = 1_000
"""Events per batch: a batch in use is not limited by the window any more."""


class CursorLog(Protocol):
    """The part of the log that a cursor uses: version, whether it is closed, and scheduling of deliveries."""

    @property
    def version(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def schedule_delivery(self, reader: WatchCursor) -> None: ...


class WatchCursor:
    """A `Cursor` of one bucket, or of one namespace in it."""

    __slots__ = (
        "_bucket",
        "_deliver",
        "_ended",
        "_log",
        "_namespace",
        "_position",
        "_ready",
        "_resumed",
        "_version",
    )

    def __init__(self, log: CursorLog, bucket: Bucket, namespace: str | None, version: int) -> None:
        self._log = log
        self._bucket = bucket
        self._namespace = namespace
        self._version = version  # all events up to here were returned
        self._position = bucket.history.position(version)
        self._ready: asyncio.Future[None] | None = None
        self._deliver: Deliver | None = None
        self._resumed = False  # whether it still waits and there are events
        self._ended = False

    @property
    def version(self) -> int:
        history = self._bucket.history
        unread = self._position - history.base
        if (self._ready is not None and not self._resumed) or unread >= len(history.events):
            return max(self._version, self._log.version)
        return max(self._version, history.versions[unread] - 1) if unread >= 0 else self._version

    def __aiter__(self) -> WatchCursor:
        return self

    async def __anext__(self) -> Sequence[Event]:
        batch = await self.next()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def next(
        self, timeout: float | None = None, deliver: Deliver | None = None
    ) -> Sequence[Event] | None:
        while not self._ended:
            batch = self._take()
            if batch:
                return batch
            if self._log.closed:
                return None
            if not await self._wait(timeout, deliver):
                return None if self._log.closed or self._ended else ()
        return None

    def resume(self, position: int) -> None:
        """Continue at a position; the caller has removed the cursor from the bucket's readers."""
        self._position = position
        self._resumed = True
        if self._deliver is None:
            self.wake()
        else:
            self._log.schedule_delivery(self)

    def deliver(self) -> None:
        """Deliver the events if the reader still waits, and wake it if they are not accepted or not all."""
        if self._ready is None or not self._resumed:
            return
        assert self._deliver is not None
        cursor, version = self._position, self._version
        try:
            batch = self._take()
            taken = not batch or self._deliver(batch)
        except Exception:
            # The error is raised again when the reader reads.
            taken = False
        if not taken:
            self._position, self._version = cursor, version
            self.wake()
        elif self._position < self._bucket.history.end:
            self.wake()
        else:
            self._register()

    def end(self) -> None:
        """End the cursor: the reader gets no more events, as if the log had closed."""
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
            start = self._position - history.base
            if start < 0:
                raise Gone(f"too old resource version: {self._version} ({history.floor})")
            events = history.events[start : start + BATCH]
            if not events:
                return events
            self._position += len(events)
            chosen: Sequence[Event] = events
            if self._namespace is not None:
                chosen = [event for event in chosen if event.row.key.namespace == self._namespace]
            if events[0].row.version <= self._version:  # the requested version was in the future
                chosen = [event for event in chosen if event.row.version > self._version]
            self._version = max(self._version, events[-1].row.version)
            if chosen:
                return chosen

    async def _wait(self, timeout: float | None, deliver: Deliver | None) -> bool:
        """Return true when there are events or the log has closed, false after the timeout."""
        if self._ready is not None:
            raise RuntimeError("a cursor has one reader at a time")
        loop = asyncio.get_running_loop()
        self._ready = ready = loop.create_future()
        self._deliver = deliver
        self._register()
        timer = None if timeout is None else loop.call_later(timeout, _resolve, ready)
        try:
            await ready
        finally:
            if timer is not None:
                timer.cancel()
            woken = self._resumed or self._ready is not ready
            self._ready = self._deliver = None
            if not woken:
                self._stop_waiting()
        return woken

    def _register(self) -> None:
        self._resumed = False
        self._bucket.waiting.setdefault(self._namespace, set()).add(self)

    def _stop_waiting(self) -> None:
        waiting = self._bucket.waiting
        readers = waiting[self._namespace]
        readers.discard(self)
        if not readers:
            del waiting[self._namespace]
        # No event for this cursor arrived meanwhile; events for others may have dropped the old
        # position from the history.
        self._position = self._bucket.history.end


def _resolve(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
