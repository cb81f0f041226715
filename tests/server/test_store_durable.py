"""The durable log: persistence, refused files, and I/O errors."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lamina.errors import Gone, StoreError
from lamina.server.storage.sqlite import SqliteStore, restore
from lamina.testing.waiting import eventually_sync
from tests.server.stores import STORES, as_watch, collect, drop, key, names, opened, put
from tests.torture.kill import kill_under_load


def ask(path: Path, question: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        answer: int = connection.execute(question).fetchone()[0]
        return answer


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file of this process may grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# Persistence


async def test_everything_is_there_again_and_a_watch_goes_on_where_it_was(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        await put(store, "a", x="1")
        await put(store, "web", "", "nodes")
        await put(store, "a", x="2")
        seen = store.version
        await put(store, "b")
        await drop(store, "a")
        before = {at: [row.value for row in store.list("configmaps", at=at).rows] for at in range(1, 7)}
        changes = [
            (row.version, row.value, previous and previous.value)
            for row, previous in store.since(1, "configmaps")
        ]

    async with opened("sqlite", tmp_path) as store:
        assert store.version == 6
        assert {
            at: [row.value for row in store.list("configmaps", at=at).rows] for at in range(1, 7)
        } == before
        assert changes == [
            (row.version, row.value, previous and previous.value)
            for row, previous in store.since(1, "configmaps")
        ]
        follower = store.watch(seen, "configmaps")
        await put(store, "c")
        assert as_watch(await collect(follower, 3)) == [("ADDED", "b"), ("DELETED", "a"), ("ADDED", "c")]
        assert store.buckets() == ["configmaps", "nodes"]


async def test_no_version_is_used_again_even_if_the_newest_row_was_compacted_away(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        await put(store, "a")
        end = await drop(store, "a")
        store.compact(store.version)
        eventually_sync(lambda: ask(tmp_path / "log.db", "SELECT count(*) FROM log") == 0)

    async with opened("sqlite", tmp_path) as store:
        assert store.version == end.version
        assert (await put(store, "b")).version == end.version + 1


async def test_compaction_is_remembered_and_removes_what_cannot_be_read_any_more(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        for x in "123":
            await put(store, "a", x=x)
        await put(store, "b")
        await drop(store, "b")
        kept = store.version
        await put(store, "a", x="4")
        store.compact(kept)
        # The row before the next change of `a` stays too, because the event refers to it.
        eventually_sync(
            lambda: ask(tmp_path / "log.db", "SELECT count(*) FROM log"), lambda found: found == 2
        )

    async with opened("sqlite", tmp_path) as store:
        assert store.compacted == kept
        ((row, previous),) = store.since(kept, "configmaps")
        assert (row.version, previous and previous.version) == (7, 4)
        assert [row.version for row in store.list("configmaps", at=kept).rows] == [4]
        with pytest.raises(Gone):
            store.since(kept - 1, "configmaps")


async def test_compaction_that_was_cut_short_is_finished_at_the_next_start(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        for n in range(10):
            await put(store, "a", x=str(n))
        await put(store, "b")
        await drop(store, "b")
    execute(tmp_path / "log.db", "UPDATE compacted SET version = 13")

    async with opened("sqlite", tmp_path) as store:
        assert names(store.list("configmaps").rows) == ["default/a"]
        eventually_sync(
            lambda: ask(tmp_path / "log.db", "SELECT count(*) FROM log"), lambda found: found == 1
        )


async def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    pages = []
    async with opened("sqlite", tmp_path) as store:
        await put(store, "quiet")
        for _ in range(4):
            for _ in range(20):
                await asyncio.gather(*(put(store, f"n{n}", x="x" * 1_000) for n in range(50)))
            store.compact(store.version)
            eventually_sync(lambda: ask(path, "SELECT count(*) FROM log"), lambda found: found == 51)
            pages.append(ask(path, "PRAGMA page_count"))

        assert pages[3] < pages[0] * 1.5


async def test_a_file_that_is_mostly_empty_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with opened("sqlite", tmp_path) as store:
        await asyncio.gather(*(put(store, f"n{n}", x="x" * 10_000) for n in range(1_000)))
        assert ask(path, "PRAGMA page_count") > 2_500
        await asyncio.gather(*(drop(store, f"n{n}") for n in range(1_000)))
        store.compact(store.version)

        eventually_sync(lambda: ask(path, "PRAGMA page_count") < 1_100)


async def test_killed_under_load_it_has_every_write_it_acknowledged(tmp_path: Path) -> None:
    await kill_under_load(tmp_path, rounds=3)


# Refused files


async def test_a_folder_has_one_user_at_a_time(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path):
        with pytest.raises(StoreError, match=f"is in use by process {os.getpid()}") as refused:
            SqliteStore.open(tmp_path)
        assert "lamina down" in str(refused.value.hint)

    async with opened("sqlite", tmp_path) as store:
        assert store.version == 1


async def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    async with opened("sqlite", data) as store:
        await put(store, "a")

        assert {path.name for path in data.iterdir()} >= {"lock", "log.db", "log.db-wal"}
        assert {path.stat().st_mode & 0o777 for path in data.iterdir()} == {0o600}
        assert data.stat().st_mode & 0o777 == 0o700


async def test_what_is_left_of_a_start_that_was_cut_short_is_a_new_log(tmp_path: Path) -> None:
    (tmp_path / "log.db").touch()

    async with opened("sqlite", tmp_path) as store:
        assert store.version == 1


async def test_a_file_that_is_not_a_log_is_refused(tmp_path: Path) -> None:
    for name in ("text", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "text" / "log.db").write_text("Dear diary, " * 1_000)
    execute(tmp_path / "other" / "log.db", "CREATE TABLE cats (name TEXT)")

    for name in ("text", "other"):
        with pytest.raises(StoreError, match="is not a log of lamina") as refused:
            SqliteStore.open(tmp_path / name)
        assert refused.value.hint


async def test_a_log_of_a_later_version_is_refused(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path):
        pass
    execute(tmp_path / "log.db", "PRAGMA user_version = 2")

    with pytest.raises(StoreError, match="has format 2, and this version of lamina reads up to format 1"):
        SqliteStore.open(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE log SET value = x'00' WHERE version = 7",
        "UPDATE log SET value = 'text' WHERE version = 7",
        "DELETE FROM sqlite_sequence",
        "UPDATE sqlite_sequence SET seq = 5",
        "DELETE FROM compacted",
    ],
)
async def test_a_log_with_wrong_contents_is_refused(tmp_path: Path, damage: str) -> None:
    async with opened("sqlite", tmp_path) as store:
        for n in range(10):
            await put(store, f"n{n}")
    execute(tmp_path / "log.db", damage)

    with pytest.raises(StoreError, match="is damaged") as refused:
        SqliteStore.open(tmp_path)
    assert "restore" in str(refused.value.hint)


async def test_a_file_with_bad_pages_is_refused_and_so_is_a_copy_of_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with opened("sqlite", data) as store:
        await asyncio.gather(*(put(store, f"n{n}", x="x" * 1_000) for n in range(200)))
    whole = (data / "log.db").read_bytes()
    half = len(whole) // 2
    (data / "log.db").write_bytes(whole[:half] + b"\xff" * 16_384 + whole[half + 16_384 :])

    with pytest.raises(StoreError, match="is damaged"):
        SqliteStore.open(data)
    with pytest.raises(StoreError, match="is damaged"):
        restore(data / "log.db", tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock"]


async def test_a_copy_is_not_restored_over_a_log(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path / "data") as store:
        await put(store, "a")
        await store.backup(tmp_path / "copy.db")
        with pytest.raises(StoreError, match="is in use by"):
            restore(tmp_path / "copy.db", tmp_path / "data")

    with pytest.raises(StoreError, match="already contains a log"):
        restore(tmp_path / "copy.db", tmp_path / "data")
    with pytest.raises(StoreError, match="is not a file"):
        restore(tmp_path / "nothing.db", tmp_path / "new")
    async with opened("sqlite", tmp_path / "data") as store:
        assert store.count("configmaps") == 1


async def test_a_copy_is_not_written_over_the_log_itself(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        await put(store, "a")
        with pytest.raises(StoreError, match="is the log itself"):
            await store.backup(tmp_path / "log.db")
        await put(store, "b")

    async with opened("sqlite", tmp_path) as store:
        assert store.count("configmaps") == 2


# Copies


@pytest.mark.parametrize("which", STORES)
async def test_a_copy_made_while_others_write_is_of_one_moment(which: str, tmp_path: Path) -> None:
    """Every writer writes its pair in order, so a copy never has a second half without the first."""

    async def write_pairs(writer: int) -> None:
        for n in range(40):
            await put(store, f"{writer}-{n}-first", x="x" * 2_000)
            await put(store, f"{writer}-{n}-second")

    async with opened(which, tmp_path / "data") as store:
        writing = asyncio.gather(*(write_pairs(writer) for writer in range(8)))
        for n in range(4):
            await store.backup(tmp_path / f"{n}.db")
        await writing
        await store.backup(tmp_path / "last.db")

    counts = []
    for name in ("0", "1", "2", "3", "last"):
        restore(tmp_path / f"{name}.db", tmp_path / name)
        async with opened("sqlite", tmp_path / name) as copied:
            held = {row.key.name for row in copied.list("configmaps").rows}
            assert all(name.replace("second", "first") in held for name in held)
            counts.append(len(held))
    assert counts == sorted(counts)
    assert counts[-1] == 640


async def test_closing_waits_for_a_copy(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path / "data") as store:
        await put(store, "a")
        copying = asyncio.ensure_future(store.backup(tmp_path / "copy.db"))
        await asyncio.sleep(0)
        await store.close()
        await copying
        with pytest.raises(StoreError, match="closed"):
            await store.backup(tmp_path / "another.db")

    restore(tmp_path / "copy.db", tmp_path / "new")


# I/O errors


async def test_when_the_disk_refuses_writers_are_told_and_readers_go_on(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        safe = await put(store, "a", x="1")
        follower = store.watch(safe.version, "configmaps")

        with full_disk((tmp_path / "log.db-wal").stat().st_size + 8_192):
            refused = await asyncio.gather(
                *(put(store, f"n{n}", x="x" * 1_000) for n in range(100)), return_exceptions=True
            )
            assert {type(error) for error in refused} == {StoreError}
            assert "cannot be written" in str(refused[0])
            again = await asyncio.gather(put(store, "b", x="x" * 200_000), return_exceptions=True)
            assert isinstance(again[0], StoreError)

            assert store.version == safe.version
            assert store.get(key("a")) is store.newest(key("a")) is safe
            assert store.newest(key("n0")) is None
            assert store.count("configmaps") == 1

        row = await put(store, "a", x="2")

        assert row.version > safe.version + 100
        assert as_watch(await collect(follower, 1)) == [("MODIFIED", "a")]
        assert store.version == row.version

    async with opened("sqlite", tmp_path) as store:
        assert [(row.key.name, row.version) for row in store.list("configmaps").rows] == [("a", row.version)]


async def test_what_is_queued_behind_a_failed_commit_fails_with_it(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        first = await put(store, "a")
        with full_disk((tmp_path / "log.db-wal").stat().st_size + 16_384):
            in_flight = asyncio.ensure_future(put(store, "a", x="x" * 90_000))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            accepted = store.newest(key("a"))
            assert accepted is not None
            queued = asyncio.ensure_future(store.append(key("a"), {"metadata": {}}, expect=accepted.version))
            shown = asyncio.ensure_future(store.wait_committed(accepted))

            outcomes = await asyncio.gather(in_flight, queued, shown, return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [StoreError] * 3
        assert store.newest(key("a")) is first
        assert (
            await store.append(key("a"), {"metadata": {}}, expect=first.version)
        ).version > first.version + 2


async def test_rows_that_the_disk_kept_although_it_said_no_are_removed(tmp_path: Path) -> None:
    """After a failed sync the next connection may read the rows as committed, although their writers got an error."""
    async with opened("sqlite", tmp_path) as store:
        safe = await put(store, "a")
        with full_disk((tmp_path / "log.db-wal").stat().st_size):
            await asyncio.gather(
                *(put(store, f"n{n}", x="x" * 9_000) for n in range(5)), return_exceptions=True
            )
        execute(
            tmp_path / "log.db",
            f"INSERT INTO log VALUES ({safe.version + 2}, 'configmaps', 'default', 'ghost', 0, '{{}}')",
        )

        row = await put(store, "b")

        assert row.version > safe.version + 5
        assert ask(tmp_path / "log.db", "SELECT count(*) FROM log WHERE name = 'ghost'") == 0


async def test_compaction_that_the_disk_refuses_is_tried_again_with_the_next_one(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as store:
        for n in range(50):
            await put(store, "a", x=str(n) * 500)
        with full_disk(1):
            store.compact(store.version)
            assert store.compacted == store.version
            with pytest.raises(StoreError):
                await put(store, "b")

        await put(store, "b")
        store.compact(store.version)

        eventually_sync(
            lambda: ask(tmp_path / "log.db", "SELECT count(*) FROM log"), lambda found: found == 2
        )
