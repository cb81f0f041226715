"""Seeing one's own writes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import structlog

from lamina.client.client import Client
from lamina.clock import ManualClock
from lamina.core.controller import Controller, Watch, nobody, only
from lamina.core.plan import NOTHING
from lamina.core.world import card
from lamina.errors import NotFound, UnknownCluster, Unreachable
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Ref
from lamina.runtime.asker import Asker
from lamina.runtime.catalogue import Catalogue
from lamina.runtime.executor import Executor, Written
from lamina.runtime.informer import Informer
from lamina.runtime.lookout import Lookout
from lamina.runtime.memory import Gone
from lamina.runtime.sight import Sight
from lamina.runtime.stream import Stream as Following
from lamina.runtime.subscriptions import Subscription
from lamina.runtime.worker import Worker
from tests.runtime.scripted import Script, Stream, bookmark, config_map, groups

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
A = Ref("v1", "ConfigMap", "default", "a")
PATH = "/api/v1/namespaces/default/configmaps/a"


class Seeing:
    """A sight whose informer has seen `a` at version 5, and everything up to 9."""

    def __init__(self, script: Script, patience: float) -> None:
        self.script, self.stream = script, Stream()
        client = Client(script)
        what = Subscription(CONFIG_MAP, card, metadata_only=True, named="")
        self.informer = Informer(what, lambda change: None)
        self.following = Following(client, what, structlog.get_logger(), part=lambda others: None)
        self.following.carry(self.informer)
        self.sight = Sight(client, Gone(), patience=patience)
        self.sight.arrange(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: self.informer})

    @property
    def version(self) -> str | None:
        found = self.sight.world.get(A)
        return meta.resource_version(found) if found is not None else None


async def _seeing(patience: float) -> AsyncIterator[Seeing]:
    script = Script()
    script.reply("GET", "/api", groups(("v1", "ConfigMap", "configmaps")))
    script.reply("GET", "/apis", groups(group="none.example.com"))
    seeing = Seeing(script, patience)
    script.reply("GET", "/api/v1/configmaps", seeing.stream)
    seeing.stream.send("ADDED", config_map("a", 5))
    seeing.stream.send("BOOKMARK", bookmark(9, end=True))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(seeing.following.run())
        await seeing.sight.settled()
        yield seeing
        task.cancel()


@pytest.fixture
async def patient() -> AsyncIterator[Seeing]:
    async for seeing in _seeing(patience=60.0):
        yield seeing


@pytest.fixture
async def hasty() -> AsyncIterator[Seeing]:
    async for seeing in _seeing(patience=0.0):
        yield seeing


async def test_what_was_written_is_waited_for(patient: Seeing) -> None:
    waiting = asyncio.ensure_future(patient.sight.caught_up([Written(A, "uid-a", 12)]))
    patient.stream.send("MODIFIED", config_map("a", 11))
    await patient.informer.wait_until(lambda: patient.informer.seen == 11)
    assert not waiting.done()

    patient.stream.send("MODIFIED", config_map("a", 12))
    await waiting

    assert patient.version == "12"


@pytest.mark.parametrize("event", ["DELETED", "MODIFIED"])
async def test_an_end_is_seen_when_the_object_is_gone_or_on_its_way(patient: Seeing, event: str) -> None:
    waiting = asyncio.ensure_future(patient.sight.caught_up([Written(A, "uid-a", None)]))
    await asyncio.sleep(0)
    assert not waiting.done()

    patient.stream.send(event, config_map("a", 12, deletionTimestamp="2026-01-01T00:00:00Z"))

    await waiting


async def test_an_end_is_seen_when_another_object_has_the_name(patient: Seeing) -> None:
    await patient.sight.caught_up([Written(A, "uid-of-an-earlier-one", None)])


async def test_what_nobody_watches_is_not_waited_for(patient: Seeing) -> None:
    await patient.sight.caught_up([Written(Ref("v1", "Secret", "default", "s"), "u", 99)])


def idle(seeing: Seeing) -> Worker[None]:
    """Return a worker that never has anything to do."""
    client = Client(seeing.script)
    return Worker(
        Controller(name="none", watches=(), gather=lambda world, ref: None, plan=lambda view, answers, now: NOTHING),
        sight=seeing.sight,
        asker=Asker(client, None),
        executor=Executor(client, manager="none"),
        clock=ManualClock(),
        log=structlog.get_logger(),
    )  # fmt: skip


async def test_a_worker_forgets_what_it_wrote_only_once_that_can_be_seen(patient: Seeing) -> None:
    worker = idle(patient)

    for number in range(2000):
        worker._remember(A._replace(name=f"unseen-{number}"), [Written(A, "uid-a", 20)])
    assert len(worker._written) == 2000

    patient.stream.send("MODIFIED", config_map("a", 20))
    await patient.informer.wait_until(lambda: patient.informer.seen == 20)
    worker._remember(A, [Written(A, "uid-a", 20)])
    assert len(worker._written) == 1024


@pytest.mark.parametrize("why", ["it was written", "it was in the way"])
async def test_what_could_not_be_looked_for_is_looked_for_again(hasty: Seeing, why: str) -> None:
    worker = idle(hasty)
    if why == "it was written":
        worker._remember(A, [Written(A, "uid-a", 20)])
    else:
        worker._doubted[A] = [A]
    hasty.script.reply("GET", PATH, Unreachable("no route"), Unreachable("no route"), config_map("a", 20))

    for _ in range(2):
        with pytest.raises(Unreachable):
            await worker.reconcile(A)
    await worker.reconcile(A)

    assert hasty.version == "20"
    assert not worker._written and not worker._doubted


async def test_after_a_while_it_is_read_from_the_server(hasty: Seeing) -> None:
    hasty.script.reply("GET", PATH, config_map("a", 20))

    await hasty.sight.caught_up([Written(A, "uid-a", 20)])

    assert hasty.version == "20"


async def test_what_the_server_does_not_have_is_forgotten(hasty: Seeing) -> None:
    hasty.script.reply("GET", PATH, NotFound('configmaps "a" not found', details={"name": "a"}))

    await hasty.sight.caught_up([Written(A, "uid-a", None)])

    assert hasty.version is None


async def test_a_real_look_is_only_taken_at_what_is_watched(hasty: Seeing) -> None:
    await hasty.sight.look([Ref("v1", "Secret", "default", "s"), A._replace(name="")])

    assert not [asked for asked in hasty.script.asked if "secrets" in asked.path]


class Elsewhere:
    """A lookout of another cluster that has seen everything up to a version."""

    def __init__(self, seen: int) -> None:
        what = Subscription(CONFIG_MAP, card, metadata_only=True, named="")
        self.informer = Informer(what, lambda change: None, "hub")
        self.informer.seen = seen
        self.informer.settled.set()


async def test_versions_of_one_cluster_are_not_compared_with_those_of_another() -> None:
    async with asyncio.TaskGroup() as group:
        client, log = Client(Script()), structlog.get_logger()
        home, hub = Elsewhere(900), Elsewhere(3)
        lookout = Lookout("hub", client, Catalogue(client, log), group, log)
        sight = Sight(client, Gone(), (Watch(selects=only("", "ConfigMap"), concerns=nobody, cluster="hub"),))
        sight.bind({"hub": lookout})
        for cluster, seen in (("", home), ("hub", hub)):
            sight.arrange(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: seen.informer}, cluster)

        here, there = Written(A, "uid-a", 5), Written(A._replace(cluster="hub"), "uid-a", 5)
        assert sight.has_seen([here])
        assert not sight.has_seen([here, there])

        waiting = asyncio.ensure_future(sight.caught_up([here, there]))
        await asyncio.sleep(0)
        assert not waiting.done()
        hub.informer.reached("5")
        await waiting


async def test_whoever_waits_for_a_write_to_be_seen_waits_for_whoever_follows_it_then() -> None:
    what = Subscription(CONFIG_MAP, card, metadata_only=True, named="")
    first, second = (Informer(what, lambda change: None) for _ in range(2))
    sight = Sight(Client(Script()), Gone(), patience=60)
    sight.arrange(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: first})
    waiting = asyncio.ensure_future(sight.caught_up([Written(A, "uid-a", 5)]))
    await asyncio.sleep(0)

    first.end()
    sight.arrange(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: second})
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    second.end()

    async with asyncio.timeout(30):
        await waiting


async def test_whoever_waits_for_a_kind_that_nobody_follows_any_more_goes_on() -> None:
    what = Subscription(CONFIG_MAP, card, metadata_only=True, named="")
    informer = Informer(what, lambda change: None)
    sight = Sight(Client(Script()), Gone())
    sight.arrange(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: informer})
    waiting = asyncio.ensure_future(sight.settled())
    await asyncio.sleep(0)
    assert not waiting.done()

    informer.end()
    sight.arrange(Kinds(), {})

    await waiting


async def test_whoever_waits_for_a_cluster_that_is_taken_away_is_told() -> None:
    async with asyncio.TaskGroup() as group:
        client, log = Client(Script()), structlog.get_logger()
        lookout = Lookout("hub", client, Catalogue(client, log), group, log)
        sight = Sight(client, Gone(), (Watch(selects=only("", "ConfigMap"), concerns=nobody, cluster="hub"),))
        sight.bind({"hub": lookout})
        waiting = asyncio.ensure_future(sight.settled())
        await asyncio.sleep(0)
        assert not waiting.done()

        lookout.end()
        sight.bind({})

        with pytest.raises(UnknownCluster):
            await waiting
