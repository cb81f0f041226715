"""
The clock.

Everything that waits for a time stored in an object, and everything that writes
one, uses a clock that is passed in: the wall clock in production, a manual one in
tests, a faster one for simulations and demonstrations.

Time shared with other machines does not come from this clock: certificates,
tokens, timeouts of requests and watches, leases, reconnect backoff. Those use real
time on both sides. `tests/unit/test_clocks.py` lists every file that reads another
clock, with the reason.
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
    """Reads the time, and waits until a later one."""

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        ...

    def call_at(self, when: datetime, callback: Callable[[], None]) -> Cancel:
        """Call back at a time, or soon if it has passed; the return value cancels that."""
        ...

    async def sleep_until(self, when: datetime) -> None: ...

    async def sleep(self, delay: timedelta) -> None: ...


class WallClock:
    """The wall clock, or the wall clock plus an offset."""

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
    """A clock that only `wind` advances."""

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
            # Never from inside this call: the caller is not ready for the callback yet.
            asyncio.get_running_loop().call_soon(self._run_due)
        return lambda: self._cancel(number)

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
        """Return the time of the next callback, if any."""
        while self._order and self._order[0][1] not in self._alarms:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None

    def wind(self, by: timedelta) -> None:
        """Advance the clock; callbacks that fall due run in order, each at its own time."""
        until = self._now + by
        while (alarm := self.next_alarm) is not None and alarm <= until:
            self._now = max(self._now, alarm)
            self._run_due()
        self._now = until

    def _run_due(self) -> None:
        while (alarm := self.next_alarm) is not None and alarm <= self._now:
            self._alarms.pop(heapq.heappop(self._order)[1])()

    def _cancel(self, number: int) -> None:
        self._alarms.pop(number, None)


class PacedClock(ManualClock):
    """
    A clock with its own speed that can also be advanced.

    It starts at the current wall time and runs `speed` times as fast; at speed 0 it
    only advances by `wind`.
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
        """Continue from the current time at another speed."""
        self._base, self._since, self._speed = self.now(), datetime.now(UTC), speed
        self._set_timer()

    def call_at(self, when: datetime, callback: Callable[[], None]) -> Cancel:
        self.now()
        cancel = super().call_at(when, callback)
        self._set_timer()
        return cancel

    def wind(self, by: timedelta) -> None:
        """Advance the clock at once; callbacks that fall due run."""
        self._base += by
        self._wake()

    def _wake(self) -> None:
        self.now()
        self._run_due()
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
    The wall clock plus the time that `wind` added.

    For controllers on a server with a clock of its own: timestamps of the server are
    wall time, and waiting controllers can be advanced.
    """

    def __init__(self) -> None:
        super().__init__()


async def pass_time(clock: ManualClock, by: timedelta, settled: Callable[[], Awaitable[None]]) -> None:
    """
    Advance the clock from one alarm to the next, and wait for `settled` after each.

    `settled` returns when all work that an alarm started is done. A clock that is
    advanced in one step would skip the times in between for tasks that sleep again.
    """
    if by < timedelta(0):
        raise ValueError(f"cannot advance the clock by {by.total_seconds():g} s")
    until = clock.now() + by
    await settled()
    while (alarm := clock.next_alarm) is not None and alarm <= until:
        clock.wind(max(timedelta(0), alarm - clock.now()))
        await settled()
    clock.wind(max(timedelta(0), until - clock.now()))
    await settled()
