"""A log without a file: like the durable one, but it lasts as long as the process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lamina.server.storage.log_store import LogStore
from lamina.server.storage.sqlite_file import write_copy
from lamina.server.storage.store import Row


class MemoryStore(LogStore):
    """
    A `Store` without a file.

    A row is accepted first and committed in the next iteration of the event loop, so that
    tests detect reads before the commit.
    """

    def _commit(self, rows: Sequence[Row]) -> None:
        self._committed(None)

    def _forget(self, before: int, versions: Sequence[int]) -> None:
        pass

    async def _release(self) -> None:
        pass

    async def backup(self, target: Path) -> None:
        """Write the log to a file that a durable store can be restored from."""
        rows, compacted = self._all_rows()
        await asyncio.to_thread(write_copy, target, rows, version=self._version, compacted=compacted)
