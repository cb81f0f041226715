"""
Telling what happened, once there is time for it.

A few events are told at once. Where there are many, whoever does things comes
first: while controllers are at work only some dozen a second are told, and the
rest when they rest. A kubelet does the same, with the same numbers. However
busy everybody is, none waits behind more than a few thousand.

Each cluster has a lane of its own: one that does not answer holds up its own
events, of which it loses the oldest in the end, and those of no other.

A second here is one of work: on a machine that is busy with other things,
whoever does things should not fall behind those who talk about it.
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
from lamina.rates import Bucket
from lamina.runtime.together import side_by_side

Tell: TypeAlias = Callable[[], Awaitable[None]]

_RATE, _BURST = 50, 100
"""How many a second are told at once, and how many if there were none for a while."""
_A_WHILE = 1.0
_TOGETHER = 32
_A_FEW = 4
_PAUSE = 0.05
"""Those that wait while others work: so many at a time, and how much work in between."""
_TURNS = 8
"""After how many turns of the loop those who rest are believed to."""
_MOST = 8192
"""How many may wait; beyond it they are told at once, whoever works."""
_MOST_IN_LANE = 2 * _MOST
"""How many may wait for one cluster; beyond it the oldest are told to nobody."""


class Teller:
    """Those who tell something, in the order they came, lane by lane."""

    def __init__(self, is_busy: Callable[[], bool], log: Logger) -> None:
        self.is_busy, self._log = is_busy, log
        self._waiting: dict[str, deque[Tell]] = {}
        self._telling: set[str] = set()
        """The lanes in which something is being told: what waits there waits for that."""
        self._bucket, self._told_at = _full(), monotonic()
        self._came = asyncio.Event()
        self._done: list[asyncio.Future[None]] = []
        self._rest = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Say whether everything has been told."""
        return not self._waiting and not self._telling

    async def tell(self, tell: Tell, lane: str = "") -> None:
        """Have something told: at once, or when there is time."""
        before, self._told_at = self._told_at, monotonic()
        if self._told_at - before > _A_WHILE:
            self._bucket = _full()
        if lane not in self._waiting and lane not in self._telling and self._bucket.take():
            await tell()
        else:
            self._waiting.setdefault(lane, deque(maxlen=_MOST_IN_LANE)).append(tell)
            self._came.set()

    def rested(self) -> None:
        """Take note that nobody is at work at this moment: whoever waits for that need not wait longer."""
        self._rest.set()

    async def finished(self) -> None:
        """Wait until everything has been told."""
        if not self.is_idle:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._done.append(done)
            await done

    async def run(self) -> None:
        """Tell for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._came.wait()
                await self._give_way()
                many = _A_FEW if self._has_to_wait() else _TOGETHER
                self._came.clear()
                lanes = self._free
                self._telling.update(lanes)
                for lane in lanes:
                    group.create_task(self._tell_some(lane, max(1, many // len(lanes))))

    @property
    def _free(self) -> list[str]:
        """Return the lanes in which something waits and nothing is being told."""
        return [lane for lane in self._waiting if lane not in self._telling]

    async def _tell_some(self, lane: str, many: int) -> None:
        waiting = self._waiting[lane]
        some = [waiting.popleft() for _ in range(min(many, len(waiting)))]
        if not waiting:
            del self._waiting[lane]
        try:
            for outcome in await side_by_side(some, _tell, at_once=_TOGETHER):
                if isinstance(outcome, LaminaError):
                    self._log.debug("event not told", because=str(outcome))
        finally:
            self._telling.discard(lane)
        if lane in self._waiting:
            self._came.set()
        elif self.is_idle:
            self._finish()

    async def _give_way(self) -> None:
        """Let others work for a moment, or wait for a while where what they do is to wait."""
        began, worked = monotonic(), process_time()
        while process_time() - worked < _PAUSE and monotonic() - began < _A_WHILE:
            if not self._has_to_wait():
                return
            self._rest.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._rest.wait()
                    # What one of them has written may be work for another, who has yet to hear of it.
                    for _ in range(_TURNS):
                        await asyncio.sleep(0)

    def _has_to_wait(self) -> bool:
        return self.is_busy() and sum(len(self._waiting[lane]) for lane in self._free) < _MOST

    def _finish(self) -> None:
        finished, self._done = self._done, []
        for one in finished:
            if not one.done():
                one.set_result(None)


def _full() -> Bucket:
    return Bucket(_RATE, _BURST, process_time)


async def _tell(tell: Tell) -> None:
    try:
        await tell()
    except (TypeError, ValueError) as error:
        # One that cannot be written or read is one event less, and no end to all others.
        raise LaminaError(f"this event cannot be told: {error}") from error
