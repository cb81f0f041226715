"""Streams that several informers share."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import orjson
import pytest
import structlog

from lamina.client.client import Client
from lamina.core.world import Change, card, whole
from lamina.errors import Forbidden, Gone
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Obj
from lamina.runtime.informer import Informer
from lamina.runtime.informers import Informers
from lamina.runtime.stream import Stream as Following
from lamina.runtime.subscriptions import Subscription
from tests.runtime.scripted import Script, Stream, bookmark, config_map

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
PATH = "/api/v1/configmaps"

ALL = Subscription(CONFIG_MAP, whole, metadata_only=False, named="")
CARDS = Subscription(CONFIG_MAP, card, metadata_only=True, named="")
NAMED = Subscription(CONFIG_MAP, whole, metadata_only=False, named="b")
THERE = ALL._replace(namespace="elsewhere")
HERE = ALL._replace(namespace="default")


class Ear:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self._more = asyncio.Event()

    def __call__(self, change: Change) -> None:
        sign = "+" if change.before is None else "-" if change.after is None else "~"
        self.heard.append(sign + meta.name(change.obj))
        self._more.set()

    async def hears(self, times: int) -> Sequence[str]:
        """Wait until it has heard so much."""
        async with asyncio.timeout(60):
            while len(self.heard) < times:
                self._more.clear()
                await self._more.wait()
        return self.heard


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def informers(script: Script) -> AsyncIterator[Informers]:
    async with asyncio.TaskGroup() as group:
        informers = Informers(Client(script), group, structlog.get_logger())
        yield informers
        informers.arrange({})


def there(*names: str, version: int) -> Stream:
    stream = Stream()
    for name in names:
        stream.send("ADDED", {**config_map(name, version), "data": {"key": name}})
    stream.send("BOOKMARK", bookmark(version, end=True))
    return stream


def accepts(script: Script) -> list[bool]:
    """Return of each watch whether it was for metadata alone."""
    return ["PartialObjectMetadata" in asked.headers["accept"] for asked in script.asked]


async def test_whoever_wants_less_of_the_same_objects_is_carried_along(
    script: Script, informers: Informers
) -> None:
    stream = there("a", "b", version=5)
    script.reply("GET", PATH, stream)
    ears = {what: Ear() for what in (CARDS, NAMED, ALL, THERE)}

    following = informers.arrange({what: [ear] for what, ear in ears.items()})
    await informers.settled()
    stream.send("DELETED", {**config_map("a", 6), "data": {}})
    stream.send("MODIFIED", {**config_map("b", 7), "data": {"key": "c"}})
    await ears[ALL].hears(4)

    assert accepts(script) == [False]
    assert ears[ALL].heard == ears[CARDS].heard == ["+a", "+b", "-a", "~b"]
    assert ears[NAMED].heard == ["+b", "~b"]
    assert ears[THERE].heard == []
    assert {informer.seen for informer in following.values()} == {7}
    (known,), (seen,) = following[CARDS].shelf.every(), following[NAMED].shelf.every()
    assert "data" not in known
    assert seen["data"] == {"key": "c"}


async def test_metadata_is_not_all_that_others_want(script: Script, informers: Informers) -> None:
    script.reply("GET", PATH, there("b", version=5), there("b", version=5))

    informers.arrange({CARDS: [], NAMED: []})
    await informers.settled()

    assert sorted(accepts(script)) == [False, True]


async def test_whoever_comes_later_has_a_stream_of_their_own(script: Script, informers: Informers) -> None:
    script.reply("GET", PATH, there("a", version=5), there("a", version=5))
    ear = Ear()
    informers.arrange({ALL: []})
    await informers.settled()

    informers.arrange({ALL: [], CARDS: [ear]})
    await informers.settled()

    assert accepts(script) == [False, True]
    assert ear.heard == ["+a"]


async def test_whoever_is_carried_along_may_leave(script: Script, informers: Informers) -> None:
    stream = there("a", version=5)
    script.reply("GET", PATH, stream)
    staying, leaving = Ear(), Ear()
    left = informers.arrange({ALL: [staying], CARDS: [leaving]})[CARDS]
    await informers.settled()

    informers.arrange({ALL: [staying]}, Kinds([CONFIG_MAP]))
    stream.send("ADDED", config_map("b", 6))
    await staying.hears(2)

    assert left.has_ended
    assert leaving.heard == ["+a"]
    assert len(script.asked) == 1


async def test_those_who_stay_are_followed_on_when_the_one_they_were_carried_by_leaves(
    script: Script, informers: Informers
) -> None:
    first, second = there("a", version=5), Stream()
    script.reply("GET", PATH, first, second)
    ear, gone = Ear(), Ear()
    before = informers.arrange({ALL: [gone], CARDS: [ear]})[CARDS]
    await informers.settled()

    after = informers.arrange({CARDS: [ear]}, Kinds([CONFIG_MAP]))[CARDS]
    assert after is before and after.settled.is_set() and not after.has_ended
    first.send("ADDED", config_map("b", 6))
    await ear.hears(2)
    first.end()
    # Whoever asks again asks for what is wanted by now, from where the other ended.
    second.send("DELETED", config_map("a", 7))

    assert await ear.hears(3) == ["+a", "+b", "-a"]
    assert accepts(script) == [False, True]
    assert script.asked[-1].query["resourceVersion"] == "6"
    assert gone.heard == ["+a"]


async def test_a_stream_ends_with_the_last_one_it_carries(script: Script, informers: Informers) -> None:
    script.reply("GET", PATH, there("a", version=5))
    informers.arrange({ALL: [], CARDS: []})
    await informers.settled()

    informers.arrange({CARDS: []}, Kinds([CONFIG_MAP]))
    (task,) = informers._streams.values()
    informers.arrange({}, Kinds([CONFIG_MAP]))

    await asyncio.wait([task])
    assert task.cancelled() and not informers._streams


@pytest.mark.parametrize(
    ("fewer", "path", "fields"),
    [(HERE, "/api/v1/namespaces/default/configmaps", ""), (NAMED, PATH, "metadata.name=b")],
    ids=["of one namespace", "of one name"],
)
async def test_who_may_not_see_all_may_still_see_some(
    script: Script, informers: Informers, fewer: Subscription, path: str, fields: str
) -> None:
    refused = Forbidden("not all of them")
    if path == PATH:
        script.reply("GET", PATH, refused, there("b", version=5), refused)
    else:
        script.reply("GET", PATH, refused)
        script.reply("GET", path, there("b", version=5))
    ear = Ear()

    following = informers.arrange({ALL: [], CARDS: [], fewer: [ear]})
    async with asyncio.timeout(30):
        await informers.settled()

    assert await ear.hears(1) == ["+b"]
    assert following[fewer].seen == 5
    assert not following[ALL].shelf.count and not following[CARDS].shelf.count
    assert any(
        asked.path == path and asked.query.get("fieldSelector", "") == fields for asked in script.asked[1:]
    )


async def test_what_one_does_not_understand_costs_neither_the_others_nor_what_was_known_of_it(
    script: Script, informers: Informers
) -> None:
    def picky(obj: Obj) -> Obj:
        if meta.resource_version(obj) == "6":
            raise ZeroDivisionError
        return obj

    first, again = there("a", "b", version=5), there("a", "b", version=6)
    script.reply("GET", PATH, first, again)
    choosy = ALL._replace(keep=picky)
    ears = {what: Ear() for what in (choosy, ALL)}
    following = informers.arrange({what: [ear] for what, ear in ears.items()})
    await informers.settled()

    first.send("MODIFIED", config_map("a", 6))
    first.send("MODIFIED", config_map("b", 7))
    await ears[ALL].hears(4)
    assert ears[ALL].heard == ["+a", "+b", "~a", "~b"]
    assert ears[choosy].heard == ["+a", "+b", "~b"]

    first.lines.put_nowait(orjson.dumps({"type": "ERROR", "object": Gone("too old").status()}) + b"\n")
    again.send("ADDED", config_map("c", 8))
    await ears[choosy].hears(4)
    assert ears[choosy].heard == ["+a", "+b", "~b", "+c"]
    assert {informer.seen for informer in following.values()} == {8}


async def test_a_listing_that_somebody_could_not_take_in_is_told_to_everybody_again(script: Script) -> None:
    """Not taken up where it ended: of those who come after him, nobody would know what is there no more."""
    script.reply("GET", PATH, there("a", version=5), there("b", version=6), there("b", version=6))
    mistakes = [ZeroDivisionError()]

    def tell(change: Change) -> None:
        if change.after is None and mistakes:
            raise mistakes.pop()

    stream = Following(Client(script), ALL, structlog.get_logger(), part=lambda others: None)
    one, other = Informer(ALL, tell), Informer(CARDS, lambda change: None)
    for informer in (one, other):
        informer.see(config_map("gone", 1))
        stream.carry(informer)
    task = asyncio.create_task(stream.run())
    async with asyncio.timeout(30):
        await other.settled.wait()
    task.cancel()
    await asyncio.wait([task])

    assert all("resourceVersion" not in asked.query for asked in script.asked)
    assert [[meta.name(obj) for obj in informer.shelf.every()] for informer in (one, other)] == [["b"], ["b"]]
