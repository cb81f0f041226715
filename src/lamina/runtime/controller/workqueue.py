"""
The workqueue: workers wait for its keys, a clock promotes delayed ones, metrics count them.

Which key is ready when (deduplication, delays, backoff, appointments) is decided
in `core.model.workqueue_schedule`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from time import monotonic
from typing import Generic, TypeVar

from lamina.clock import Cancel, Clock
from lamina.core.model.workqueue_schedule import BASE_DELAY, MAX_DELAY, Schedule
from lamina.runtime.metrics.recorder import Recorder

Key = TypeVar("Key", bound=Hashable)


class ShutDown(Exception):
    """The workqueue gives out no more keys."""


class Workqueue(Generic[Key]):
    """Keys that wait for a worker, in the order in which they become ready."""

    def __init__(
        self,
        clock: Clock,
        *,
        base_delay: timedelta = BASE_DELAY,
        max_delay: timedelta = MAX_DELAY,
        meter: Recorder | None = None,
        group: Callable[[Key], Hashable] = lambda key: "",
    ) -> None:
        self._clock = clock
        self._schedule = Schedule(base_delay=base_delay, max_delay=max_delay, group=group)
        self._added: dict[Key, float] = {}
        self._busy: dict[Key, float] = {}
        self._meter = meter or Recorder()
        self._getters: deque[asyncio.Future[None]] = deque()
        self._alarm: tuple[datetime, Cancel] | None = None
        self._shut_down = False
        self.needs_worker: Callable[[], object] = lambda: None
        """Called when a key becomes ready and no worker waits for one."""
        self.active: set[Workqueue[Key]] = set()
        """Contains this queue while it is not idle; several queues may share one set."""
        self.on_idle: Callable[[], object] = lambda: None
        """Called when the last of these queues becomes idle."""

    @property
    def is_idle(self) -> bool:
        """
        Say whether no key is in progress and none is ready; delayed keys do not count.

        Ready keys of a queue that is shut down do not count either: no worker takes them.
        """
        return not self._busy and (self._shut_down or not self._added)

    def due(self, key: Key) -> datetime | None:
        """Return when a key becomes ready if nothing adds it before."""
        return self._schedule.due(key)

    @property
    def depth(self) -> int:
        """Return how many keys are ready."""
        return self._schedule.depth

    @property
    def busy_since(self) -> list[float]:
        """Return since when each key in progress has been."""
        return list(self._busy.values())

    def add(self, key: Key) -> None:
        """Make a key ready at once."""
        if self._schedule.add(key):
            self._was_added(key)

    def add_after(self, key: Key, delay: timedelta) -> None:
        """Make a key ready after a delay; the earlier of two such times stands."""
        if delay > timedelta(0) and self._shut_down:
            return
        if self._schedule.add_after(key, self._clock.now(), delay):
            self._was_added(key)
        self._set_alarm()

    def appoint(self, key: Key, delay: timedelta) -> None:
        """Make a key ready after a delay, even if it is reconciled before then; the earlier of two stands."""
        if self._schedule.appoint(key, self._clock.now(), delay):
            self._was_added(key)
        self._set_alarm()

    def retry(
        self,
        key: Key,
        *,
        base_delay: timedelta | None = None,
        max_delay: timedelta | None = None,
        spread: bool = False,
    ) -> timedelta:
        """Make a key ready after its backoff, and return that delay."""
        now = self._clock.now()
        delay = self._schedule.retry(key, now, base_delay=base_delay, max_delay=max_delay, spread=spread)
        self._meter.retried()
        self._set_alarm()
        return delay

    def reset_backoff(self, key: Key) -> None:
        """Count the next failure of a key as its first."""
        self._schedule.reset_backoff(key)

    async def get(self) -> Key:
        """Return the next key; it is in progress until `done`. Raises ShutDown once there are to be none."""
        while not self._schedule.depth or self._shut_down:
            if self._shut_down:
                raise ShutDown
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # Woken and cancelled at once: another worker takes the key.
                if getter.done() and not getter.cancelled():
                    self._wake()
                raise
        key = self._schedule.take(self._clock.now())
        now = monotonic()
        self._meter.taken(now - self._added.pop(key, now))
        self._busy[key] = now
        self._set_alarm()
        return key

    def done(self, key: Key) -> None:
        """Mark a key as no longer in progress."""
        self._busy.pop(key, None)
        if self._schedule.done(key):
            self._is_ready()
        self._check_idle()

    def shut_down(self) -> None:
        """Give out no more keys; those in progress are still to be done."""
        self._shut_down = True
        if self._alarm is not None:
            self._alarm[1]()
            self._alarm = None
        self._schedule.cancel_delayed()
        while self._getters:
            self._wake()
        self._check_idle()

    def _was_added(self, key: Key) -> None:
        self._added[key] = monotonic()
        self._meter.added()
        if not self._shut_down:
            self.active.add(self)
        if key not in self._busy:
            self._is_ready()

    def _is_ready(self) -> None:
        if not self._wake() and not self._shut_down:
            self.needs_worker()

    def _check_idle(self) -> None:
        if self.is_idle:
            self.active.discard(self)
            if not self.active:
                self.on_idle()

    def _wake(self) -> bool:
        """Wake a waiting worker, and say whether there was one."""
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return True
        return False

    def _set_alarm(self) -> None:
        when = None if self._shut_down else self._schedule.next_due
        if when is None:
            return
        if self._alarm is not None:
            if self._alarm[0] <= when:
                return
            self._alarm[1]()
        self._alarm = (when, self._clock.call_at(when, self._promote))

    def _promote(self) -> None:
        self._alarm = None
        for key in self._schedule.promote(self._clock.now()):
            self._was_added(key)
        self._set_alarm()
