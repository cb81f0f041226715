"""
One key at a time, later if need be.

A key that is added while somebody works on it comes round again when they are
done; a key that is added twice before anybody takes it comes round once.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from itertools import count
from time import monotonic
from typing import Generic, TypeVar

from lamina.clock import Cancel, Clock
from lamina.rates import Buckets
from lamina.runtime.meter import Meter

Key = TypeVar("Key")

_SOONEST = timedelta(milliseconds=5)
_LATEST = timedelta(seconds=1000)
_FAILURES_A_SECOND, _FAILURES_AT_ONCE = 10.0, 100


class Closed(Exception):
    """Nothing is to be taken from this queue any more."""


class Queue(Generic[Key]):
    """
    Keys that wait to be worked on, in the order they came.

    `soonest` is the pause after a first failure; it doubles with each that
    follows, up to `latest`. `crowd` says which keys fail for the same reasons, as
    those of one cluster do: how many of them fail is nothing to the others.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        soonest: timedelta = _SOONEST,
        latest: timedelta = _LATEST,
        meter: Meter | None = None,
        crowd: Callable[[Key], Hashable] = lambda key: "",
    ) -> None:
        self._clock, self._soonest, self._latest = clock, soonest, latest
        self._order: deque[Key] = deque()
        self._wanted: dict[Key, float] = {}
        self._busy: dict[Key, float] = {}
        self._meter = meter or Meter()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._failures: dict[Key, int] = {}
        self._crowd = crowd
        self._failing = Buckets(_FAILURES_A_SECOND, _FAILURES_AT_ONCE, now=lambda: clock.now().timestamp())
        self._due: dict[Key, datetime] = {}
        self._appointed: dict[Key, datetime] = {}
        self._later: list[tuple[datetime, int, Key]] = []
        self._numbers = count()
        self._alarm: tuple[datetime, Cancel] | None = None
        self._closed = False
        self.short_handed: Callable[[], object] = lambda: None
        """Who is told that a key is there and nobody waits for one."""
        self.at_work: set[Queue[Key]] = set()
        """Has this queue in it while it is not idle; several may share one, for whoever asks about all of them."""
        self.rested: Callable[[], object] = lambda: None
        """Who is told that all of those are idle."""

    @property
    def is_idle(self) -> bool:
        """
        Say whether nothing is being worked on and nothing is waiting for somebody; later does not count.

        Nor does what waits in a queue that is closed: nobody comes for it.
        """
        return not self._busy and (self._closed or not self._wanted)

    def due(self, key: Key) -> datetime | None:
        """Return when a key is to be worked on if nobody adds it before, as far as is known."""
        return self._due.get(key)

    @property
    def depth(self) -> int:
        """Return how many keys wait for somebody."""
        return len(self._order)

    @property
    def busy_since(self) -> list[float]:
        """Return since when keys are being worked on, each by itself."""
        return list(self._busy.values())

    def add(self, key: Key) -> None:
        """Have a key worked on as soon as it is its turn."""
        if key in self._wanted:
            return
        self._wanted[key] = monotonic()
        self._meter.added()
        if not self._closed:
            self.at_work.add(self)
        if key not in self._busy:
            self._line_up(key)

    def add_later(self, key: Key, delay: timedelta) -> None:
        """Have a key worked on after a while; the sooner of two such wishes counts."""
        if delay <= timedelta(0):
            self.add(key)
            return
        if self._closed:
            return
        when = self._clock.now() + delay
        known = self._due.get(key)
        if known is None or known > when:
            self._wait_for(key, when)

    def appoint(self, key: Key, delay: timedelta) -> None:
        """Have a key worked on after a while, even if it is worked on before then; the sooner of two counts."""
        when = self._clock.now() + delay
        self._appointed[key] = min(when, self._appointed.get(key, when))
        self.add_later(key, delay)

    def retry(
        self,
        key: Key,
        *,
        soonest: timedelta | None = None,
        latest: timedelta | None = None,
        spread: bool = False,
    ) -> timedelta:
        """
        Have a key worked on again, later each time, and return when.

        With `spread`, those who fail together do not come back together.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay: timedelta = min((soonest or self._soonest) * (1 << min(failures, 32)), latest or self._latest)
        if spread:
            delay = max(delay, timedelta(seconds=self._failing.reserve(self._crowd(key))))
        self.add_later(key, delay)
        self._meter.retried()
        return delay

    def forgive(self, key: Key) -> None:
        """Let the next failure of a key count as its first."""
        self._failures.pop(key, None)

    async def take(self) -> Key:
        """Return the next key; it is the caller's alone until `done`. Raises Closed once there are to be none."""
        while not self._order or self._closed:
            if self._closed:
                raise Closed
            taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            except asyncio.CancelledError:
                # Woken and called off in the same breath: somebody else has to go.
                if taker.done() and not taker.cancelled():
                    self._wake()
                raise
        key = self._order.popleft()
        now = monotonic()
        self._meter.taken(now - self._wanted.pop(key, now))
        self._busy[key] = now
        # Whatever it was to be looked at later for, it is looked at now; appointments stand.
        self._due.pop(key, None)
        if (appointed := self._appointed.get(key)) is not None:
            self._wait_for(key, appointed)
        return key

    def done(self, key: Key) -> None:
        """Give a key back."""
        self._busy.pop(key, None)
        if key in self._wanted:
            self._line_up(key)
        self._rest()

    def close(self) -> None:
        """Give out no more keys; those given out are still to be done."""
        self._closed = True
        if self._alarm is not None:
            self._alarm[1]()
            self._alarm = None
        self._later.clear()
        while self._takers:
            self._wake()
        self._rest()

    def _rest(self) -> None:
        if self.is_idle:
            self.at_work.discard(self)
            if not self.at_work:
                self.rested()

    def _wait_for(self, key: Key, when: datetime) -> None:
        self._due[key] = when
        heapq.heappush(self._later, (when, next(self._numbers), key))
        self._set_alarm()

    def _line_up(self, key: Key) -> None:
        self._order.append(key)
        if not self._wake() and not self._closed:
            self.short_handed()

    def _wake(self) -> bool:
        """Have somebody who waits look again, and say whether there was anybody."""
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return True
        return False

    def _set_alarm(self) -> None:
        while self._later and self._due.get(self._later[0][2]) != self._later[0][0]:
            heapq.heappop(self._later)
        if not self._later:
            return
        when = self._later[0][0]
        if self._alarm is not None:
            if self._alarm[0] <= when:
                return
            self._alarm[1]()
        self._alarm = (when, self._clock.call_at(when, self._ring))

    def _ring(self) -> None:
        self._alarm = None
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            when, _, key = heapq.heappop(self._later)
            if self._due.get(key) == when:
                del self._due[key]
                if self._appointed.get(key, now) <= now:
                    self._appointed.pop(key, None)
                self.add(key)
        self._set_alarm()
