"""A log that lasts as long as the process, and otherwise keeps every promise the durable one makes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lamina.server.log import Log
from lamina.server.logfile import write_copy
from lamina.server.store import Row


class MemoryStore(Log):
    """
    A `Store` without a file.

    A row is still accepted first and committed at the end of the turn of the
    loop, so that whoever reads too early finds out in every test.
    """

    def _commit(self, rows: Sequence[Row]) -> None:
        self._committed(None)

    def _forget(self, before: int, versions: Sequence[int]) -> None:
        pass

    async def _release(self) -> None:
        pass

    async def backup(self, target: Path) -> None:
        """Write the log to a file that a durable store can be restored from."""
        rows, compacted = self._kept()
        await asyncio.to_thread(write_copy, target, rows, version=self._version, compacted=compacted)
