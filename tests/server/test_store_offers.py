"""Delivery: events that arrive while a reader waits are delivered without waking its task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lamina.errors import Gone
from lamina.server.storage.bucket_history import Window
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.store import Event
from lamina.server.storage.watch_cursor import BATCH
from lamina.testing.waiting import eventually
from tests.server.stores import STORES, as_watch, drop, opened, put


@pytest.fixture(params=STORES)
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(which: str, tmp_path: Path) -> AsyncIterator[LogStore]:
    async with opened(which, tmp_path / "data") as store:
        yield store


@dataclass
class Receiver:
    """Accepts what is delivered, as long as it is willing."""

    willing: bool = True
    offered: int = 0
    batches: list[Sequence[Event]] = field(default_factory=list)

    def __call__(self, events: Sequence[Event]) -> bool:
        self.offered += 1
        if self.willing:
            self.batches.append(events)
        return self.willing

    @property
    def as_watch(self) -> list[tuple[str, str]]:
        return [one for batch in self.batches for one in as_watch(batch)]


async def test_what_is_taken_is_not_handed_out_again(store: LogStore) -> None:
    follower, receiver = store.watch(1, "configmaps"), Receiver()
    reading = asyncio.ensure_future(follower.next(None, receiver))
    await asyncio.sleep(0)

    await put(store, "a")
    await eventually(lambda: len(receiver.as_watch) == 1)
    await put(store, "b")
    await drop(store, "a")
    await eventually(lambda: len(receiver.as_watch) == 3)
    assert not reading.done()
    receiver.willing = False
    await put(store, "c")

    assert receiver.as_watch == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert as_watch(await reading or ()) == [("ADDED", "c")]


async def test_what_is_not_taken_wakes_the_follower_with_all_of_it(store: LogStore) -> None:
    follower, receiver = store.watch(1, "configmaps"), Receiver(willing=False)
    reading = asyncio.ensure_future(follower.next(None, receiver))
    await asyncio.sleep(0)

    await asyncio.gather(*(put(store, f"n{n}") for n in range(20)))

    assert [name for _, name in as_watch(await reading or ())] == [f"n{n}" for n in range(20)]
    assert receiver.offered == 1


async def test_an_offer_that_fails_is_one_that_was_not_taken(store: LogStore) -> None:
    def fails(events: Sequence[Event]) -> bool:
        raise RuntimeError("a mistake of ours")

    other = Receiver()
    clumsy = asyncio.ensure_future(store.watch(1, "configmaps").next(None, fails))
    careful = asyncio.ensure_future(store.watch(1, "configmaps").next(None, other))
    await asyncio.sleep(0)
    await put(store, "a")

    assert as_watch(await clumsy or ()) == [("ADDED", "a")]
    await eventually(lambda: other.as_watch == [("ADDED", "a")])
    careful.cancel()


async def test_a_wait_ends_when_its_time_is_up_however_much_was_taken(store: LogStore) -> None:
    follower, receiver = store.watch(1, "configmaps"), Receiver()
    reading = asyncio.ensure_future(follower.next(0.05, receiver))
    await asyncio.sleep(0)
    for number in range(5):
        await put(store, f"n{number}")

    # Each change once, either delivered or read.
    came = as_watch(await reading or ())
    rest = as_watch(await follower.next(0) or ())
    assert [name for _, name in receiver.as_watch + came + rest] == [f"n{number}" for number in range(5)]


async def test_only_changes_of_its_namespace_are_offered(store: LogStore) -> None:
    receiver = Receiver()
    reading = asyncio.ensure_future(store.watch(1, "configmaps", "mine").next(None, receiver))
    await asyncio.sleep(0)

    await asyncio.gather(put(store, "a", "theirs"), put(store, "b", "mine"), put(store, "c", "theirs"))
    await put(store, "d", "theirs")
    await put(store, "e", "mine")
    await eventually(lambda: len(receiver.as_watch) == 2)

    assert receiver.as_watch == [("ADDED", "b"), ("ADDED", "e")]
    reading.cancel()


async def test_who_gives_up_before_it_is_its_turn_loses_nothing(store: LogStore) -> None:
    follower, receiver = store.watch(1, "configmaps"), Receiver()
    for number in range(50):
        reading = asyncio.ensure_future(follower.next(None, receiver))
        await asyncio.sleep(0)
        writing = asyncio.ensure_future(put(store, f"n{number}"))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        reading.cancel()
        await writing
        await asyncio.gather(reading, return_exceptions=True)
        if not reading.cancelled():
            receiver(reading.result() or ())

    rest = as_watch(await follower.next(0) or ())
    assert [name for _, name in receiver.as_watch + rest] == [f"n{number}" for number in range(50)]


async def test_a_bookmark_speaks_of_what_was_taken_and_of_no_more(store: LogStore) -> None:
    follower, receiver = store.watch(1, "configmaps"), Receiver()
    reading = asyncio.ensure_future(follower.next(None, receiver))
    await asyncio.sleep(0)
    first = await put(store, "a")
    assert follower.version < first.version or receiver.as_watch
    await eventually(lambda: bool(receiver.as_watch))
    assert follower.version == first.version
    elsewhere = await put(store, "b", bucket="secrets")
    assert follower.version == elsewhere.version

    receiver.willing = False
    last = await put(store, "c")
    await reading
    assert follower.version == last.version


async def test_writers_hear_before_followers_and_are_not_held_up_by_many(store: LogStore) -> None:
    """With many readers, other tasks run before all of them were served."""
    receivers = [Receiver() for _ in range(500)]
    reading = [asyncio.ensure_future(store.watch(1, "configmaps").next(None, one)) for one in receivers]
    await asyncio.sleep(0)

    await put(store, "a")
    told_by_then = sum(bool(one.as_watch) for one in receivers)
    await eventually(lambda: all(one.as_watch for one in receivers))

    assert told_by_then < 100
    for one in reading:
        one.cancel()


async def test_changes_that_come_while_others_are_told_stay_in_order(store: LogStore) -> None:
    receivers = [Receiver() for _ in range(200)]
    reading = [asyncio.ensure_future(store.watch(1, "configmaps").next(None, one)) for one in receivers]
    await asyncio.sleep(0)
    for number in range(20):
        await put(store, f"n{number}")

    expected = [("ADDED", f"n{number}") for number in range(20)]
    await eventually(lambda: all(len(one.as_watch) == 20 for one in receivers))
    assert all(one.as_watch == expected for one in receivers)
    for waiting in reading:
        waiting.cancel()


async def test_a_crowd_is_told_in_one_piece_of_what_comes_shortly_after_another(store: LogStore) -> None:
    """Delivering to many readers costs more than writing, so that each gets the same events in fewer batches."""
    receivers = [Receiver() for _ in range(200)]
    reading = [asyncio.ensure_future(store.watch(1, "configmaps").next(None, one)) for one in receivers]
    await asyncio.sleep(0)
    await put(store, "first")
    await eventually(lambda: all(one.as_watch for one in receivers))
    for number in range(50):
        await put(store, f"n{number}")

    await eventually(lambda: all(len(one.as_watch) == 51 for one in receivers))
    assert all(len(one.batches) < 51 for one in receivers)
    for waiting in reading:
        waiting.cancel()


async def test_more_than_a_batch_is_partly_taken_and_partly_read(store: LogStore) -> None:
    follower, receiver = store.watch(1, "configmaps"), Receiver()
    reading = asyncio.ensure_future(follower.next(None, receiver))
    await asyncio.sleep(0)
    await asyncio.gather(*(put(store, f"n{n}") for n in range(BATCH + 10)))

    rest = as_watch(await reading or ())
    assert [name for _, name in receiver.as_watch + rest] == [f"n{n}" for n in range(BATCH + 10)]


async def test_who_is_told_too_late_is_told_so(which: str, tmp_path: Path) -> None:
    async with opened(which, tmp_path / "data", window=Window(events=4)) as store:
        follower, receiver = store.watch(1, "configmaps"), Receiver()
        reading = asyncio.ensure_future(follower.next(None, receiver))
        await asyncio.sleep(0)
        await asyncio.gather(*(put(store, f"n{n}") for n in range(20)))
        with pytest.raises(Gone):
            await reading
        assert not receiver.as_watch


async def test_a_wait_ends_with_the_store_and_misses_nothing(store: LogStore) -> None:
    follower, receiver = store.watch(1, "configmaps"), Receiver()
    idle = asyncio.ensure_future(store.watch(1, "secrets").next(None, Receiver()))
    reading = asyncio.ensure_future(follower.next(None, receiver))
    await asyncio.sleep(0)
    writing = asyncio.ensure_future(put(store, "a"))
    await asyncio.sleep(0)
    await store.close()
    await writing

    rest = await reading
    if rest is not None:
        assert await follower.next() is None
    assert receiver.as_watch + as_watch(rest or ()) == [("ADDED", "a")]
    assert await idle is None
