"""
Telling what happened, once there is time for it.

A few events are told at once. Where there are many, whoever does things comes
first: while controllers are at work only some dozen a second are told, and the
rest when they rest. A kubelet does the same, with the same numbers. However
busy everybody is, none waits behind more than a few thousand.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from lamina.errors import LaminaError
from lamina.logs import Logger
from lamina.rates import Bucket
from lamina.runtime.together import side_by_side

Tell: TypeAlias = Callable[[], Awaitable[None]]

_RATE, _BURST = 50, 100
"""How many a second are told at once, and how many if there were none for a while."""
_TOGETHER = 32
_A_FEW = 4
_PAUSE = 0.05
"""Those that wait while others work: so many at a time, and how long in between."""
_MOST = 8192
"""How many may wait; beyond it they are told at once, whoever works."""


class Teller:
    """Those who tell something, in the order they came."""

    def __init__(self, is_busy: Callable[[], bool], log: Logger) -> None:
        self._is_busy, self._log = is_busy, log
        self._waiting: deque[Tell] = deque()
        self._telling = 0
        self._bucket = Bucket(_RATE, _BURST)
        self._came = asyncio.Event()
        self._done: list[asyncio.Future[None]] = []

    @property
    def is_idle(self) -> bool:
        """Say whether everything has been told."""
        return not self._waiting and not self._telling

    async def tell(self, tell: Tell) -> None:
        """Have something told: at once, or when there is time."""
        if self.is_idle and self._bucket.take():
            await tell()
        else:
            self._waiting.append(tell)
            self._came.set()

    async def finished(self) -> None:
        """Wait until everything has been told."""
        if not self.is_idle:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._done.append(done)
            await done

    async def run(self) -> None:
        """Tell for ever."""
        while True:
            await self._came.wait()
            many = _TOGETHER
            if self._is_busy() and len(self._waiting) < _MOST:
                await asyncio.sleep(_PAUSE)
                many = _A_FEW if self._is_busy() else _TOGETHER
            some = [self._waiting.popleft() for _ in range(min(many, len(self._waiting)))]
            self._telling = len(some)
            try:
                for outcome in await side_by_side(some, _tell, at_once=_TOGETHER):
                    if isinstance(outcome, LaminaError):
                        self._log.debug("event not told", because=str(outcome))
            finally:
                self._telling = 0
            if not self._waiting:
                self._came.clear()
                self._finish()

    def _finish(self) -> None:
        finished, self._done = self._done, []
        for one in finished:
            if not one.done():
                one.set_result(None)


async def _tell(tell: Tell) -> None:
    await tell()
