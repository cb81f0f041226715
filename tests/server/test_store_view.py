"""One cluster's part of a shared log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.errors import AlreadyExists, Conflict, Gone, NotFound, StoreError
from lamina.server.storage.cluster_store import ClusterStore
from lamina.server.storage.log_store import LogStore
from lamina.server.storage.store import Expect
from tests.server.stores import STORES, as_watch, collect, key, names, obj, opened, put


@pytest.fixture(params=STORES)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LogStore]:
    async with opened(str(request.param), tmp_path / "data") as store:
        yield store


async def test_what_one_cluster_holds_is_out_of_sight_for_the_others(log: LogStore) -> None:
    east, west = ClusterStore(log, "east"), ClusterStore(log, "west")
    await put(log, "first")
    row = await east.append(key("a"), obj("a", colour="red"))

    assert east.get(key("a")) is row is east.newest(key("a"))
    assert west.get(key("a")) is west.newest(key("a")) is log.get(key("a")) is None
    assert names(east.list("configmaps").rows) == ["default/a"]
    assert names(log.list("configmaps").rows) == ["default/first"]
    assert not west.list("configmaps").rows
    assert (east.count("configmaps"), west.count("configmaps"), log.count("configmaps")) == (1, 0, 1)
    assert (east.buckets(), west.buckets(), log.buckets()) == (["configmaps"], [], ["configmaps"])


async def test_versions_are_those_of_the_log(log: LogStore) -> None:
    east, west = ClusterStore(log, "east"), ClusterStore(log, "west")

    versions = [(await store.append(key("a"), obj("a"))).version for store in (east, log, west)]

    assert versions == [2, 3, 4]
    assert east.version == west.version == log.version == 4
    assert await east.wait_for(4, 1.0)


async def test_a_writer_is_judged_by_its_own_cluster(log: LogStore) -> None:
    east, west = ClusterStore(log, "east"), ClusterStore(log, "west")
    row = await east.append(key("a"), obj("a"), expect=Expect.ABSENT)

    await west.append(key("a"), obj("a"), expect=Expect.ABSENT)
    with pytest.raises(AlreadyExists):
        await east.append(key("a"), obj("a"), expect=Expect.ABSENT)
    with pytest.raises(Conflict):
        await west.append(key("a"), obj("a"), expect=row.version)
    with pytest.raises(NotFound):
        await log.append(key("a"), obj("a"), deleted=True)


async def test_followers_hear_of_their_own_cluster(log: LogStore) -> None:
    east, west = ClusterStore(log, "east"), ClusterStore(log, "west")
    follower = east.watch(1, "configmaps")
    await west.append(key("other"), obj("other"))
    await east.append(key("a"), obj("a"))
    await put(log, "first")
    await east.append(key("a"), obj("a"), deleted=True)

    assert as_watch(await collect(follower, 2)) == [("ADDED", "a"), ("DELETED", "a")]
    assert as_watch(east.since(1, "configmaps")) == [("ADDED", "a"), ("DELETED", "a")]
    assert names(east.list("configmaps", at=3).rows) == ["default/a"]


async def test_what_the_log_has_compacted_is_gone_for_every_cluster(log: LogStore) -> None:
    east = ClusterStore(log, "east")
    await east.append(key("a"), obj("a"))
    await put(log, "first")

    east.compact(log.version)
    assert log.compacted == 0
    log.compact(log.version)

    with pytest.raises(Gone):
        east.since(2, "configmaps")
    with pytest.raises(Gone):
        ClusterStore(log, "new").watch(2, "configmaps")


async def test_a_cluster_that_is_cleared_leaves_the_others_alone_and_nothing_behind(log: LogStore) -> None:
    east, west = ClusterStore(log, "east"), ClusterStore(log, "west")
    for number in range(450):
        await east.append(key(f"a{number}"), obj(f"a{number}"))
    await east.append(key("s", bucket="secrets"), obj("s"))
    await west.append(key("a1"), obj("a1"))
    await put(log, "a1")

    await east.close()
    with pytest.raises(StoreError, match="was deleted"):
        await east.append(key("late"), obj("late"))
    await east.clear()

    assert east.buckets() == []
    assert (west.count("configmaps"), log.count("configmaps")) == (1, 1)
    log.compact(log.version)
    assert not [name for name in log._buckets if name.startswith("east/")]


async def test_a_copy_is_not_made_of_one_cluster(log: LogStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="all clusters"):
        await ClusterStore(log, "east").backup(tmp_path / "copy")
