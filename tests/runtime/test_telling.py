"""Telling what happened, once there is time for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

import pytest

from lamina.clock import WallClock
from lamina.core.plan import Emit, Plan, Stage
from lamina.errors import Unreachable
from lamina.logs import log
from lamina.runtime import telling as module
from lamina.runtime.executor import Executor
from lamina.runtime.queue import Queue
from lamina.runtime.telling import Teller
from tests.runtime.test_executor import Notes, thing

PATIENCE = 10.0
MANY = 400
"""More than are told at once, and far fewer than may wait."""


class Others:
    """Whoever does things: at work, or not."""

    def __init__(self) -> None:
        self.busy = True

    def __call__(self) -> bool:
        return self.busy


@pytest.fixture
def others() -> Others:
    return Others()


@pytest.fixture
async def teller(others: Others) -> AsyncIterator[Teller]:
    teller = Teller(others, log)
    running = asyncio.create_task(teller.run())
    yield teller
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def say(teller: Teller, said: list[int], many: int, first: int = 0) -> None:
    async def one(number: int) -> None:
        said.append(number)

    for number in range(first, first + many):
        await teller.tell(lambda number=number: one(number))  # type: ignore[misc]  # mypy cannot infer a default


async def test_a_few_are_told_at_once_whoever_works(teller: Teller) -> None:
    said: list[int] = []

    await say(teller, said, 20)

    assert said == list(range(20))
    assert teller.is_idle


async def test_many_wait_until_nobody_works_and_keep_their_order(teller: Teller, others: Others) -> None:
    said: list[int] = []

    await say(teller, said, MANY)
    at_once = len(said)
    others.busy = False
    await teller.finished()

    assert at_once < MANY // 2
    assert said == list(range(MANY))


async def test_who_waits_is_told_in_the_end_however_long_others_work(teller: Teller) -> None:
    said: list[int] = []
    await say(teller, said, 102)

    await teller.finished()

    assert said == list(range(102))


async def test_what_comes_while_some_wait_waits_behind_them(teller: Teller, others: Others) -> None:
    said: list[int] = []
    await say(teller, said, MANY)
    told = len(said)

    await say(teller, said, 1, first=MANY)

    assert len(said) == told
    others.busy = False
    await teller.finished()
    assert said[-1] == MANY


async def test_one_that_cannot_be_told_keeps_nobody_from_being_heard(teller: Teller, others: Others) -> None:
    said: list[int] = []

    async def fails() -> None:
        raise Unreachable("nobody answers")

    await say(teller, said, MANY)
    await teller.tell(fails)
    await say(teller, said, 1, first=MANY)
    others.busy = False
    await teller.finished()

    assert said == list(range(MANY + 1))


async def test_a_plan_is_carried_out_before_its_events_are_told(teller: Teller, others: Others) -> None:
    notes = Notes()
    executor = Executor(notes, manager="me", teller=teller)
    events = tuple(Emit(event=thing(f"e{number}")) for number in range(MANY))

    outcome = await executor.run(Plan(stages=(Stage("tell", events),)))

    assert outcome.refused == ()
    assert len(notes.asked) < MANY // 2
    others.busy = False
    await teller.finished()
    assert {name for _, name, _ in notes.asked} == {f"e{number}" for number in range(MANY)}


async def test_what_waits_is_told_as_soon_as_everybody_rests(
    teller: Teller, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day that is wound has hundreds of rests, and a pause before each of them made it minutes."""
    monkeypatch.setattr(module, "_PAUSE", PATIENCE * 10)
    monkeypatch.setattr(module, "_A_WHILE", PATIENCE * 10)
    said: list[int] = []
    await say(teller, said, MANY)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(said) < MANY, "while somebody works they wait"

    others.busy = False
    teller.rested()

    async with asyncio.timeout(PATIENCE):
        await teller.finished()
    assert said == list(range(MANY))


async def test_who_leads_no_more_does_not_tell_what_waited(teller: Teller, others: Others) -> None:
    notes, leads = Notes(), [True]
    executor = Executor(notes, manager="me", teller=teller)
    events = tuple(Emit(event=thing(f"e{number}")) for number in range(MANY))

    await executor.run(Plan(stages=(Stage("tell", events),)), allowed=lambda: leads[0])
    told = len(notes.asked)
    leads[0], others.busy = False, False
    await teller.finished()

    assert len(notes.asked) == told


async def test_what_waits_is_told_at_the_end_although_there_was_more_to_do() -> None:
    """A process that ends takes no more keys, and those that are left are no reason to be silent."""
    queue: Queue[int] = Queue(WallClock())
    for key in range(3):
        queue.add(key)
    teller, said = Teller(lambda: not queue.is_idle, log), list[int]()
    running = asyncio.create_task(teller.run())
    await say(teller, said, MANY)

    queue.close()
    async with asyncio.timeout(PATIENCE):
        await teller.finished()

    assert said == list(range(MANY))
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_cluster_that_does_not_answer_holds_up_its_own_events_alone(
    teller: Teller, others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_IN_LANE", MANY)
    others.busy = False
    said, asked, answers = list[int](), list[int](), asyncio.Event()

    async def silent(number: int) -> None:
        asked.append(number)
        await answers.wait()

    async def last(everything: asyncio.Event) -> None:
        everything.set()

    everything = asyncio.Event()
    async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE):
        for number in range(2 * MANY):
            group.create_task(teller.tell(partial(silent, number), "silent"))
        await asyncio.sleep(0)
        await say(teller, said, MANY // 2)
        await teller.tell(partial(last, everything))
        await everything.wait()
        answers.set()
        await teller.finished()

    assert said == list(range(MANY // 2))
    assert MANY <= len(asked) < 2 * MANY
    assert asked[-1] == 2 * MANY - 1
