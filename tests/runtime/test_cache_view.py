"""Seeing one's own writes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import structlog

from lamina.client.client import Client
from lamina.clock import ManualClock
from lamina.core.model.controller import Controller, Watch, no_keys, only
from lamina.core.model.effects import Result, Written
from lamina.core.model.plan import NOTHING
from lamina.core.model.world import identity_only
from lamina.errors import NotFound, UnknownCluster, Unreachable
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Ref
from lamina.runtime.cache.discovery import DiscoveryCache
from lamina.runtime.cache.indexer import DeletedUids
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.reflector import Reflector
from lamina.runtime.cache.watch_spec import WatchSpec
from lamina.runtime.cluster.cache_view import CacheView
from lamina.runtime.cluster.cluster import Cluster
from lamina.runtime.controller.executor import Executor
from lamina.runtime.controller.live_queries import LiveQueries
from lamina.runtime.controller.worker import Worker
from tests.runtime.scripted import Script, Stream, bookmark, config_map, groups

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
A = Ref("v1", "ConfigMap", "default", "a")
PATH = "/api/v1/namespaces/default/configmaps/a"


class Seeing:
    """A cache whose informer has seen `a` at version 5, and everything up to 9."""

    def __init__(self, script: Script, timeout: float) -> None:
        self.script, self.stream = script, Stream()
        client = Client(script)
        what = WatchSpec(CONFIG_MAP, identity_only, metadata_only=True, named="")
        self.informer = Informer(what, lambda change: None)
        self.reflector = Reflector(client, what, structlog.get_logger(), on_split=lambda others: None)
        self.reflector.attach(self.informer)
        self.cache = CacheView(client, DeletedUids(), timeout=timeout)
        self.cache.set_informers(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: self.informer})

    @property
    def version(self) -> str | None:
        found = self.cache.world.get(A)
        return meta.resource_version(found) if found is not None else None


async def _seeing(timeout: float) -> AsyncIterator[Seeing]:
    script = Script()
    script.reply("GET", "/api", groups(("v1", "ConfigMap", "configmaps")))
    script.reply("GET", "/apis", groups(group="none.example.com"))
    seeing = Seeing(script, timeout)
    script.reply("GET", "/api/v1/configmaps", seeing.stream)
    seeing.stream.send("ADDED", config_map("a", 5))
    seeing.stream.send("BOOKMARK", bookmark(9, end=True))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(seeing.reflector.run())
        await seeing.cache.wait_synced()
        yield seeing
        task.cancel()


@pytest.fixture
async def long_timeout() -> AsyncIterator[Seeing]:
    async for seeing in _seeing(timeout=60.0):
        yield seeing


@pytest.fixture
async def no_timeout() -> AsyncIterator[Seeing]:
    async for seeing in _seeing(timeout=0.0):
        yield seeing


async def test_what_was_written_is_waited_for(long_timeout: Seeing) -> None:
    waiting = asyncio.ensure_future(long_timeout.cache.wait_written([Written(A, "uid-a", 12)]))
    long_timeout.stream.send("MODIFIED", config_map("a", 11))
    await long_timeout.informer.wait_until(lambda: long_timeout.informer.version == 11)
    assert not waiting.done()

    long_timeout.stream.send("MODIFIED", config_map("a", 12))
    await waiting

    assert long_timeout.version == "12"


@pytest.mark.parametrize("event", ["DELETED", "MODIFIED"])
async def test_an_end_is_seen_when_the_object_is_gone_or_on_its_way(long_timeout: Seeing, event: str) -> None:
    waiting = asyncio.ensure_future(long_timeout.cache.wait_written([Written(A, "uid-a", None)]))
    await asyncio.sleep(0)
    assert not waiting.done()

    long_timeout.stream.send(event, config_map("a", 12, deletionTimestamp="2026-01-01T00:00:00Z"))

    await waiting


async def test_an_end_is_seen_when_another_object_has_the_name(long_timeout: Seeing) -> None:
    await long_timeout.cache.wait_written([Written(A, "uid-of-an-earlier-one", None)])

    assert long_timeout.version == "5"


async def test_a_kind_without_a_watch_is_not_waited_for(long_timeout: Seeing) -> None:
    await long_timeout.cache.wait_written([Written(Ref("v1", "Secret", "default", "s"), "u", 99)])

    assert long_timeout.version == "5"


def idle(seeing: Seeing) -> Worker[None]:
    """Return a worker that never has anything to do."""
    client = Client(seeing.script)
    return Worker(
        Controller(name="none", watches=(), gather=lambda world, ref: None, plan=lambda view, answers, now: NOTHING),
        cache=seeing.cache,
        queries=LiveQueries(client, None),
        executor=Executor(client, manager="none"),
        clock=ManualClock(),
        log=structlog.get_logger(),
    )  # fmt: skip


async def test_a_worker_forgets_what_it_wrote_only_once_that_can_be_seen(long_timeout: Seeing) -> None:
    worker = idle(long_timeout)

    for number in range(2000):
        worker._reconciler._remember(A._replace(name=f"unseen-{number}"), [Written(A, "uid-a", 20)])
    assert len(worker._reconciler._written) == 2000

    long_timeout.stream.send("MODIFIED", config_map("a", 20))
    await long_timeout.informer.wait_until(lambda: long_timeout.informer.version == 20)
    worker._reconciler._remember(A, [Written(A, "uid-a", 20)])
    assert len(worker._reconciler._written) == 1024


@pytest.mark.parametrize("why", ["it was written", "it was in the way"])
async def test_what_could_not_be_looked_for_is_looked_for_again(no_timeout: Seeing, why: str) -> None:
    worker = idle(no_timeout)
    if why == "it was written":
        worker._reconciler._remember(A, [Written(A, "uid-a", 20)])
    else:
        worker._reconciler._outdated[A] = [A]
    no_timeout.script.reply(
        "GET", PATH, Unreachable("no route"), Unreachable("no route"), config_map("a", 20)
    )

    for _ in range(2):
        assert await worker._attempt(A) is Result.ERROR
    assert await worker._attempt(A) is Result.SUCCESS

    assert no_timeout.version == "20"
    assert not worker._reconciler._written and not worker._reconciler._outdated


async def test_after_a_while_it_is_read_from_the_server(no_timeout: Seeing) -> None:
    no_timeout.script.reply("GET", PATH, config_map("a", 20))

    await no_timeout.cache.wait_written([Written(A, "uid-a", 20)])

    assert no_timeout.version == "20"


async def test_what_the_server_does_not_have_is_forgotten(no_timeout: Seeing) -> None:
    no_timeout.script.reply("GET", PATH, NotFound('configmaps "a" not found', details={"name": "a"}))

    await no_timeout.cache.wait_written([Written(A, "uid-a", None)])

    assert no_timeout.version is None


async def test_a_real_look_is_only_taken_at_what_is_watched(no_timeout: Seeing) -> None:
    await no_timeout.cache.refresh([Ref("v1", "Secret", "default", "s"), A._replace(name="")])

    assert not [asked for asked in no_timeout.script.asked if "secrets" in asked.path]


class Elsewhere:
    """The informer of another cluster, synced up to a version."""

    def __init__(self, seen: int) -> None:
        what = WatchSpec(CONFIG_MAP, identity_only, metadata_only=True, named="")
        self.informer = Informer(what, lambda change: None, "hub")
        self.informer.version = seen
        self.informer.synced.set()


async def test_versions_of_one_cluster_are_not_compared_with_those_of_another() -> None:
    async with asyncio.TaskGroup() as group:
        client, log = Client(Script()), structlog.get_logger()
        home, hub = Elsewhere(900), Elsewhere(3)
        cluster_on_hub = Cluster("hub", client, DiscoveryCache(client, log), group, log)
        cache = CacheView(
            client, DeletedUids(), (Watch(selects=only("", "ConfigMap"), enqueue=no_keys, cluster="hub"),)
        )
        cache.bind({"hub": cluster_on_hub})
        for cluster, seen in (("", home), ("hub", hub)):
            cache.set_informers(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: seen.informer}, cluster)

        here, there = Written(A, "uid-a", 5), Written(A._replace(cluster="hub"), "uid-a", 5)
        assert cache.contains([here])
        assert not cache.contains([here, there])

        waiting = asyncio.ensure_future(cache.wait_written([here, there]))
        await asyncio.sleep(0)
        assert not waiting.done()
        hub.informer.advance("5")
        await waiting


async def test_waiting_for_a_write_continues_on_the_informer_that_replaces_the_first() -> None:
    what = WatchSpec(CONFIG_MAP, identity_only, metadata_only=True, named="")
    first, second = (Informer(what, lambda change: None) for _ in range(2))
    cache = CacheView(Client(Script()), DeletedUids(), timeout=60)
    cache.set_informers(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: first})
    waiting = asyncio.ensure_future(cache.wait_written([Written(A, "uid-a", 5)]))
    await asyncio.sleep(0)

    first.stop()
    cache.set_informers(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: second})
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    second.stop()

    async with asyncio.timeout(30):
        await waiting


async def test_waiting_for_a_kind_ends_when_it_is_no_longer_watched() -> None:
    what = WatchSpec(CONFIG_MAP, identity_only, metadata_only=True, named="")
    informer = Informer(what, lambda change: None)
    cache = CacheView(Client(Script()), DeletedUids())
    cache.set_informers(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: informer})
    waiting = asyncio.ensure_future(cache.wait_synced())
    await asyncio.sleep(0)
    assert not waiting.done()

    informer.stop()
    cache.set_informers(Kinds(), {})

    await waiting


async def test_waiting_for_a_cluster_fails_when_it_is_unbound() -> None:
    async with asyncio.TaskGroup() as group:
        client, log = Client(Script()), structlog.get_logger()
        cluster_on_hub = Cluster("hub", client, DiscoveryCache(client, log), group, log)
        cache = CacheView(
            client, DeletedUids(), (Watch(selects=only("", "ConfigMap"), enqueue=no_keys, cluster="hub"),)
        )
        cache.bind({"hub": cluster_on_hub})
        waiting = asyncio.ensure_future(cache.wait_synced())
        await asyncio.sleep(0)
        assert not waiting.done()

        cluster_on_hub.stop()
        cache.bind({})

        with pytest.raises(UnknownCluster):
            await waiting
