"""Sending events in the background, while workers are idle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from lamina.clock import WallClock
from lamina.core.model.plan import Emit, Plan, Stage
from lamina.errors import Unreachable
from lamina.logs import log
from lamina.runtime.controller.event_broadcaster import EventBroadcaster
from lamina.runtime.controller.executor import Executor
from lamina.runtime.controller.workqueue import Workqueue
from tests.runtime.test_executor import Notes, thing

TIMEOUT = 10.0
MANY = 400
"""More than are sent at once, and far fewer than may wait."""


class Others:
    """The workers: busy, or not."""

    def __init__(self) -> None:
        self.busy = True

    def __call__(self) -> bool:
        return self.busy


@pytest.fixture
def others() -> Others:
    return Others()


@asynccontextmanager
async def running(broadcaster: EventBroadcaster) -> AsyncIterator[EventBroadcaster]:
    task = asyncio.create_task(broadcaster.run())
    try:
        yield broadcaster
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def broadcaster(others: Others) -> AsyncIterator[EventBroadcaster]:
    async with running(EventBroadcaster(others, log)) as broadcaster:
        yield broadcaster


async def say(broadcaster: EventBroadcaster, said: list[int], many: int, first: int = 0) -> None:
    async def one(number: int) -> None:
        said.append(number)

    for number in range(first, first + many):
        await broadcaster.send(lambda number=number: one(number))  # type: ignore[misc]  # mypy cannot infer a default


async def test_a_few_events_are_sent_at_once_while_workers_are_busy(broadcaster: EventBroadcaster) -> None:
    said: list[int] = []

    await say(broadcaster, said, 20)

    assert said == list(range(20))
    assert broadcaster.is_idle


async def test_many_events_wait_until_workers_are_idle_and_keep_their_order(
    broadcaster: EventBroadcaster, others: Others
) -> None:
    said: list[int] = []

    await say(broadcaster, said, MANY)
    at_once = len(said)
    others.busy = False
    await broadcaster.flush()

    assert at_once < MANY // 2
    assert said == list(range(MANY))


async def test_a_flush_sends_waiting_events_while_workers_are_busy(broadcaster: EventBroadcaster) -> None:
    said: list[int] = []
    await say(broadcaster, said, 102)

    await broadcaster.flush()

    assert said == list(range(102))


async def test_what_comes_while_some_wait_waits_behind_them(
    broadcaster: EventBroadcaster, others: Others
) -> None:
    said: list[int] = []
    await say(broadcaster, said, MANY)
    told = len(said)

    await say(broadcaster, said, 1, first=MANY)

    assert len(said) == told
    others.busy = False
    await broadcaster.flush()
    assert said[-1] == MANY


async def test_an_event_that_cannot_be_sent_does_not_block_the_next(
    broadcaster: EventBroadcaster, others: Others
) -> None:
    said: list[int] = []

    async def fails() -> None:
        raise Unreachable("no answer")

    await say(broadcaster, said, MANY)
    await broadcaster.send(fails)
    await say(broadcaster, said, 1, first=MANY)
    others.busy = False
    await broadcaster.flush()

    assert said == list(range(MANY + 1))


async def test_a_plan_is_carried_out_before_its_events_are_sent(
    broadcaster: EventBroadcaster, others: Others
) -> None:
    notes = Notes()
    executor = Executor(notes, manager="me", broadcaster=broadcaster)
    events = tuple(Emit(event=thing(f"e{number}")) for number in range(MANY))

    outcome = await executor.run(Plan(stages=(Stage("tell", events),)))

    assert outcome.refused == ()
    assert len(notes.asked) < MANY // 2
    others.busy = False
    await broadcaster.flush()
    assert {name for _, name, _ in notes.asked} == {f"e{number}" for number in range(MANY)}


async def test_waiting_events_are_sent_as_soon_as_workers_are_idle(others: Others) -> None:
    """A day that is wound has hundreds of rests, and a pause before each of them made it minutes."""
    said: list[int] = []
    slow = EventBroadcaster(others, log, pause=TIMEOUT * 10, refill_after=TIMEOUT * 10)
    async with running(slow) as broadcaster:
        await say(broadcaster, said, MANY)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(said) < MANY, "they wait while workers are busy"

        others.busy = False
        broadcaster.notify_idle()

        async with asyncio.timeout(TIMEOUT):
            await broadcaster.flush()
    assert said == list(range(MANY))


async def test_waiting_events_are_dropped_after_leadership_is_lost(
    broadcaster: EventBroadcaster, others: Others
) -> None:
    notes, leads = Notes(), [True]
    executor = Executor(notes, manager="me", broadcaster=broadcaster)
    events = tuple(Emit(event=thing(f"e{number}")) for number in range(MANY))

    await executor.run(Plan(stages=(Stage("tell", events),)), allowed=lambda: leads[0])
    told = len(notes.asked)
    leads[0], others.busy = False, False
    await broadcaster.flush()

    assert len(notes.asked) == told


async def test_waiting_events_are_sent_at_shutdown_although_keys_are_left() -> None:
    """A process that shuts down takes no more keys, so the keys that are left must not hold back events."""
    queue: Workqueue[int] = Workqueue(WallClock())
    for key in range(3):
        queue.add(key)
    said: list[int] = []
    async with running(EventBroadcaster(lambda: not queue.is_idle, log)) as broadcaster:
        await say(broadcaster, said, MANY)

        queue.shut_down()
        async with asyncio.timeout(TIMEOUT):
            await broadcaster.flush()

    assert said == list(range(MANY))


async def test_a_cluster_that_does_not_answer_holds_up_its_own_events_alone(others: Others) -> None:
    others.busy = False
    said, asked, answers = list[int](), list[int](), asyncio.Event()

    async def silent(number: int) -> None:
        asked.append(number)
        await answers.wait()

    async def last(everything: asyncio.Event) -> None:
        everything.set()

    everything = asyncio.Event()
    async with (
        running(EventBroadcaster(others, log, max_per_cluster=MANY)) as broadcaster,
        asyncio.TaskGroup() as group,
        asyncio.timeout(TIMEOUT),
    ):
        for number in range(2 * MANY):
            group.create_task(broadcaster.send(partial(silent, number), "silent"))
        await asyncio.sleep(0)
        await say(broadcaster, said, MANY // 2)
        await broadcaster.send(partial(last, everything))
        await everything.wait()
        answers.set()
        await broadcaster.flush()

    assert said == list(range(MANY // 2))
    assert MANY <= len(asked) < 2 * MANY
    assert asked[-1] == 2 * MANY - 1
