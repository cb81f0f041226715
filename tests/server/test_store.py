"""The log: writes, reads, and reads of earlier versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from lamina.errors import AlreadyExists, Conflict, Gone, NotFound, StoreError, TooLarge
from lamina.server.storage.bucket_history import Window
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.sqlite import SqliteStore, restore
from lamina.server.storage.store import Expect
from tests.server.stores import STORES, as_watch, drop, key, names, obj, opened, put


@pytest.fixture(params=STORES)
def which(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(which: str, tmp_path: Path) -> AsyncIterator[LogStore]:
    async with opened(which, tmp_path / "data") as store:
        yield store


# Writing


async def test_an_empty_log_is_at_version_one_and_rows_come_after_it(store: LogStore) -> None:
    assert store.version == 1
    assert store.compacted == 0
    assert store.list("configmaps") == ((), 1, 0)

    row = await put(store, "first")

    assert row.version == store.version == 2


async def test_the_number_of_the_row_is_stamped_into_the_object(store: LogStore) -> None:
    written = obj("a", colour="red")

    row = await store.append(key("a"), written)

    assert written["metadata"]["resourceVersion"] == str(row.version)
    assert orjson.loads(row.value) == written


async def test_metadata_comes_first_and_the_kind_is_not_stored(store: LogStore) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"}, "metadata": {"name": "a"}}

    row = await store.append(key("a"), whole)

    assert row.value == b'{"metadata":{"name":"a","resourceVersion":"2"},"data":{"x":"1"}}'
    assert store.get(key("a")) is row


async def test_a_write_is_judged_by_what_it_expects(store: LogStore) -> None:
    first = await store.append(key("a"), obj("a"), expect=Expect.ABSENT)
    second = await store.append(key("a"), obj("a", x="2"), expect=first.version)

    with pytest.raises(AlreadyExists):
        await store.append(key("a"), obj("a"), expect=Expect.ABSENT)
    with pytest.raises(Conflict):
        await store.append(key("a"), obj("a"), expect=first.version)
    with pytest.raises(NotFound):
        await store.append(key("b"), obj("b"), expect=7)
    with pytest.raises(NotFound):
        await store.append(key("b"), obj("b"), deleted=True)

    assert store.version == second.version
    assert store.get(key("a")) is second
    assert store.get(key("b")) is None


async def test_of_two_writers_with_the_same_expectation_one_wins(store: LogStore) -> None:
    first = await put(store, "a")

    outcomes = await asyncio.gather(
        *(store.append(key("a"), obj("a", by=str(n)), expect=first.version) for n in range(8)),
        return_exceptions=True,
    )

    assert not isinstance(outcomes[0], BaseException)
    assert [type(outcome) for outcome in outcomes[1:]] == [Conflict] * 7


async def test_writers_build_on_accepted_rows_and_readers_get_committed_ones(
    store: LogStore,
) -> None:
    writing = asyncio.ensure_future(put(store, "a"))
    await asyncio.sleep(0)  # one turn: accepted, not committed

    accepted = store.newest(key("a"))
    assert accepted is not None
    assert store.get(key("a")) is None
    assert store.list("configmaps").rows == ()
    assert store.since(1, "configmaps") == ()

    await store.wait_committed(accepted)

    assert store.get(key("a")) is accepted
    assert await writing is accepted


async def test_a_commit_leaves_alone_what_was_accepted_after_it(store: LogStore) -> None:
    first = asyncio.ensure_future(put(store, "a", x="1"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.ensure_future(put(store, "a", x="2"))

    row = await first

    newest = store.newest(key("a"))
    assert newest is not None
    assert newest.version == row.version + 1
    assert await second is newest


async def test_a_deletion_is_a_row_of_its_own(store: LogStore) -> None:
    first = await put(store, "a")
    end = await store.append(key("a"), obj("a"), expect=first.version, deleted=True)

    assert end.deleted
    assert end.version == first.version + 1 == store.version
    assert store.get(key("a")) is None
    assert store.newest(key("a")) is None
    assert store.count("configmaps") == 0

    again = await store.append(key("a"), obj("a"), expect=Expect.ABSENT)
    assert store.get(key("a")) is again


async def test_a_name_can_be_deleted_and_made_again_in_one_batch(store: LogStore) -> None:
    await put(store, "a", x="1")

    await asyncio.gather(drop(store, "a"), put(store, "a", x="2"), drop(store, "a"), put(store, "a", x="3"))

    assert as_watch(store.since(2, "configmaps")) == [
        ("DELETED", "a"),
        ("ADDED", "a"),
        ("DELETED", "a"),
        ("ADDED", "a"),
    ]


async def test_an_object_beyond_the_size_of_a_row_is_refused_and_costs_no_version(
    which: str, tmp_path: Path
) -> None:
    async with opened(which, tmp_path, row_limit=100) as store:
        with pytest.raises(TooLarge):
            await put(store, "a", text="x" * 100)

        assert store.newest(key("a")) is None
        assert (await put(store, "a")).version == 2


async def test_a_name_that_is_no_text_fails_alone(store: LogStore) -> None:
    broken = store.append(key("\udc80"), {"metadata": {"name": "fine"}})

    outcomes = await asyncio.gather(put(store, "a"), broken, put(store, "b"), return_exceptions=True)

    assert [isinstance(outcome, UnicodeEncodeError) for outcome in outcomes] == [False, True, False]
    assert names(store.list("configmaps").rows) == ["default/a", "default/b"]


async def test_a_writer_that_gives_up_has_written_all_the_same(store: LogStore) -> None:
    writing = asyncio.ensure_future(put(store, "a"))
    await asyncio.sleep(0)
    writing.cancel()

    await put(store, "b")

    assert names(store.list("configmaps").rows) == ["default/a", "default/b"]


async def test_a_version_can_be_waited_for(store: LogStore) -> None:
    waiting = asyncio.ensure_future(store.wait_for(3, timeout=60))
    await put(store, "a")
    assert not waiting.done()
    await put(store, "b")

    assert await waiting
    assert await store.wait_for(2, timeout=0)
    assert not await store.wait_for(4, timeout=0.001)


async def test_closing_finishes_what_was_accepted_and_refuses_the_rest(store: LogStore) -> None:
    writing = [asyncio.ensure_future(put(store, f"a{n}")) for n in range(5)]
    waiting = asyncio.ensure_future(store.wait_for(99, timeout=60))
    await asyncio.sleep(0)

    await asyncio.gather(store.close(), store.close())

    assert [(await written).version for written in writing] == [2, 3, 4, 5, 6]
    assert not await waiting
    assert store.count("configmaps") == 5
    with pytest.raises(StoreError):
        await put(store, "b")


# Lists


async def test_rows_are_in_the_order_of_etcd(store: LogStore) -> None:
    for namespace, name in [("b", "x"), ("a", "z"), ("a-b", "y"), ("a", "b.c"), ("a", "b")]:
        await put(store, name, namespace)

    assert names(store.list("configmaps").rows) == ["a-b/y", "a/b", "a/b.c", "a/z", "b/x"]
    assert names(store.list("configmaps", "a").rows) == ["a/b", "a/b.c", "a/z"]
    assert names(store.list("configmaps", "a-b").rows) == ["a-b/y"]
    assert names(store.list("configmaps", "c").rows) == []


async def test_buckets_do_not_mix(store: LogStore) -> None:
    await put(store, "a", bucket="secrets")
    await put(store, "web", "", bucket="nodes")
    await put(store, "gone", bucket="pods")
    await drop(store, "gone", bucket="pods")

    assert store.buckets() == ["nodes", "secrets"]
    assert store.count("secrets") == 1
    assert store.count("pods") == store.count("unheard-of") == 0
    assert names(store.list("nodes", "").rows) == ["/web"]
    assert store.list("pods").version == store.version


async def test_a_list_comes_in_pages_that_say_how_much_is_left(store: LogStore) -> None:
    for n in range(7):
        await put(store, f"n{n}", "b")
    await put(store, "other", "c")

    first = store.list("configmaps", "b", limit=3)
    second = store.list("configmaps", "b", after=("b", "n2"), limit=3)
    last = store.list("configmaps", "b", after=("b", "n5"), limit=3)

    assert names(first.rows) == ["b/n0", "b/n1", "b/n2"]
    assert first.remaining == 4
    assert names(second.rows) == ["b/n3", "b/n4", "b/n5"]
    assert second.remaining == 1
    assert names(last.rows) == ["b/n6"]
    assert last.remaining == 0


async def test_the_place_to_go_on_need_not_exist_any_more(store: LogStore) -> None:
    for name in "abd":
        await put(store, name)

    assert names(store.list("configmaps", after=("default", "c")).rows) == ["default/d"]
    assert names(store.list("configmaps", "default", after=("zzz", "")).rows) == []
    assert names(store.list("configmaps", "default", after=("aaa", "z")).rows)[0] == "default/a"


async def test_all_pages_are_of_one_moment_whatever_is_written_meanwhile(store: LogStore) -> None:
    for n in range(10):
        await put(store, f"n{n}", x="old")
    then = store.version
    seen = []
    after = None

    for n in range(10):
        page = store.list("configmaps", at=then, after=after, limit=1)
        assert (page.version, page.remaining) == (then, 9 - n)
        seen += [(row.key.name, orjson.loads(row.value)["data"]["x"]) for row in page.rows]
        after = ("default", page.rows[-1].key.name)
        await put(store, f"n{9 - n}", x="new")
        await put(store, f"n{n}-and-a-half")
        await drop(store, f"n{n}")

    assert seen == [(f"n{n}", "old") for n in range(10)]


async def test_a_list_shows_how_it_was(store: LogStore) -> None:
    await put(store, "a")
    await put(store, "b")
    await drop(store, "a")
    await put(store, "a")
    await put(store, "c", "elsewhere")

    history = {at: names(store.list("configmaps", at=at).rows) for at in range(1, 7)}

    assert history == {
        1: [],
        2: ["default/a"],
        3: ["default/a", "default/b"],
        4: ["default/b"],
        5: ["default/a", "default/b"],
        6: ["default/a", "default/b", "elsewhere/c"],
    }
    assert names(store.list("configmaps", "default", at=6).rows) == ["default/a", "default/b"]


async def test_what_is_compacted_or_yet_to_come_cannot_be_listed(store: LogStore) -> None:
    for x in "123":
        await put(store, "a", x=x)
    store.list("configmaps", at=2)

    store.compact(3)

    assert [row.version for row in store.list("configmaps", at=3).rows] == [3]
    for bucket in ("configmaps", "unheard-of"):
        with pytest.raises(Gone):
            store.list(bucket, at=2)
        with pytest.raises(ValueError, match="in the future"):
            store.list(bucket, at=5)


# Changes


async def test_changes_say_what_they_replaced(store: LogStore) -> None:
    first = await put(store, "a", x="1")
    await put(store, "b", "elsewhere")
    second = await put(store, "a", x="2")
    end = await drop(store, "a")
    again = await put(store, "a")

    assert store.since(first.version - 1, "configmaps", "default") == [
        (first, None),
        (second, first),
        (end, second),
        (again, None),
    ]
    assert store.since(second.version, "configmaps") == [(end, second), (again, None)]
    assert store.since(store.version, "configmaps") == []


async def test_compaction_forgets_changes_and_keeps_what_exists(store: LogStore) -> None:
    await put(store, "a", x="1")
    await put(store, "b")
    await put(store, "a", x="2")
    await drop(store, "b")

    store.compact(4)

    assert store.compacted == 4
    assert as_watch(store.since(4, "configmaps")) == [("DELETED", "b")]
    assert store.since(4, "unheard-of") == ()
    for bucket in ("configmaps", "unheard-of"):
        with pytest.raises(Gone):
            store.since(3, bucket)
    assert names(store.list("configmaps").rows) == ["default/a"]

    store.compact(3)
    assert store.compacted == 4
    store.compact(99)
    assert store.compacted == store.version == 5


async def test_history_is_bounded_even_without_compaction(which: str, tmp_path: Path) -> None:
    async with opened(which, tmp_path, window=Window(events=8)) as store:
        await put(store, "quiet", bucket="secrets")
        for n in range(20):
            await put(store, "a", x=str(n))
            if store.version == 7:
                assert len(store.list("configmaps", at=5).rows) == 1

        assert store.compacted == 0
        assert 4 <= len(store.since(store.version - 4, "configmaps")) <= 8
        with pytest.raises(Gone):
            store.since(5, "configmaps")
        with pytest.raises(Gone):
            store.list("configmaps", at=5)
        assert len(store.since(1, "secrets")) == 1


async def test_history_is_bounded_in_bytes_too(which: str, tmp_path: Path) -> None:
    async with opened(which, tmp_path, window=Window(bytes=5_000)) as store:
        for _ in range(20):
            await put(store, "a", x="x" * 1_000)

        assert 1 <= len(store.since(store.version - 1, "configmaps")) <= 4
        with pytest.raises(Gone):
            store.since(store.version - 5, "configmaps")


# Copies


async def test_a_copy_can_be_restored_and_its_versions_lie_far_ahead(store: LogStore, tmp_path: Path) -> None:
    await put(store, "a", x="1")
    kept = await put(store, "a", x="2")
    await put(store, "b")
    await drop(store, "b")
    copy, data = tmp_path / "copy.db", tmp_path / "restored"

    await store.backup(copy)
    after_the_copy = await put(store, "a", x="3")
    await asyncio.to_thread(restore, copy, data)

    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "data") == ["copy.db", "restored"]
    restored = SqliteStore.open(data)
    try:
        assert [row.value for row in restored.list("configmaps").rows] == [kept.value]
        assert restored.version == restored.compacted > after_the_copy.version
        with pytest.raises(Gone):
            restored.watch(after_the_copy.version, "configmaps")
        assert (await put(restored, "a")).version > restored.compacted
    finally:
        await restored.close()


async def test_a_copy_replaces_an_older_copy(store: LogStore, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    await store.backup(copy)
    first = copy.read_bytes()
    await put(store, "a")
    await store.backup(copy)

    assert copy.read_bytes() != first


async def test_a_copy_that_cannot_be_written_is_refused_with_a_sentence(
    store: LogStore, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="No such file or directory"):
        await store.backup(tmp_path / "nowhere" / "copy.db")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="folder cannot be read or written"):
        await store.backup(tmp_path / "folder")

    assert [path.name for path in tmp_path.iterdir() if path.name != "data"] == ["folder"]
