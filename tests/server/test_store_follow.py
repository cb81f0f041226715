"""Watching the log: every change once, in order, and independent of slow readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.errors import Gone
from lamina.server.storage.bucket_history import Window
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.watch_cursor import BATCH
from tests.server.stores import STORES, as_watch, collect, drop, opened, put


@pytest.fixture(params=STORES)
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(which: str, tmp_path: Path) -> AsyncIterator[LogStore]:
    async with opened(which, tmp_path / "data") as store:
        yield store


async def test_a_follower_sees_every_change_once_and_in_order(store: LogStore) -> None:
    await put(store, "a")
    follower = store.watch(1, "configmaps")
    assert as_watch(await anext(follower)) == [("ADDED", "a")]

    reading = asyncio.ensure_future(collect(follower, 3))
    await put(store, "a", x="2")
    await put(store, "elsewhere", bucket="secrets")
    await put(store, "b")
    await drop(store, "a")

    assert as_watch(await reading) == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]


async def test_changes_that_come_together_are_handed_out_together(store: LogStore) -> None:
    follower = store.watch(1, "configmaps")
    reading = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)

    await asyncio.gather(*(put(store, f"n{n}") for n in range(20)))

    assert len(await reading) == 20


async def test_a_change_is_seen_only_once_it_can_be_read(store: LogStore) -> None:
    follower = store.watch(1, "configmaps")
    writing = [asyncio.ensure_future(put(store, f"n{n}")) for n in range(10)]

    for row, _ in await collect(follower, 10):
        assert store.get(row.key) is row
        assert store.version >= row.version
    await asyncio.gather(*writing)


async def test_a_follower_of_one_namespace_hears_nothing_of_the_others(store: LogStore) -> None:
    follower = store.watch(1, "configmaps", "mine")
    await put(store, "a", "theirs")
    await put(store, "b", "mine")
    assert as_watch(await anext(follower)) == [("ADDED", "b")]

    reading = asyncio.ensure_future(anext(follower))
    await put(store, "c", "theirs")
    await put(store, "d", "theirs")
    assert not reading.done()
    await put(store, "e", "mine")

    assert as_watch(await reading) == [("ADDED", "e")]


async def test_a_follower_far_behind_is_caught_up_in_batches(store: LogStore) -> None:
    await asyncio.gather(*(put(store, f"n{n}") for n in range(BATCH + 10)))
    follower = store.watch(1, "configmaps")

    first = await anext(follower)
    assert follower.version == first[-1].row.version
    second = await anext(follower)

    assert (len(first), len(second)) == (BATCH, 10)
    assert [event.row.version for event in [*first, *second]] == list(range(2, BATCH + 12))
    assert follower.version == store.version


async def test_a_thousand_followers_each_see_everything(store: LogStore) -> None:
    reading = [asyncio.ensure_future(collect(store.watch(1, "configmaps"), 30)) for _ in range(1_000)]
    for _ in range(3):
        await asyncio.gather(*(put(store, f"n{n}") for n in range(10)))

    for events in await asyncio.gather(*reading):
        assert [event.row.version for event in events] == list(range(2, 32))


async def test_a_version_that_is_compacted_away_is_gone_at_once(store: LogStore) -> None:
    for x in "123":
        await put(store, "a", x=x)
    store.compact(3)

    with pytest.raises(Gone, match=r"too old resource version: 2 \(3\)"):
        store.watch(2, "configmaps")
    assert as_watch(await anext(store.watch(3, "configmaps"))) == [("MODIFIED", "a")]


async def test_a_follower_that_does_not_keep_up_is_told_so(store: LogStore) -> None:
    follower = store.watch(1, "configmaps")
    await put(store, "a")
    assert len(await anext(follower)) == 1

    await put(store, "b")
    await put(store, "c")
    store.compact(store.version)

    with pytest.raises(Gone):
        await anext(follower)


async def test_a_watch_that_does_not_keep_up_does_not_block_others(which: str, tmp_path: Path) -> None:
    async with opened(which, tmp_path, window=Window(events=8)) as store:
        slow, quick = store.watch(1, "configmaps"), store.watch(1, "configmaps")
        for n in range(20):
            await put(store, f"n{n}")
            assert len(await anext(quick)) == 1

        with pytest.raises(Gone):
            await anext(slow)


async def test_who_waits_has_read_everything_and_is_never_behind(which: str, tmp_path: Path) -> None:
    async with opened(which, tmp_path, window=Window(events=8)) as store:
        quiet = store.watch(1, "configmaps", "quiet")
        patient = store.watch(1, "configmaps", "quiet")
        waiting, giving_up = asyncio.ensure_future(anext(quiet)), asyncio.ensure_future(anext(patient))
        for n in range(20):
            await put(store, f"n{n}", "busy")
        store.compact(store.version)
        giving_up.cancel()
        await asyncio.wait([giving_up])
        assert patient.version == store.version

        await put(store, "at-last", "quiet")

        assert as_watch(await waiting) == as_watch(await anext(patient)) == [("ADDED", "at-last")]


async def test_a_version_that_is_yet_to_come_is_waited_for(store: LogStore) -> None:
    follower = store.watch(3, "configmaps")
    assert follower.version == 3
    reading = asyncio.ensure_future(anext(follower))

    for name in "abc":
        await put(store, name)

    assert as_watch(await reading) == [("ADDED", "c")]


async def test_waiting_can_be_given_up_and_taken_up_again(store: LogStore) -> None:
    follower = store.watch(1, "configmaps")
    reading = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])

    await put(store, "a")

    assert as_watch(await anext(follower)) == [("ADDED", "a")]


async def test_who_is_woken_and_gives_up_before_reading_loses_nothing(store: LogStore) -> None:
    """Cursors of all namespaces are woken first: one of them cancels the other in between."""
    quick, slow = store.watch(1, "configmaps"), store.watch(1, "configmaps", "default")
    reading = asyncio.ensure_future(anext(slow))

    async def interrupt() -> None:
        await anext(quick)
        reading.cancel()

    interrupting = asyncio.ensure_future(interrupt())
    await asyncio.sleep(0)
    await put(store, "a")
    await asyncio.wait([reading, interrupting])

    assert reading.cancelled()
    assert slow.version == 1
    assert as_watch(await anext(slow)) == [("ADDED", "a")]


async def test_nothing_within_the_timeout_is_an_empty_batch(store: LogStore) -> None:
    follower = store.watch(1, "configmaps")
    await put(store, "a", bucket="secrets")

    assert await follower.next(timeout=0.001) == ()
    assert follower.version == store.version

    await put(store, "b")
    assert as_watch(await follower.next(timeout=60) or ()) == [("ADDED", "b")]


async def test_a_bookmark_never_speaks_of_changes_that_were_not_handed_out(store: LogStore) -> None:
    follower, other = store.watch(1, "configmaps"), store.watch(1, "configmaps", "other")
    assert follower.version == 1
    await put(store, "a", bucket="secrets")
    assert follower.version == other.version == 2

    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    await put(store, "b")
    await put(store, "c")

    assert [event.row.version for event in await waiting] == [3]
    assert follower.version == 3
    assert other.version == 2
    assert await other.next(timeout=0.001) == ()
    assert other.version == 4


async def test_a_follower_ends_when_the_store_closes_and_misses_nothing(store: LogStore) -> None:
    waiting, behind, bounded = (store.watch(1, "configmaps") for _ in range(3))

    async def everything() -> list[tuple[str, str]]:
        return [said async for batch in waiting for said in as_watch(batch)]

    reading = asyncio.ensure_future(everything())
    await put(store, "a")
    last = asyncio.ensure_future(put(store, "b"))
    await asyncio.sleep(0)
    await store.close()

    assert await reading == [("ADDED", "a"), ("ADDED", "b")]
    assert [said async for batch in behind for said in as_watch(batch)] == [("ADDED", "a"), ("ADDED", "b")]
    assert len(await bounded.next(timeout=1) or ()) == 2
    assert await bounded.next(timeout=1) is None
    await last


async def test_one_follower_has_one_reader(store: LogStore) -> None:
    follower = store.watch(1, "configmaps")
    reading = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="one reader"):
        await anext(follower)

    await put(store, "a")
    assert len(await reading) == 1
