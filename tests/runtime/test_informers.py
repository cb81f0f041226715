"""Which informers run, as kinds come and go."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import structlog

from lamina.client.client import Client
from lamina.core.world import Change, card
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.runtime.informers import Informers
from lamina.runtime.subscriptions import Subscription
from tests.runtime.scripted import Script, Stream, bookmark, config_map

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
ELSEWHERE = CONFIG_MAP._replace(api_version="v2")


def subscription(kind: Kind) -> Subscription:
    return Subscription(kind, card, metadata_only=True, named="")


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def informers(script: Script) -> AsyncIterator[Informers]:
    async with asyncio.TaskGroup() as group:
        informers = Informers(Client(script), group, structlog.get_logger())
        yield informers
        informers.arrange({})


class Ear:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, change: Change) -> None:
        sign = "+" if change.before is None else "-" if change.after is None else "~"
        self.heard.append(sign + meta.name(change.obj))


def there(*names: str, version: int) -> Stream:
    stream = Stream()
    for name in names:
        stream.send("ADDED", config_map(name, version))
    stream.send("BOOKMARK", bookmark(version, end=True))
    return stream


async def test_those_who_follow_the_same_share_one_informer(script: Script, informers: Informers) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    one, other = Ear(), Ear()

    informers.arrange({subscription(CONFIG_MAP): [one, other]})
    await informers.settled()

    assert one.heard == other.heard == ["+a"]
    assert len(script.asked) == 1


async def test_one_listeners_mistake_does_not_cost_the_others_the_news(
    script: Script, informers: Informers
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    ear = Ear()

    def mistaken(change: Change) -> None:
        raise ZeroDivisionError

    informers.arrange({subscription(CONFIG_MAP): [mistaken, ear]})
    await informers.settled()

    assert ear.heard == ["+a"]


async def test_a_kind_that_is_not_served_any_longer_is_no_proof_that_its_objects_are_gone(
    script: Script, informers: Informers
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    ear = Ear()
    informers.arrange({subscription(CONFIG_MAP): [ear]})
    await informers.settled()

    informers.arrange({})

    assert ear.heard == ["+a"]


@pytest.mark.parametrize("kind", [CONFIG_MAP, ELSEWHERE], ids=["the same version", "another version"])
async def test_when_a_kind_comes_back_those_who_went_in_between_are_noticed(
    script: Script, informers: Informers, kind: Kind
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("stays", "goes", version=5))
    script.reply("GET", kind.path(), there("stays", version=5))
    ear = Ear()
    informers.arrange({subscription(CONFIG_MAP): [ear]})
    await informers.settled()
    informers.arrange({})

    following = informers.arrange({subscription(kind): [ear]})
    await informers.settled()

    assert ear.heard == ["+stays", "+goes", "-goes"]
    (kept,) = following[subscription(kind)].shelf.every()
    assert kept["apiVersion"] == kind.api_version


async def test_the_end_of_an_owner_is_remembered_and_that_of_others_is_not(
    script: Script, informers: Informers
) -> None:
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-owner"}]
    stream = there("owner", "lone", version=5)
    script.reply("GET", "/api/v1/configmaps", stream)
    following = informers.arrange({subscription(CONFIG_MAP): []})
    stream.send("ADDED", config_map("child", 6, ownerReferences=owners))
    stream.send("DELETED", config_map("owner", 7))
    stream.send("DELETED", config_map("lone", 8))
    informer = following[subscription(CONFIG_MAP)]
    await informer.wait_until(lambda: informer.seen == 8)

    assert "uid-owner" in informers.gone
    assert "uid-lone" not in informers.gone


@pytest.mark.parametrize("named", ["", "a"], ids=["all of a kind", "one of a kind"])
async def test_of_what_is_served_and_nobody_wants_nothing_is_remembered(
    script: Script, informers: Informers, named: str
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    informers.arrange({subscription(CONFIG_MAP)._replace(named=named): []}, Kinds([CONFIG_MAP]))
    await informers.settled()

    informers.arrange({}, Kinds([CONFIG_MAP]))
    assert not informers._left


async def test_of_a_single_object_nothing_is_remembered_when_its_kind_goes(
    script: Script, informers: Informers
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    informers.arrange({subscription(CONFIG_MAP)._replace(named="a"): []}, Kinds([CONFIG_MAP]))
    await informers.settled()

    informers.arrange({}, Kinds())
    assert not informers._left
