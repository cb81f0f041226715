"""
Sends events without delaying reconciles.

A few events are sent at once. Beyond a burst, reconciles take precedence: while
controllers are busy only some dozen a second are sent, and the rest when they
are idle. A kubelet has the same rate and burst. At most a few thousand events
are held back for busy controllers.

Each cluster has a queue of its own: an unresponsive cluster delays only its own
events, and drops the oldest of them when its queue is full.

The rate counts CPU seconds of this process: on a busy machine events must not
take a larger share of it. The limit of events about one object is in executor.py.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic, process_time
from typing import TypeAlias

from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.ratelimit import TokenBucket
from lamina.runtime.controller.concurrency import run_concurrently

Send: TypeAlias = Callable[[], Awaitable[None]]

_RATE, _BURST = 50, 100
"""How many events a second are sent at once, and how many after a pause."""
_REFILL_AFTER = 1.0
_BATCH = 32
_BUSY_BATCH = 4
_PAUSE = 0.05
"""While controllers are busy: how many events are sent together, and the CPU seconds in between."""
_IDLE_TURNS = 8
"""How many turns of the event loop controllers have to stay idle."""
_MAX_PENDING = 8192
"""How many events may wait for idle controllers; beyond it they are sent even while controllers are busy."""
_MAX_PER_CLUSTER = 2 * _MAX_PENDING
"""How many events may wait for one cluster; beyond it the oldest are dropped."""


class EventBroadcaster:
    """Queues events per cluster and sends them in order."""

    def __init__(
        self,
        is_busy: Callable[[], bool],
        log: Logger,
        *,
        pause: float = _PAUSE,
        refill_after: float = _REFILL_AFTER,
        max_per_cluster: int = _MAX_PER_CLUSTER,
    ) -> None:
        self.is_busy, self._log = is_busy, log
        self._pause, self._refill_after, self._max_per_cluster = pause, refill_after, max_per_cluster
        self._waiting: dict[str, deque[Send]] = {}
        self._sending: set[str] = set()
        """The clusters to which a batch is being sent."""
        self._bucket, self._sent_at = _full(), monotonic()
        self._added = asyncio.Event()
        self._done: list[asyncio.Future[None]] = []
        self._idle = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Say whether every event has been sent."""
        return not self._waiting and not self._sending

    async def send(self, send: Send, cluster: str = "") -> None:
        """Send an event at once, or queue it."""
        before, self._sent_at = self._sent_at, monotonic()
        if self._sent_at - before > self._refill_after:
            self._bucket = _full()
        if cluster not in self._waiting and cluster not in self._sending and self._bucket.take():
            await send()
        else:
            self._waiting.setdefault(cluster, deque(maxlen=self._max_per_cluster)).append(send)
            self._added.set()

    def notify_idle(self) -> None:
        """Note that all controllers are idle at this moment."""
        self._idle.set()

    async def flush(self) -> None:
        """Wait until every event has been sent."""
        if not self.is_idle:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._done.append(done)
            await done

    async def run(self) -> None:
        """Send queued events until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._added.wait()
                await self._yield_to_workers()
                batch = _BUSY_BATCH if self._must_wait() else _BATCH
                self._added.clear()
                clusters = self._ready_clusters
                self._sending.update(clusters)
                for cluster in clusters:
                    group.create_task(self._send_batch(cluster, max(1, batch // len(clusters))))

    @property
    def _ready_clusters(self) -> list[str]:
        """Return the clusters with queued events to which no batch is being sent."""
        return [cluster for cluster in self._waiting if cluster not in self._sending]

    async def _send_batch(self, cluster: str, batch: int) -> None:
        waiting = self._waiting[cluster]
        sends = [waiting.popleft() for _ in range(min(batch, len(waiting)))]
        if not waiting:
            del self._waiting[cluster]
        try:
            for outcome in await run_concurrently(sends, _send, at_once=_BATCH):
                if isinstance(outcome, LaminaError):
                    self._log.debug("event not sent", because=str(outcome))
        finally:
            self._sending.discard(cluster)
        if cluster in self._waiting:
            self._added.set()
        elif self.is_idle:
            self._finish()

    async def _yield_to_workers(self) -> None:
        """Let busy controllers have some CPU time, and wait no longer than a moment where they only wait."""
        began, worked = monotonic(), process_time()
        while process_time() - worked < self._pause and monotonic() - began < self._refill_after:
            if not self._must_wait():
                return
            self._idle.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._idle.wait()
                    # A write of one controller may enqueue keys of another whose informer has yet to run.
                    for _ in range(_IDLE_TURNS):
                        await asyncio.sleep(0)

    def _must_wait(self) -> bool:
        return (
            self.is_busy()
            and sum(len(self._waiting[cluster]) for cluster in self._ready_clusters) < _MAX_PENDING
        )

    def _finish(self) -> None:
        waiters, self._done = self._done, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _full() -> TokenBucket:
    return TokenBucket(_RATE, _BURST, process_time)


async def _send(send: Send) -> None:
    try:
        await send()
    except (TypeError, ValueError) as error:
        # An event that cannot be encoded or decoded is dropped; the others are sent.
        raise LaminaError(f"this event cannot be sent: {error}") from error
