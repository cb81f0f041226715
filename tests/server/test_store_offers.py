"""Offers: what comes while a follower waits is handed out without waking it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lamina.errors import Gone
from lamina.server.bucket import Window
from lamina.server.follower import BATCH
from lamina.server.log import Log
from lamina.server.store import Event
from tests.server.speaking import until
from tests.server.stores import STORES, drop, opened, put, told


@pytest.fixture(params=STORES)
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(which: str, tmp_path: Path) -> AsyncIterator[Log]:
    async with opened(which, tmp_path / "data") as store:
        yield store


@dataclass
class Taker:
    """Takes what it is offered, as long as it is willing."""

    willing: bool = True
    offered: int = 0
    batches: list[Sequence[Event]] = field(default_factory=list)

    def __call__(self, events: Sequence[Event]) -> bool:
        self.offered += 1
        if self.willing:
            self.batches.append(events)
        return self.willing

    @property
    def told(self) -> list[tuple[str, str]]:
        return [one for batch in self.batches for one in told(batch)]


async def test_what_is_taken_is_not_handed_out_again(store: Log) -> None:
    follower, taker = store.follow(1, "configmaps"), Taker()
    reading = asyncio.ensure_future(follower.next(None, taker))
    await asyncio.sleep(0)

    await put(store, "a")
    await until(lambda: len(taker.told) == 1)
    await put(store, "b")
    await drop(store, "a")
    await until(lambda: len(taker.told) == 3)
    assert not reading.done()
    taker.willing = False
    await put(store, "c")

    assert taker.told == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert told(await reading or ()) == [("ADDED", "c")]


async def test_what_is_not_taken_wakes_the_follower_with_all_of_it(store: Log) -> None:
    follower, taker = store.follow(1, "configmaps"), Taker(willing=False)
    reading = asyncio.ensure_future(follower.next(None, taker))
    await asyncio.sleep(0)

    await asyncio.gather(*(put(store, f"n{n}") for n in range(20)))

    assert [name for _, name in told(await reading or ())] == [f"n{n}" for n in range(20)]
    assert taker.offered == 1


async def test_an_offer_that_fails_is_one_that_was_not_taken(store: Log) -> None:
    def fails(events: Sequence[Event]) -> bool:
        raise RuntimeError("a mistake of ours")

    other = Taker()
    clumsy = asyncio.ensure_future(store.follow(1, "configmaps").next(None, fails))
    careful = asyncio.ensure_future(store.follow(1, "configmaps").next(None, other))
    await asyncio.sleep(0)
    await put(store, "a")

    assert told(await clumsy or ()) == [("ADDED", "a")]
    await until(lambda: other.told == [("ADDED", "a")])
    careful.cancel()


async def test_a_wait_ends_when_its_time_is_up_however_much_was_taken(store: Log) -> None:
    follower, taker = store.follow(1, "configmaps"), Taker()
    reading = asyncio.ensure_future(follower.next(0.05, taker))
    await asyncio.sleep(0)
    for number in range(5):
        await put(store, f"n{number}")

    # Each change once, whoever hands it out: what was not offered in time is there to be read.
    came = told(await reading or ())
    rest = told(await follower.next(0) or ())
    assert [name for _, name in taker.told + came + rest] == [f"n{number}" for number in range(5)]


async def test_only_changes_of_its_namespace_are_offered(store: Log) -> None:
    taker = Taker()
    reading = asyncio.ensure_future(store.follow(1, "configmaps", "mine").next(None, taker))
    await asyncio.sleep(0)

    await asyncio.gather(put(store, "a", "theirs"), put(store, "b", "mine"), put(store, "c", "theirs"))
    await put(store, "d", "theirs")
    await put(store, "e", "mine")
    await until(lambda: len(taker.told) == 2)

    assert taker.told == [("ADDED", "b"), ("ADDED", "e")]
    reading.cancel()


async def test_who_gives_up_before_it_is_its_turn_loses_nothing(store: Log) -> None:
    follower, taker = store.follow(1, "configmaps"), Taker()
    for number in range(50):
        reading = asyncio.ensure_future(follower.next(None, taker))
        await asyncio.sleep(0)
        writing = asyncio.ensure_future(put(store, f"n{number}"))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        reading.cancel()
        await writing
        await asyncio.gather(reading, return_exceptions=True)
        if not reading.cancelled():
            taker(reading.result() or ())

    rest = told(await follower.next(0) or ())
    assert [name for _, name in taker.told + rest] == [f"n{number}" for number in range(50)]


async def test_a_bookmark_speaks_of_what_was_taken_and_of_no_more(store: Log) -> None:
    follower, taker = store.follow(1, "configmaps"), Taker()
    reading = asyncio.ensure_future(follower.next(None, taker))
    await asyncio.sleep(0)
    first = await put(store, "a")
    assert follower.version < first.version or taker.told
    await until(lambda: bool(taker.told))
    assert follower.version == first.version
    elsewhere = await put(store, "b", bucket="secrets")
    assert follower.version == elsewhere.version

    taker.willing = False
    last = await put(store, "c")
    await reading
    assert follower.version == last.version


async def test_writers_hear_before_followers_and_are_not_held_up_by_many(store: Log) -> None:
    """However many follow, somebody else has a turn before all of them have been told."""
    takers = [Taker() for _ in range(500)]
    reading = [asyncio.ensure_future(store.follow(1, "configmaps").next(None, one)) for one in takers]
    await asyncio.sleep(0)

    await put(store, "a")
    told_by_then = sum(bool(one.told) for one in takers)
    await until(lambda: all(one.told for one in takers))

    assert told_by_then < 100
    for one in reading:
        one.cancel()


async def test_changes_that_come_while_others_are_told_stay_in_order(store: Log) -> None:
    takers = [Taker() for _ in range(200)]
    reading = [asyncio.ensure_future(store.follow(1, "configmaps").next(None, one)) for one in takers]
    await asyncio.sleep(0)
    for number in range(20):
        await put(store, f"n{number}")

    expected = [("ADDED", f"n{number}") for number in range(20)]
    await until(lambda: all(len(one.told) == 20 for one in takers))
    assert all(one.told == expected for one in takers)
    for waiting in reading:
        waiting.cancel()


async def test_a_crowd_is_told_in_one_piece_of_what_comes_shortly_after_another(store: Log) -> None:
    """Telling many costs more than writing: each of them hears the same, in fewer pieces."""
    takers = [Taker() for _ in range(200)]
    reading = [asyncio.ensure_future(store.follow(1, "configmaps").next(None, one)) for one in takers]
    await asyncio.sleep(0)
    await put(store, "first")
    await until(lambda: all(one.told for one in takers))
    for number in range(50):
        await put(store, f"n{number}")

    await until(lambda: all(len(one.told) == 51 for one in takers))
    assert all(len(one.batches) < 51 for one in takers)
    for waiting in reading:
        waiting.cancel()


async def test_more_than_a_batch_is_partly_taken_and_partly_read(store: Log) -> None:
    follower, taker = store.follow(1, "configmaps"), Taker()
    reading = asyncio.ensure_future(follower.next(None, taker))
    await asyncio.sleep(0)
    await asyncio.gather(*(put(store, f"n{n}") for n in range(BATCH + 10)))

    rest = told(await reading or ())
    assert [name for _, name in taker.told + rest] == [f"n{n}" for n in range(BATCH + 10)]


async def test_who_is_told_too_late_is_told_so(which: str, tmp_path: Path) -> None:
    async with opened(which, tmp_path / "data", window=Window(events=4)) as store:
        follower, taker = store.follow(1, "configmaps"), Taker()
        reading = asyncio.ensure_future(follower.next(None, taker))
        await asyncio.sleep(0)
        await asyncio.gather(*(put(store, f"n{n}") for n in range(20)))
        with pytest.raises(Gone):
            await reading
        assert not taker.told


async def test_a_wait_ends_with_the_store_and_misses_nothing(store: Log) -> None:
    follower, taker = store.follow(1, "configmaps"), Taker()
    idle = asyncio.ensure_future(store.follow(1, "secrets").next(None, Taker()))
    reading = asyncio.ensure_future(follower.next(None, taker))
    await asyncio.sleep(0)
    writing = asyncio.ensure_future(put(store, "a"))
    await asyncio.sleep(0)
    await store.close()
    await writing

    rest = await reading
    if rest is not None:
        assert await follower.next() is None
    assert taker.told + told(rest or ()) == [("ADDED", "a")]
    assert await idle is None
