"""The timer of compaction: `LogStore.compact` in log_store.py removes the versions older than a configured age."""

from __future__ import annotations

import asyncio
from collections import deque

from lamina.server.storage.store import Store

_MARKS = 10
"""Marks within the retention time: old versions are kept at most a tenth longer than configured."""


async def compact_periodically(store: Store, keep: float) -> None:
    """Compact the log periodically, so that versions older than `keep` seconds are removed."""
    marks: deque[tuple[float, int]] = deque()
    clock = asyncio.get_running_loop().time
    while True:
        await asyncio.sleep(keep / _MARKS)
        now = clock()
        marks.append((now, store.version))
        due = 0
        while marks and marks[0][0] <= now - keep:
            due = marks.popleft()[1]
        if due > store.compacted:
            store.compact(due)
