"""Waiting in tests: for a condition to hold, and for controllers to be idle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from time import monotonic, sleep
from typing import Any, Protocol, TypeVar, overload

T = TypeVar("T")

SECONDS = 120.0
"""How long a test waits by default."""
_INTERVAL = 0.02


@overload
async def eventually(
    read: Callable[[], Awaitable[T]],
    condition: Callable[[T], object] = ...,
    *,
    seconds: float = ...,
    interval: float = ...,
    describe: Callable[[T], object] = ...,
) -> T: ...
@overload
async def eventually(
    read: Callable[[], T],
    condition: Callable[[T], object] = ...,
    *,
    seconds: float = ...,
    interval: float = ...,
    describe: Callable[[T], object] = ...,
) -> T: ...
async def eventually(
    read: Callable[[], Any],
    condition: Callable[[Any], object] = bool,
    *,
    seconds: float = SECONDS,
    interval: float = _INTERVAL,
    describe: Callable[[Any], object] = repr,
) -> Any:
    """
    Return the first value of `read` that meets the condition, by default the first true one.

    Raises AssertionError with the last value, as `describe` shows it, after `seconds`. An error of `read` is not
    caught.
    """
    deadline = monotonic() + seconds
    while True:
        value = read()
        if isawaitable(value):
            value = await value
        if condition(value):
            return value
        if monotonic() > deadline:
            raise AssertionError(f"not met within {seconds:g}s; the last value is {describe(value)}")
        await asyncio.sleep(interval)


def eventually_sync(
    read: Callable[[], T],
    condition: Callable[[T], object] = bool,
    *,
    seconds: float = SECONDS,
    interval: float = _INTERVAL,
) -> T:
    """Return the first value of `read` that meets the condition, for tests without an event loop."""
    deadline = monotonic() + seconds
    while not condition(value := read()):
        if monotonic() > deadline:
            raise AssertionError(f"not met within {seconds:g}s; the last value is {value!r}")
        sleep(interval)
    return value


class Idling(Protocol):
    """Has a workqueue and workers: a manager."""

    @property
    def is_idle(self) -> bool: ...


async def idle(
    *managers: Idling,
    unchanged: Callable[[], object | Awaitable[object]] = lambda: None,
    rounds: int = 5,
    seconds: float = SECONDS,
    interval: float = _INTERVAL,
) -> None:
    """
    Wait until all managers are idle in consecutive rounds in which `unchanged` returns the same value.

    One idle moment is not enough: a watch event may be on its way.
    """
    quiet, last = 0, object()

    async def is_quiet() -> bool:
        nonlocal quiet, last
        value = unchanged()
        value = await value if isawaitable(value) else value
        quiet = quiet + 1 if all(one.is_idle for one in managers) and value == last else 0
        last = value
        return quiet >= rounds

    await eventually(is_quiet, seconds=seconds, interval=interval)
