"""Runs a command in the foreground until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamina.runtime.controller.manager import Manager

_GRACE_SECONDS = 10.0
"""How long reconciles in progress may take after a stop signal."""


def handle_signal(number: signal.Signals, handler: Callable[[], None]) -> None:
    """Call a function at each signal of a kind."""
    asyncio.get_running_loop().add_signal_handler(number, handler)


def stop_event() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        handle_signal(number, stop.set)
    return stop


def announce_stop(reconciles: int) -> None:
    """Say that the process stops, and what it waits for."""
    from lamina.logs import log

    waits_for = ""
    if reconciles:
        many = "1 reconcile" if reconciles == 1 else f"{reconciles} reconciles"
        waits_for = f", waiting up to {_GRACE_SECONDS:.0f}s for {many} in progress"
    log.announce(f"lamina stops{waits_for}", "stopping", reconciles=reconciles)


async def run_unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Run a coroutine, cancel it when `stop` is set first, and say whether it completed."""
    task, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if task.done():
        await task
        return True
    task.cancel()
    await asyncio.wait((task,))
    return False


async def run_until(stop: asyncio.Event, manager: Manager, tasks: Sequence[asyncio.Task[Any]]) -> None:
    """
    Run tasks until `stop` is set or one of them ends; let reconciles in progress finish, then raise a failure.

    What is waited for is announced.
    """
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait((*tasks, stopping), return_when=asyncio.FIRST_COMPLETED)
    announce_stop(manager.in_progress)
    await manager.finish(_GRACE_SECONDS)
    for task in (*tasks, stopping):
        task.cancel()
    await asyncio.gather(*tasks, stopping, return_exceptions=True)
    for task in done:
        await task
