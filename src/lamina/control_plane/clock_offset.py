"""
The offset of a server's clock from the system clock, stored in the server's log.

A durable server must not set its clock back at a restart: timestamps of its objects
would be in the future, and timers would not fire until the system clock reaches
them. A clock that is behind, because it was stopped, restarts at the system time.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from lamina.clock import PacedClock
from lamina.errors import LaminaError
from lamina.logs import log as logger
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.store import Key

_KEY: Final = Key("/clock", "", "clock")
_PERIOD = 5.0
"""In seconds, the period at which the offset of a fast clock is stored."""
_ZERO, _SIGNIFICANT = timedelta(0), timedelta(seconds=1)


class ClockOffset:
    """Stores the offset of a clock in a log, and restores it at a start."""

    def __init__(self, log: LogStore, clock: PacedClock) -> None:
        self._log, self._clock, self._stored = log, clock, _ZERO

    def restore(self) -> None:
        """Advance the clock to the stored offset; called before anything is stamped or waits."""
        row = self._log.get(_KEY)
        if row is not None:
            self._stored = timedelta(seconds=orjson.loads(row.value)["ahead"])
            self._clock.wind(max(_ZERO, self._stored - self._offset()))

    async def store(self) -> None:
        """Store the offset if it has changed; of a fast clock, the offset that it will have after one more period."""
        ahead = max(_ZERO, self._offset() + timedelta(seconds=_PERIOD) * max(0.0, self._clock.speed - 1))
        if abs(ahead - self._stored) >= _SIGNIFICANT:
            content = {"metadata": {"name": _KEY.name}, "ahead": ahead.total_seconds()}
            await self._log.append(_KEY, content)
            self._stored = ahead

    async def store_periodically(self) -> None:
        """Store the offset again and again, since that of a fast clock grows."""
        while True:
            await asyncio.sleep(_PERIOD)
            try:
                await self.store()
            except LaminaError as error:
                logger.warning("clock offset not stored", because=str(error))

    def _offset(self) -> timedelta:
        return self._clock.now() - datetime.now(UTC)
