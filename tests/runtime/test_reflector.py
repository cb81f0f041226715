"""Streams that several informers share."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import orjson
import pytest
import structlog

from lamina.client.client import Client
from lamina.core.model.world import Change, identity_only, whole
from lamina.errors import Forbidden, Gone
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Obj
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.informer_factory import InformerFactory
from lamina.runtime.cache.reflector import Reflector as Following
from lamina.runtime.cache.watch_spec import WatchSpec
from tests.runtime.scripted import Script, Stream, bookmark, config_map

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
PATH = "/api/v1/configmaps"

ALL = WatchSpec(CONFIG_MAP, whole, metadata_only=False, named="")
CARDS = WatchSpec(CONFIG_MAP, identity_only, metadata_only=True, named="")
NAMED = WatchSpec(CONFIG_MAP, whole, metadata_only=False, named="b")
THERE = ALL._replace(namespace="elsewhere")
HERE = ALL._replace(namespace="default")


class Recorder:
    def __init__(self) -> None:
        self.received: list[str] = []
        self._more = asyncio.Event()

    def __call__(self, change: Change) -> None:
        sign = "+" if change.before is None else "-" if change.after is None else "~"
        self.received.append(sign + meta.name(change.obj))
        self._more.set()

    async def receives(self, times: int) -> Sequence[str]:
        """Wait until it has received this many changes."""
        async with asyncio.timeout(60):
            while len(self.received) < times:
                self._more.clear()
                await self._more.wait()
        return self.received


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def informers(script: Script) -> AsyncIterator[InformerFactory]:
    async with asyncio.TaskGroup() as group:
        informers = InformerFactory(Client(script), group, structlog.get_logger())
        yield informers
        informers.set_watches({})


def there(*names: str, version: int) -> Stream:
    stream = Stream()
    for name in names:
        stream.send("ADDED", {**config_map(name, version), "data": {"key": name}})
    stream.send("BOOKMARK", bookmark(version, end=True))
    return stream


def accepts(script: Script) -> list[bool]:
    """Return of each watch whether it was for metadata alone."""
    return ["PartialObjectMetadata" in asked.headers["accept"] for asked in script.asked]


async def test_watches_that_keep_less_of_the_same_objects_share_one_stream(
    script: Script, informers: InformerFactory
) -> None:
    stream = there("a", "b", version=5)
    script.reply("GET", PATH, stream)
    recorders = {what: Recorder() for what in (CARDS, NAMED, ALL, THERE)}

    following = informers.set_watches({what: [recorder] for what, recorder in recorders.items()})
    await informers.wait_synced()
    stream.send("DELETED", {**config_map("a", 6), "data": {}})
    stream.send("MODIFIED", {**config_map("b", 7), "data": {"key": "c"}})
    await recorders[ALL].receives(4)

    assert accepts(script) == [False]
    assert recorders[ALL].received == recorders[CARDS].received == ["+a", "+b", "-a", "~b"]
    assert recorders[NAMED].received == ["+b", "~b"]
    assert recorders[THERE].received == []
    assert {informer.version for informer in following.values()} == {7}
    (known,), (seen,) = following[CARDS].indexer.every(), following[NAMED].indexer.every()
    assert "data" not in known
    assert seen["data"] == {"key": "c"}


async def test_metadata_is_not_all_that_others_want(script: Script, informers: InformerFactory) -> None:
    script.reply("GET", PATH, there("b", version=5), there("b", version=5))

    informers.set_watches({CARDS: [], NAMED: []})
    await informers.wait_synced()

    assert sorted(accepts(script)) == [False, True]


async def test_a_watch_that_is_added_later_has_a_stream_of_its_own(
    script: Script, informers: InformerFactory
) -> None:
    script.reply("GET", PATH, there("a", version=5), there("a", version=5))
    recorder = Recorder()
    informers.set_watches({ALL: []})
    await informers.wait_synced()

    informers.set_watches({ALL: [], CARDS: [recorder]})
    await informers.wait_synced()

    assert accepts(script) == [False, True]
    assert recorder.received == ["+a"]


async def test_a_watch_may_leave_the_stream_it_shares(script: Script, informers: InformerFactory) -> None:
    stream = there("a", version=5)
    script.reply("GET", PATH, stream)
    staying, leaving = Recorder(), Recorder()
    left = informers.set_watches({ALL: [staying], CARDS: [leaving]})[CARDS]
    await informers.wait_synced()

    informers.set_watches({ALL: [staying]}, Kinds([CONFIG_MAP]))
    stream.send("ADDED", config_map("b", 6))
    await staying.receives(2)

    assert left.stopped
    assert leaving.received == ["+a"]
    assert len(script.asked) == 1


async def test_a_shared_stream_continues_for_the_rest_when_its_first_watch_leaves(
    script: Script, informers: InformerFactory
) -> None:
    first, second = there("a", version=5), Stream()
    script.reply("GET", PATH, first, second)
    recorder, gone = Recorder(), Recorder()
    before = informers.set_watches({ALL: [gone], CARDS: [recorder]})[CARDS]
    await informers.wait_synced()

    after = informers.set_watches({CARDS: [recorder]}, Kinds([CONFIG_MAP]))[CARDS]
    assert after is before and after.synced.is_set() and not after.stopped
    first.send("ADDED", config_map("b", 6))
    await recorder.receives(2)
    first.end()
    # The next request is for the watches that are left, from the version at which the first ended.
    second.send("DELETED", config_map("a", 7))

    assert await recorder.receives(3) == ["+a", "+b", "-a"]
    assert accepts(script) == [False, True]
    assert script.asked[-1].query["resourceVersion"] == "6"
    assert gone.received == ["+a"]


async def test_a_stream_ends_with_the_last_one_it_carries(script: Script, informers: InformerFactory) -> None:
    script.reply("GET", PATH, there("a", version=5))
    informers.set_watches({ALL: [], CARDS: []})
    await informers.wait_synced()

    informers.set_watches({CARDS: []}, Kinds([CONFIG_MAP]))
    (task,) = informers._reflectors.values()
    informers.set_watches({}, Kinds([CONFIG_MAP]))

    await asyncio.wait([task])
    assert task.cancelled() and not informers._reflectors


@pytest.mark.parametrize(
    ("fewer", "path", "fields"),
    [(HERE, "/api/v1/namespaces/default/configmaps", ""), (NAMED, PATH, "metadata.name=b")],
    ids=["of one namespace", "of one name"],
)
async def test_a_narrower_watch_may_be_allowed_where_the_widest_is_forbidden(
    script: Script, informers: InformerFactory, fewer: WatchSpec, path: str, fields: str
) -> None:
    refused = Forbidden("not all of them")
    if path == PATH:
        script.reply("GET", PATH, refused, there("b", version=5), refused)
    else:
        script.reply("GET", PATH, refused)
        script.reply("GET", path, there("b", version=5))
    recorder = Recorder()

    following = informers.set_watches({ALL: [], CARDS: [], fewer: [recorder]})
    async with asyncio.timeout(30):
        await informers.wait_synced()

    assert await recorder.receives(1) == ["+b"]
    assert following[fewer].version == 5
    assert not following[ALL].indexer.count and not following[CARDS].indexer.count
    assert any(
        asked.path == path and asked.query.get("fieldSelector", "") == fields for asked in script.asked[1:]
    )


async def test_what_one_does_not_understand_costs_neither_the_others_nor_what_was_known_of_it(
    script: Script, informers: InformerFactory
) -> None:
    def picky(obj: Obj) -> Obj:
        if meta.resource_version(obj) == "6":
            raise ZeroDivisionError
        return obj

    first, again = there("a", "b", version=5), there("a", "b", version=6)
    script.reply("GET", PATH, first, again)
    choosy = ALL._replace(keep=picky)
    recorders = {what: Recorder() for what in (choosy, ALL)}
    following = informers.set_watches({what: [recorder] for what, recorder in recorders.items()})
    await informers.wait_synced()

    first.send("MODIFIED", config_map("a", 6))
    first.send("MODIFIED", config_map("b", 7))
    await recorders[ALL].receives(4)
    assert recorders[ALL].received == ["+a", "+b", "~a", "~b"]
    assert recorders[choosy].received == ["+a", "+b", "~b"]

    first.lines.put_nowait(orjson.dumps({"type": "ERROR", "object": Gone("too old").status()}) + b"\n")
    again.send("ADDED", config_map("c", 8))
    await recorders[choosy].receives(4)
    assert recorders[choosy].received == ["+a", "+b", "~b", "+c"]
    assert {informer.version for informer in following.values()} == {8}


async def test_a_list_that_one_informer_fails_on_is_delivered_again_to_all(script: Script) -> None:
    """A watch from the last version would not report the deletions to the informers after the one that failed."""
    script.reply("GET", PATH, there("a", version=5), there("b", version=6), there("b", version=6))
    mistakes = [ZeroDivisionError()]

    def record(change: Change) -> None:
        if change.after is None and mistakes:
            raise mistakes.pop()

    stream = Following(Client(script), ALL, structlog.get_logger(), on_split=lambda others: None)
    one, other = Informer(ALL, record), Informer(CARDS, lambda change: None)
    for informer in (one, other):
        informer.put(config_map("gone", 1))
        stream.attach(informer)
    task = asyncio.create_task(stream.run())
    async with asyncio.timeout(30):
        await other.synced.wait()
    task.cancel()
    await asyncio.wait([task])

    assert all("resourceVersion" not in asked.query for asked in script.asked)
    assert [[meta.name(obj) for obj in informer.indexer.every()] for informer in (one, other)] == [
        ["b"],
        ["b"],
    ]
