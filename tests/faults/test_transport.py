"""A transport with injected faults, to the embedded server or a real one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio

from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.faulty import FaultyTransport
from lamina.client.transport.http import HttpTransport
from lamina.errors import Gone, InternalError, NotFound, Unreachable
from lamina.faults import Cut, Expire, Faults, Refuse, Silence, Slow, Stale
from lamina.objects import meta
from lamina.objects.types import Made, Ref
from tests.bed.server import Server

MAPS = ("v1", "ConfigMap")


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest_asyncio.fixture
async def clients(server: Server, faults: Faults) -> AsyncIterator[tuple[Client, Client]]:
    """A client with faults, and one without."""
    access = read_kubeconfig(server.kubeconfig)
    broken = Client(FaultyTransport(HttpTransport(access), faults, timeout=0.2))
    whole = Client(HttpTransport(access))
    await broken.discover()
    yield broken, whole
    for client in (broken, whole):
        await client.close()


def config_map(namespace: str, name: str, **data: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"test": "broken"}},
        "data": data,
    }


async def listed(client: Client, namespace: str) -> list[str]:
    return [meta.name(one) for one in (await client.list(MAPS, namespace, labels="test=broken")).items]


async def test_silence_is_borne_for_a_while(
    clients: tuple[Client, Client], faults: Faults, namespace: str
) -> None:
    faults.add(Silence(verbs=("list",)))

    with pytest.raises(Unreachable, match=r"GET /api/v1/namespaces/.*: no answer within 0.2 seconds"):
        await listed(clients[0], namespace)

    assert await listed(clients[1], namespace) == []


async def test_refusals_come_before_the_deed_or_after_it(
    clients: tuple[Client, Client], faults: Faults, namespace: str
) -> None:
    broken, whole = clients
    faults.add(Slow(seconds=0.01))
    faults.add(Refuse(id="before", code=500, verbs=("create",)))
    with pytest.raises(InternalError):
        await broken.create(config_map(namespace, "not-made"))
    faults.remove("before")
    faults.add(Refuse(code=500, verbs=("create",), after=True))
    with pytest.raises(InternalError):
        await broken.create(config_map(namespace, "made"))

    assert await listed(whole, namespace) == ["made"]


async def test_a_refusal_with_retry_after_is_retried(
    clients: tuple[Client, Client], faults: Faults, namespace: str
) -> None:
    faults.add(Refuse(code=429, times=1))

    assert await listed(clients[0], namespace) == []


async def test_watches_end_and_go_on_where_they_were(
    clients: tuple[Client, Client], faults: Faults, namespace: str
) -> None:
    broken, whole = clients
    version = (await whole.list(MAPS, namespace)).version
    faults.add(Cut(id="short", events=1))
    async with asyncio.timeout(20), aclosing(broken.watch(MAPS, namespace, version=version)) as events:
        for name in ("a", "b"):
            await whole.create(config_map(namespace, name))
        told = [meta.name(one["object"]) async for one in events if meta.labels(one["object"])]
    assert told == ["a"]
    faults.remove("short")

    async with asyncio.timeout(20), aclosing(broken.watch(MAPS, namespace, version=version)) as events:
        while meta.name((await anext(events))["object"]) != "b":
            pass
        ended = asyncio.ensure_future(_rest(events))
        await asyncio.sleep(0)
        faults.add(Cut())
        assert await ended == []

    faults.add(Expire())
    with pytest.raises(Gone):
        async with aclosing(broken.watch(MAPS, namespace, version=version)) as events:
            await anext(events)


async def _rest(events: AsyncIterator[object]) -> list[object]:
    return [event async for event in events]


async def test_the_past_is_an_earlier_answer_to_the_same_question(
    clients: tuple[Client, Client], faults: Faults, namespace: str
) -> None:
    broken, whole = clients
    made = await whole.create(config_map(namespace, "colour", of="red"))
    faults.add(Stale(id="old", verbs=("get", "list")))
    assert await listed(broken, namespace) == ["colour"]
    assert (await broken.get(meta.ref(made)))["data"] == {"of": "red"}

    await whole.patch(meta.ref(made), {"data": {"of": "blue"}})
    await whole.create(config_map(namespace, "new"))

    assert await listed(broken, namespace) == ["colour"]
    assert (await broken.get(meta.ref(made)))["data"] == {"of": "red"}
    faults.add(Stale(id="old", versions=1, verbs=("list",)))
    assert await listed(broken, namespace) == ["colour", "new"]
    await whole.delete(meta.ref(made))
    assert await listed(broken, namespace) == ["colour", "new"]
    assert await listed(broken, namespace) == ["new"]
    faults.clear()
    with pytest.raises(NotFound):
        await broken.get(Ref("v1", "ConfigMap", namespace, "colour"))


async def test_a_past_that_was_taken_back_is_not_shown_by_the_next(
    clients: tuple[Client, Client], faults: Faults, namespace: str
) -> None:
    broken, whole = clients
    made = await whole.create(config_map(namespace, "colour", of="red"))
    faults.add(Stale(verbs=("get",)))
    assert (await broken.get(meta.ref(made)))["data"] == {"of": "red"}
    faults.clear()
    await whole.patch(meta.ref(made), {"data": {"of": "blue"}})

    faults.add(Stale(verbs=("get",)))

    assert (await broken.get(meta.ref(made)))["data"] == {"of": "blue"}


async def test_a_silence_ends_the_watches_that_are_open(
    clients: tuple[Client, Client], faults: Faults, namespace: str
) -> None:
    broken, whole = clients
    version = (await whole.list(MAPS, namespace)).version
    await whole.create(config_map(namespace, "a"))
    async with asyncio.timeout(20), aclosing(broken.watch(MAPS, namespace, version=version)) as events:
        while meta.name((await anext(events))["object"]) != "a":
            pass
        ended = asyncio.ensure_future(_rest(events))
        await asyncio.sleep(0)

        faults.add(Silence(verbs=("watch",)))

        assert await ended == []
    with pytest.raises(Unreachable):
        async with aclosing(broken.watch(MAPS, namespace, version=version)) as events:
            await anext(events)
