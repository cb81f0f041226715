"""
The one clock.

Everything that waits for a moment of an object's life, and everything that
stamps one, asks a clock it was given: the wall clock when it is in earnest, one
wound by hand in tests, one that runs faster for whoever has no time to wait.

What is between machines is not of this clock: certificates, tokens, timeouts of
requests and watches, leases, pauses before a connection is tried again. They
follow the time that the other side has too. `tests/unit/test_clocks.py` names
every file that reads another clock than this one, and says why.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol, TypeAlias

Cancel: TypeAlias = Callable[[], None]


class Clock(Protocol):
    """What time it is, and when it will be later."""

    def now(self) -> datetime:
        """Return the present, in UTC."""
        ...

    def call_at(self, when: datetime, callback: Callable[[], None]) -> Cancel:
        """Call back at a moment, or soon if it has passed; what is returned calls it off."""
        ...

    async def sleep_until(self, when: datetime) -> None: ...

    async def sleep(self, delay: timedelta) -> None: ...


class WallClock:
    """The time everybody else has too, or that time moved by an offset."""

    def __init__(self, offset: timedelta = timedelta(0)) -> None:
        self._offset = offset

    def now(self) -> datetime:
        return datetime.now(UTC) + self._offset

    def call_at(self, when: datetime, callback: Callable[[], None]) -> Cancel:
        delay = max(0.0, (when - self.now()).total_seconds())
        return asyncio.get_running_loop().call_later(delay, callback).cancel

    async def sleep_until(self, when: datetime) -> None:
        await asyncio.sleep(max(0.0, (when - self.now()).total_seconds()))

    async def sleep(self, delay: timedelta) -> None:
        await asyncio.sleep(delay.total_seconds())


class ManualClock:
    """A clock that stands still until somebody winds it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._order: list[tuple[datetime, int]] = []
        self._alarms: dict[int, Callable[[], None]] = {}
        self._numbers = count()

    def now(self) -> datetime:
        return self._now

    def call_at(self, when: datetime, callback: Callable[[], None]) -> Cancel:
        number = next(self._numbers)
        self._alarms[number] = callback
        heapq.heappush(self._order, (when, number))
        if when <= self._now:
            # Never from inside this call: whoever asks is not ready to be called.
            asyncio.get_running_loop().call_soon(self._ring)
        return lambda: self._call_off(number)

    async def sleep_until(self, when: datetime) -> None:
        passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cancel = self.call_at(when, lambda: passed.set_result(None))
        try:
            await passed
        finally:
            cancel()

    async def sleep(self, delay: timedelta) -> None:
        await self.sleep_until(self.now() + delay)

    @property
    def next_alarm(self) -> datetime | None:
        """Return the next moment somebody waits for."""
        while self._order and self._order[0][1] not in self._alarms:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None

    def wind(self, by: timedelta) -> None:
        """Let time pass, ringing on the way whatever falls due, each at its own moment."""
        until = self._now + by
        while (alarm := self.next_alarm) is not None and alarm <= until:
            self._now = max(self._now, alarm)
            self._ring()
        self._now = until

    def _ring(self) -> None:
        while (alarm := self.next_alarm) is not None and alarm <= self._now:
            self._alarms.pop(heapq.heappop(self._order)[1])()

    def _call_off(self, number: int) -> None:
        self._alarms.pop(number, None)


class PacedClock(ManualClock):
    """
    A clock that runs at a pace of its own, and can be wound.

    It starts with the time everybody else has, and goes `speed` times as fast;
    at a speed of 0 it stands still, and nothing happens but what it is wound to.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self._since = datetime.now(UTC)
        super().__init__(self._since)
        self._base, self._speed = self._since, speed
        self._timer: asyncio.TimerHandle | None = None

    @property
    def speed(self) -> float:
        return self._speed

    def now(self) -> datetime:
        passed = datetime.now(UTC) - self._since
        self._now = self._base + (passed if self._speed == 1.0 else passed * self._speed)
        return self._now

    def run_at(self, speed: float) -> None:
        """Go on from the present at another pace."""
        self._base, self._since, self._speed = self.now(), datetime.now(UTC), speed
        self._set_timer()

    def call_at(self, when: datetime, callback: Callable[[], None]) -> Cancel:
        self.now()
        cancel = super().call_at(when, callback)
        self._set_timer()
        return cancel

    def wind(self, by: timedelta) -> None:
        """Let time pass at once; whatever falls due rings."""
        self._base += by
        self._wake()

    def _wake(self) -> None:
        self.now()
        self._ring()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        alarm = self.next_alarm
        if alarm is not None and self._speed:
            delay = max(0.0, (alarm - self.now()).total_seconds()) / self._speed
            self._timer = asyncio.get_running_loop().call_later(delay, self._wake)


class WoundClock(PacedClock):
    """
    The time everybody else has too, plus what somebody has wound it on by.

    For controllers on a server that has a clock of its own: what the server
    stamps stays wall time, and who waits for a moment need not.
    """

    def __init__(self) -> None:
        super().__init__()


async def pass_time(clock: ManualClock, by: timedelta, settled: Callable[[], Awaitable[None]]) -> None:
    """
    Let time pass as it would have, only sooner: from alarm to alarm, each seen to before the next rings.

    `settled` returns once everybody who was woken has nothing to do but wait.
    Wound in one go, a clock wakes whoever sleeps through the time in between.
    """
    if by < timedelta(0):
        raise ValueError(f"time does not pass backwards, and not by {by.total_seconds():g} s")
    until = clock.now() + by
    await settled()
    while (alarm := clock.next_alarm) is not None and alarm <= until:
        clock.wind(max(timedelta(0), alarm - clock.now()))
        await settled()
    clock.wind(max(timedelta(0), until - clock.now()))
    await settled()
