"""
How far a server's clock is ahead of the wall, kept with what it stamped.

Time does not go back on what is kept: an object that was made ahead of the wall
would be in the future, and nothing that waits for it would come for as long. One
that is behind, because it stood still, starts with the time on the wall.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from lamina.clock import PacedClock
from lamina.errors import LaminaError
from lamina.logs import log as logger
from lamina.server.log import Log
from lamina.server.store import Key

_PLACE: Final = Key("/clock", "", "clock")
_EVERY = 5.0
"""How often, in seconds, it is noted how far a clock has got that goes at a pace of its own."""
_NONE, _NEWS = timedelta(0), timedelta(seconds=1)


class Timekeeper:
    """Notes in a log how far a clock is ahead, and has it go on from there."""

    def __init__(self, log: Log, clock: PacedClock) -> None:
        self._log, self._clock, self._noted = log, clock, _NONE

    def resume(self) -> None:
        """Have the clock go on where it had got to; said before anything is stamped or waited for."""
        row = self._log.get(_PLACE)
        if row is not None:
            self._noted = timedelta(seconds=orjson.loads(row.value)["ahead"])
            self._clock.wind(max(_NONE, self._noted - self._ahead()))

    async def note(self) -> None:
        """Take note of how far the clock is ahead now, if that is news; of a fast one, how far it will be soon."""
        ahead = max(_NONE, self._ahead() + timedelta(seconds=_EVERY) * max(0.0, self._clock.speed - 1))
        if abs(ahead - self._noted) >= _NEWS:
            noted = {"metadata": {"name": _PLACE.name}, "ahead": ahead.total_seconds()}
            await self._log.append(_PLACE, noted)
            self._noted = ahead

    async def keep(self) -> None:
        """Take note again and again: a clock that runs faster gets ahead by itself."""
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.note()
            except LaminaError as refused:
                logger.warning("how far the clock is ahead could not be noted", because=str(refused))

    def _ahead(self) -> timedelta:
        return self._clock.now() - datetime.now(UTC)
