"""Streams a copy of the log while it is being written."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from lamina.server.storage.store import Store

_CHUNK = 1 << 20


async def stream_backup(store: Store) -> AsyncIterator[bytes]:
    """Yield the bytes of a consistent copy."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="lamina-backup-"))
    try:
        copy = folder / "log"
        await store.backup(copy)
        with copy.open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, _CHUNK):
                yield chunk
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
