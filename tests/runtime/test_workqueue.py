"""One key at a time, later if need be."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from lamina.clock import ManualClock
from lamina.runtime.controller.workqueue import Workqueue


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(clock: ManualClock) -> Workqueue[str]:
    return Workqueue(clock, base_delay=timedelta(seconds=1), max_delay=timedelta(seconds=10))


async def taken(queue: Workqueue[str]) -> list[str]:
    """Take everything that is there to be taken, and give it back."""
    keys = []
    while not queue.is_idle:
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


async def test_keys_come_in_the_order_they_were_added_and_once(queue: Workqueue[str]) -> None:
    for key in ("a", "b", "a", "c", "b"):
        queue.add(key)

    assert await taken(queue) == ["a", "b", "c"]


async def test_a_worker_is_requested_once_for_each_key_that_no_worker_waits_for(
    queue: Workqueue[str],
) -> None:
    called: list[str] = []
    queue.needs_worker = lambda: called.append("come")
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)

    for key in ("a", "b", "a", "c"):
        queue.add(key)
    assert await waiting == "a"

    assert len(called) == 2
    queue.done("a")
    queue.shut_down()
    queue.add("d")
    assert len(called) == 2


async def test_a_key_in_progress_is_given_to_no_second_worker(queue: Workqueue[str]) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    assert not waiting.done()

    queue.done("a")

    assert await waiting == "a"


async def test_a_waiting_worker_gets_the_key_that_is_added(queue: Workqueue[str]) -> None:
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)

    queue.add("a")
    queue.add("b")

    assert [await first, await second] == ["a", "b"]


async def test_a_cancelled_wait_takes_no_key(queue: Workqueue[str]) -> None:
    gone, staying = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)

    queue.add("a")
    gone.cancel()

    assert await staying == "a"


async def test_later_means_later(queue: Workqueue[str], clock: ManualClock) -> None:
    queue.add_after("a", timedelta(seconds=5))
    assert queue.is_idle

    clock.wind(timedelta(seconds=4))
    assert queue.is_idle
    clock.wind(timedelta(seconds=1))

    assert await taken(queue) == ["a"]


async def test_the_sooner_of_two_wishes_counts(queue: Workqueue[str], clock: ManualClock) -> None:
    queue.add_after("a", timedelta(seconds=9))
    queue.add_after("a", timedelta(seconds=3))
    queue.add_after("a", timedelta(seconds=6))

    clock.wind(timedelta(seconds=3))
    assert await taken(queue) == ["a"]
    clock.wind(timedelta(seconds=60))

    assert queue.is_idle


async def test_a_delayed_key_that_is_processed_earlier_is_not_processed_again(
    queue: Workqueue[str], clock: ManualClock
) -> None:
    queue.add_after("a", timedelta(seconds=5))
    queue.add("a")
    assert await taken(queue) == ["a"]

    clock.wind(timedelta(minutes=1))

    assert queue.is_idle


async def test_each_failure_waits_twice_as_long_up_to_a_limit(queue: Workqueue[str]) -> None:
    waits = [queue.retry("a") for _ in range(6)]

    assert [wait.total_seconds() for wait in waits] == [1, 2, 4, 8, 10, 10]
    queue.reset_backoff("a")
    assert queue.retry("a") == timedelta(seconds=1)


async def test_one_keys_failures_are_not_anothers(queue: Workqueue[str]) -> None:
    queue.retry("a")
    queue.retry("a")

    assert queue.retry("b") == timedelta(seconds=1)


async def test_how_many_fail_in_one_crowd_is_nothing_to_another(clock: ManualClock) -> None:
    queue: Workqueue[tuple[str, int]] = Workqueue(clock, group=lambda key: key[0])
    for number in range(1000):
        queue.retry(("silent", number), spread=True)

    assert queue.retry(("silent", 1000), spread=True) > timedelta(seconds=60)
    assert queue.retry(("well", 0), spread=True) < timedelta(seconds=1)


@given(lists(tuples(sampled_from("abc"), integers(0, 8)), max_size=12))
def test_no_wish_is_lost_and_none_is_granted_early(wishes: list[tuple[str, int]]) -> None:
    async def story() -> None:
        clock = ManualClock()
        queue: Workqueue[str] = Workqueue(clock)
        for key, seconds in wishes:
            queue.add_after(key, timedelta(seconds=seconds))
        granted: dict[str, int] = {}
        for second in range(9):
            for key in await taken(queue):
                granted.setdefault(key, second)
            clock.wind(timedelta(seconds=1))
        assert granted == {key: min(s for k, s in wishes if k == key) for key, _ in wishes}

    asyncio.run(story())


async def test_an_appointment_stands_although_the_key_is_worked_on_before(
    queue: Workqueue[str], clock: ManualClock
) -> None:
    queue.appoint("a", timedelta(seconds=100))
    clock.wind(timedelta(seconds=50))
    queue.add("a")
    assert await taken(queue) == ["a"]
    queue.appoint("a", timedelta(seconds=1000))

    clock.wind(timedelta(seconds=49))
    assert await taken(queue) == []
    clock.wind(timedelta(seconds=1))
    assert await taken(queue) == ["a"]


async def test_a_due_time_is_cleared_when_its_key_is_processed(
    queue: Workqueue[str], clock: ManualClock
) -> None:
    queue.add_after("a", timedelta(seconds=100))
    queue.add("a")
    assert await taken(queue) == ["a"]
    assert queue.due("a") is None

    clock.wind(timedelta(seconds=200))
    assert await taken(queue) == []


async def test_a_retry_may_start_later_and_end_sooner_than_usual(
    queue: Workqueue[str], clock: ManualClock
) -> None:
    pauses = [
        queue.retry("a", base_delay=timedelta(seconds=3), max_delay=timedelta(seconds=20)).total_seconds()
        for _ in range(5)
    ]

    assert pauses == [3, 6, 12, 20, 20]


def test_keys_that_fail_together_are_not_retried_together(queue: Workqueue[str]) -> None:
    delays = [queue.retry(str(number), spread=True) for number in range(200)]

    assert delays[:100] == [timedelta(seconds=1)] * 100
    assert delays[-1] == timedelta(seconds=10)
    assert delays == sorted(delays)
    assert queue.retry("nobody's fault") == timedelta(seconds=1)


async def test_queues_note_together_which_of_them_has_something_to_do(
    clock: ManualClock, queue: Workqueue[str]
) -> None:
    other: Workqueue[str] = Workqueue(clock)
    at_work = queue.active = other.active = set()
    rests: list[bool] = []
    queue.on_idle = other.on_idle = lambda: rests.append(True)
    queue.add("a")
    other.add("b")
    other.add("c")
    assert at_work == {queue, other}

    queue.done(await queue.get())
    other.done(await other.get())
    assert at_work == {other}

    key = await other.get()
    other.add("d")
    other.shut_down()
    assert at_work == {other}, "one is still being worked on"
    assert rests == []
    other.done(key)
    other.add("never taken")
    assert at_work == set()
    assert rests == [True]


async def test_a_closed_queue_is_idle_although_keys_wait_in_it(queue: Workqueue[str]) -> None:
    """A caller that waits for idle queues must not wait for keys that no worker takes."""
    queue.add("a")
    queue.add("b")
    key = await queue.get()
    queue.shut_down()
    assert not queue.is_idle

    queue.done(key)
    assert queue.is_idle
