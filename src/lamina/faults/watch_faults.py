"""
Faults of watch streams.

A watch that first sends existing objects is unchanged up to the bookmark after
them, so a client's initial list is complete before the fault applies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

_MARK = b"k8s.io/initial-events-end"
_BOOKMARK = b'"BOOKMARK"'


async def cut_short(pieces: AsyncIterator[bytes], events: int, *, opens: bool) -> AsyncGenerator[bytes, None]:
    """Yield a watch up to a number of events; bookmarks do not count."""
    sent, opening = 0, opens
    async with aclosing(_whole_lines(pieces)) as whole:
        async for lines in whole:
            if opening:
                opening = _MARK not in lines
                yield lines
                continue
            kept = []
            for line in lines.splitlines(keepends=True):
                kept.append(line)
                sent += _BOOKMARK not in line[:40]
                if sent >= events:
                    yield b"".join(kept)
                    return
            yield lines


async def delayed(
    pieces: AsyncIterator[bytes], seconds: float | None, released: asyncio.Event, *, opens: bool
) -> AsyncGenerator[bytes, None]:
    """Yield a watch with a delay, or at once when it is released."""
    clock = asyncio.get_running_loop().time
    waiting: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()

    async def collect() -> None:
        try:
            async with aclosing(_whole_lines(pieces)) as whole:
                async for lines in whole:
                    waiting.put_nowait((clock(), lines))
        finally:
            waiting.put_nowait(None)

    collecting = asyncio.create_task(collect())
    opening = opens
    try:
        while (item := await waiting.get()) is not None:
            at, lines = item
            if not opening:
                await _wait(None if seconds is None else at + seconds - clock(), released)
            opening = opening and _MARK not in lines
            yield lines
        await collecting
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)


async def _wait(seconds: float | None, released: asyncio.Event) -> None:
    if seconds is not None and seconds <= 0:
        return
    try:
        async with asyncio.timeout(seconds):
            await released.wait()
    except TimeoutError:
        pass


async def _whole_lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield whole lines; a last line without a newline is passed on."""
    rest = b""
    async for piece in pieces:
        whole, newline, rest = (rest + piece).rpartition(b"\n")
        if newline:
            yield whole + newline
    if rest:
        yield rest
