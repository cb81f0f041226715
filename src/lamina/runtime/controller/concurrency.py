"""Runs jobs concurrently, up to a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lamina.errors import LaminaError

Job = TypeVar("Job")
Result = TypeVar("Result")


async def run_concurrently(
    jobs: Sequence[Job], do: Callable[[Job], Awaitable[Result]], *, at_once: int
) -> list[Result | LaminaError]:
    """
    Run all jobs, `at_once` of them at a time, and return the result of each, in order.

    A LaminaError is a result and stops no other job; any other error cancels all of them.
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
            # A server in the same process may answer without a suspension; other tasks run here.
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(jobs))):
            group.create_task(work())
    return [results[number] for number in range(len(jobs))]
