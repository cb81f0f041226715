"""Streams that several informers share."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import structlog

from lamina.client.client import Client
from lamina.core.world import Change, card, whole
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.runtime.informers import Informers
from lamina.runtime.subscriptions import Subscription
from tests.runtime.scripted import Script, Stream, bookmark, config_map

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
PATH = "/api/v1/configmaps"

ALL = Subscription(CONFIG_MAP, whole, metadata_only=False, named="")
CARDS = Subscription(CONFIG_MAP, card, metadata_only=True, named="")
NAMED = Subscription(CONFIG_MAP, whole, metadata_only=False, named="b")
THERE = ALL._replace(namespace="elsewhere")


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


async def test_those_who_stay_when_a_stream_goes_know_what_they_knew_and_follow_on_their_own(
    script: Script, informers: Informers
) -> None:
    script.reply("GET", PATH, there("stays", "goes", version=5), there("stays", version=9))
    ear = Ear()
    before = informers.arrange({ALL: [], CARDS: [ear]})[CARDS]
    await informers.settled()

    after = informers.arrange({CARDS: [ear]}, Kinds([CONFIG_MAP]))[CARDS]
    await informers.settled()

    assert before.has_ended and not after.has_ended
    assert accepts(script) == [False, True]
    assert await ear.hears(4) == ["+stays", "+goes", "~stays", "-goes"]
