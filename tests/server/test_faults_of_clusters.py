"""Faults belong to one cluster, and the clock to all."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import orjson
import pytest
import pytest_asyncio

from lamina.app import App
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.errors import Forbidden, Unavailable
from lamina.faults import Refuse, Stale, shown
from lamina.objects.times import moment
from lamina.objects.types import Made, Ref
from lamina.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFAULT = Ref("v1", "Namespace", "", "default")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app() -> AsyncIterator[App]:
    settings = Settings(ephemeral=True, port=0, simulate="off", families="none", clusters=("east", "west"))
    async with App(settings) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def clients(app: App) -> AsyncIterator[dict[str, Client]]:
    made = {
        name: Client(HttpTransport(read_kubeconfig(app.kubeconfig, name)))
        for name in ("lamina", "east", "west")
    }
    yield made
    for client in made.values():
        await client.request("DELETE", "/lamina/faults")
        await client.close()


async def page(client: Client, method: str, path: str, body: Made | None = None) -> Any:
    sent = orjson.dumps(body) if body is not None else None
    return orjson.loads(await client.request(method, path, body=sent))


async def test_a_fault_is_of_the_cluster_it_was_set_on(clients: dict[str, Client]) -> None:
    await page(clients["east"], "POST", "/lamina/faults", shown(Refuse(verbs=("get",))))

    with pytest.raises(Unavailable):
        await clients["east"].get(DEFAULT)
    await clients["west"].get(DEFAULT)
    await clients["lamina"].get(DEFAULT)
    assert await page(clients["west"], "GET", "/lamina/faults") == {"faults": []}


async def test_the_past_of_a_cluster_is_its_own(clients: dict[str, Client]) -> None:
    for name in ("east", "west"):
        metadata = {"name": "colour", "namespace": "default"}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"of": name}}
        await clients[name].create(made)
    await page(clients["east"], "POST", "/lamina/faults", shown(Stale()))
    colour = Ref("v1", "ConfigMap", "default", "colour")
    for name in ("east", "west"):
        await clients[name].patch(colour, {"data": {"of": "nobody"}})

    assert (await clients["east"].get(colour))["data"] == {"of": "east"}
    assert (await clients["west"].get(colour))["data"] == {"of": "nobody"}


async def test_all_clusters_have_one_clock_that_is_wound_at_the_server_itself(
    clients: dict[str, Client],
) -> None:
    with pytest.raises(Forbidden, match="all clusters of a server have one clock"):
        await page(clients["east"], "POST", "/lamina/clock", {"wind": 60})
    before = moment((await page(clients["east"], "GET", "/lamina/clock"))["now"])

    await page(clients["lamina"], "POST", "/lamina/clock", {"wind": 3600})

    after = moment((await page(clients["west"], "GET", "/lamina/clock"))["now"])
    assert before is not None and after is not None
    assert after - before >= timedelta(hours=1)
