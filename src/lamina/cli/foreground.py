"""Running in the foreground until somebody says otherwise."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamina.runtime.manager import Manager

_LAST_WORDS = 10.0
"""How long whatever has been begun may take once it is to end."""


def on(number: signal.Signals, act: Callable[[], None]) -> None:
    """Do something whenever a signal comes."""
    asyncio.get_running_loop().add_signal_handler(number, act)


def stopping() -> asyncio.Event:
    """Return what is set once Ctrl-C or SIGTERM says that it is to end."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        on(number, stop.set)
    return stop


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do something unless it is to end before that is done, and say whether it was."""
    doing, ending = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((doing, ending), return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if doing.done():
        await doing
        return True
    doing.cancel()
    await asyncio.wait((doing,))
    return False


async def until(stop: asyncio.Event, manager: Manager, tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Let tasks run until it is to end or one of them ends, give work in progress a while, and raise what failed."""
    ending = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait((*tasks, ending), return_when=asyncio.FIRST_COMPLETED)
    await manager.finish(_LAST_WORDS)
    for task in (*tasks, ending):
        task.cancel()
    await asyncio.gather(*tasks, ending, return_exceptions=True)
    for task in done:
        await task
