"""Which informers run, as kinds come and go."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import structlog

from lamina.client.client import Client
from lamina.core.model.world import Change, identity_only
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.runtime.cache.informer_factory import InformerFactory
from lamina.runtime.cache.watch_spec import WatchSpec
from tests.runtime.scripted import Script, Stream, bookmark, config_map

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True, frozenset(("list", "watch")))
ELSEWHERE = CONFIG_MAP._replace(api_version="v2")


def subscription(kind: Kind) -> WatchSpec:
    return WatchSpec(kind, identity_only, metadata_only=True, named="")


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
async def informers(script: Script) -> AsyncIterator[InformerFactory]:
    async with asyncio.TaskGroup() as group:
        informers = InformerFactory(Client(script), group, structlog.get_logger())
        yield informers
        informers.set_watches({})


class Recorder:
    def __init__(self) -> None:
        self.received: list[str] = []

    def __call__(self, change: Change) -> None:
        sign = "+" if change.before is None else "-" if change.after is None else "~"
        self.received.append(sign + meta.name(change.obj))


def there(*names: str, version: int) -> Stream:
    stream = Stream()
    for name in names:
        stream.send("ADDED", config_map(name, version))
    stream.send("BOOKMARK", bookmark(version, end=True))
    return stream


async def test_equal_watches_share_one_informer(script: Script, informers: InformerFactory) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    one, other = Recorder(), Recorder()

    informers.set_watches({subscription(CONFIG_MAP): [one, other]})
    await informers.wait_synced()

    assert one.received == other.received == ["+a"]
    assert len(script.asked) == 1


async def test_one_listeners_mistake_does_not_cost_the_others_the_news(
    script: Script, informers: InformerFactory
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    recorder = Recorder()

    def mistaken(change: Change) -> None:
        raise ZeroDivisionError

    informers.set_watches({subscription(CONFIG_MAP): [mistaken, recorder]})
    await informers.wait_synced()

    assert recorder.received == ["+a"]


async def test_a_kind_that_is_not_served_any_longer_is_no_proof_that_its_objects_are_gone(
    script: Script, informers: InformerFactory
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    recorder = Recorder()
    informers.set_watches({subscription(CONFIG_MAP): [recorder]})
    await informers.wait_synced()

    informers.set_watches({})

    assert recorder.received == ["+a"]


@pytest.mark.parametrize("kind", [CONFIG_MAP, ELSEWHERE], ids=["the same version", "another version"])
async def test_when_a_kind_is_served_again_deletions_in_between_are_reported(
    script: Script, informers: InformerFactory, kind: Kind
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("stays", "goes", version=5))
    script.reply("GET", kind.path(), there("stays", version=5))
    recorder = Recorder()
    informers.set_watches({subscription(CONFIG_MAP): [recorder]})
    await informers.wait_synced()
    informers.set_watches({})

    following = informers.set_watches({subscription(kind): [recorder]})
    await informers.wait_synced()

    assert recorder.received == ["+stays", "+goes", "-goes"]
    (kept,) = following[subscription(kind)].indexer.every()
    assert kept["apiVersion"] == kind.api_version


async def test_the_end_of_an_owner_is_remembered_and_that_of_others_is_not(
    script: Script, informers: InformerFactory
) -> None:
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-owner"}]
    stream = there("owner", "lone", version=5)
    script.reply("GET", "/api/v1/configmaps", stream)
    following = informers.set_watches({subscription(CONFIG_MAP): []})
    stream.send("ADDED", config_map("child", 6, ownerReferences=owners))
    stream.send("DELETED", config_map("owner", 7))
    stream.send("DELETED", config_map("lone", 8))
    informer = following[subscription(CONFIG_MAP)]
    await informer.wait_until(lambda: informer.version == 8)

    assert "uid-owner" in informers.deleted_uids
    assert "uid-lone" not in informers.deleted_uids


@pytest.mark.parametrize("named", ["", "a"], ids=["all of a kind", "one of a kind"])
async def test_nothing_is_retained_of_a_served_kind_without_watches(
    script: Script, informers: InformerFactory, named: str
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    informers.set_watches({subscription(CONFIG_MAP)._replace(named=named): []}, Kinds([CONFIG_MAP]))
    await informers.wait_synced()

    informers.set_watches({}, Kinds([CONFIG_MAP]))
    assert not informers._retained


async def test_of_a_single_object_nothing_is_remembered_when_its_kind_goes(
    script: Script, informers: InformerFactory
) -> None:
    script.reply("GET", "/api/v1/configmaps", there("a", version=5))
    informers.set_watches({subscription(CONFIG_MAP)._replace(named="a"): []}, Kinds([CONFIG_MAP]))
    await informers.wait_synced()

    informers.set_watches({}, Kinds())
    assert not informers._retained
