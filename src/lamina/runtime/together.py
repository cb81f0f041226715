"""Doing several things at once, but not all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lamina.errors import LaminaError

Job = TypeVar("Job")
Result = TypeVar("Result")


async def side_by_side(
    jobs: Sequence[Job], do: Callable[[Job], Awaitable[Result]], *, at_once: int
) -> list[Result | LaminaError]:
    """
    Do all jobs, `at_once` of them at a time, and return what became of each, in order.

    An error of ours is a result, and holds up nobody. Anything else ends all of them.
    """

    async def attempt(job: Job) -> Result | LaminaError:
        try:
            return await do(job)
        except LaminaError as error:
            return error

    if len(jobs) == 1:
        return [await attempt(jobs[0])]
    results: dict[int, Result | LaminaError] = {}
    waiting = iter(enumerate(jobs))

    async def work() -> None:
        for number, job in waiting:
            results[number] = await attempt(job)
            # A server in the same process may never make us wait; others want a turn.
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(jobs))):
            group.create_task(work())
    return [results[number] for number in range(len(jobs))]
