"""Fault injection in the server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import orjson
import pytest
import pytest_asyncio

from lamina.app import App
from lamina.client.client import Client, Listing
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.errors import (
    BadRequest,
    Forbidden,
    Gone,
    InternalError,
    NotFound,
    TooManyRequests,
    Unavailable,
    Unreachable,
)
from lamina.faults import Cut, Expire, Fault, Refuse, Silence, Slow, Stale, shown
from lamina.objects import meta
from lamina.objects.types import Made, Ref, WatchEvent
from lamina.server.identity import Identity
from lamina.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAPS = ("v1", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app() -> AsyncIterator[App]:
    async with App(Settings(ephemeral=True, port=0, simulate="off", families="none")) as running:
        yield running


@pytest_asyncio.fixture(params=["inprocess", "http"], loop_scope="module")
async def client(app: App, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client that the faults apply to; its objects and the faults are removed at the end."""
    made = app.client() if request.param == "inprocess" else Client(HttpTransport(read_kubeconfig(app.kubeconfig)))  # fmt: skip
    await made.discover()
    yield made
    app.api.faults.clear()
    await app.client().delete_collection(MAPS, "default", labels="test=faults")
    await made.close()


def config_map(name: str, **data: str) -> Made:
    metadata = {"name": name, "namespace": "default", "labels": {"test": "faults"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def at(name: str) -> Ref:
    return Ref("v1", "ConfigMap", "default", name)


async def listed(client: Client) -> list[str]:
    return [meta.name(one) for one in (await client.list(MAPS, "default", labels="test=faults")).items]


async def still_waiting(work: Awaitable[Any]) -> asyncio.Task[Any]:
    """Start a request that gets no response, and check that it gets none while others do."""
    task = asyncio.ensure_future(work)
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert not task.done()
    return task


async def test_a_silent_server_does_not_respond_until_the_fault_is_removed(app: App, client: Client) -> None:
    app.api.faults.add(Silence())

    reading = await still_waiting(client.get(Ref("v1", "Namespace", "", "default")))
    app.api.faults.clear()

    assert meta.name(await reading) == "default"


async def test_clients_in_the_process_give_up_on_a_silent_server_too() -> None:
    async with App(Settings(ephemeral=True, port=0, simulate="off"), client_timeout=0.01) as app:
        client = app.client()
        await client.discover()
        app.api.faults.add(Silence())

        with pytest.raises(
            Unreachable, match="GET /api/v1/namespaces/default: no answer within 0.01 seconds"
        ):
            await client.get(Ref("v1", "Namespace", "", "default"))
        app.api.faults.clear()


async def test_a_request_that_is_cancelled_during_a_silence_is_not_carried_out(
    app: App, client: Client
) -> None:
    app.api.faults.add(Silence(verbs=("create",)))
    no_timeout = Client(HttpTransport(read_kubeconfig(app.kubeconfig), timeout=0.2))
    with pytest.raises(Unreachable):
        await no_timeout.create(config_map("unheard"))
    await no_timeout.close()

    waiting = await still_waiting(client.create(config_map("patient")))
    app.api.faults.clear()
    await waiting

    assert await listed(client) == ["patient"]


async def test_a_write_whose_answer_is_lost_has_been_carried_out(app: App, client: Client) -> None:
    app.api.faults.add(Refuse(code=500, verbs=("create",), after=True))

    with pytest.raises(InternalError, match="Internal error occurred: injected by fault refuse-"):
        await client.create(config_map("lost"))

    assert await listed(client) == ["lost"]


async def test_a_write_that_is_refused_has_not(app: App, client: Client) -> None:
    app.api.faults.add(Refuse(code=503, verbs=("create",)))

    with pytest.raises(Unavailable):
        await client.create(config_map("refused"))

    assert await listed(client) == []


async def test_a_slow_answer_comes_and_comes_at_once_when_the_fault_is_gone(app: App, client: Client) -> None:
    app.api.faults.add(Slow(seconds=3600, verbs=("list",)))

    reading = await still_waiting(client.list(MAPS, "default"))
    await client.get(Ref("v1", "Namespace", "", "default"))
    app.api.faults.clear()

    assert isinstance(await reading, Listing)
    app.api.faults.add(Slow(seconds=0.01))
    await client.get(Ref("v1", "Namespace", "", "default"))
    # The fault applies to other requests too.
    assert app.api.faults.entries[0].met >= 1


async def test_a_refusal_with_retry_after_is_retried(app: App, client: Client) -> None:
    app.api.faults.add(Refuse(code=429, retry_after=1, times=1, verbs=("list",)))

    assert await listed(client) == []

    assert app.api.faults.entries[0].met == 1


async def test_a_429_that_gives_no_time_is_raised(app: App, client: Client) -> None:
    app.api.faults.add(Refuse(code=429, retry_after=0))

    with pytest.raises(TooManyRequests):
        await listed(client)


async def test_others_are_not_concerned(app: App, client: Client) -> None:
    app.api.faults.add(Refuse(users=("somebody-else",)))
    app.api.faults.add(Refuse(resources=("secrets",)))
    app.api.faults.add(Refuse(path="/apis/*"))

    assert await listed(client) == []


# ── watches ──


class Watching:
    """A watch and its events."""

    def __init__(self, client: Client, version: str = "") -> None:
        self._events = client.watch(
            MAPS, "default", labels="test=faults", initial=not version, version=version
        )

    async def next(self) -> WatchEvent:
        async with asyncio.timeout(10):
            return await anext(self._events)

    async def names(self, count: int) -> list[str]:
        return [meta.name((await self.next())["object"]) for _ in range(count)]

    async def ends(self) -> None:
        async with asyncio.timeout(10):
            rest = [event async for event in self._events if event["type"] != "BOOKMARK"]
        assert rest == []

    async def close(self) -> None:
        await self._events.aclose()


async def test_watches_that_are_open_can_be_cut_and_come_back(app: App, client: Client) -> None:
    watch = Watching(client)
    opened = await watch.next()
    app.api.faults.add(Cut())
    await watch.ends()
    assert not app.api.faults

    again = Watching(client, meta.resource_version(opened["object"]))
    await client.create(config_map("later"))

    assert await again.names(1) == ["later"]
    await again.close()


async def test_watches_that_are_open_end_when_their_server_falls_silent(app: App, client: Client) -> None:
    watch = Watching(client)
    await watch.next()

    app.api.faults.add(Silence(verbs=("watch",), resources=("configmaps",)))

    await watch.ends()
    again = Watching(client)
    waiting = await still_waiting(again.next())
    app.api.faults.clear()
    assert (await waiting)["type"] == "BOOKMARK"
    await again.close()


async def test_every_watch_can_be_cut_after_some_events(app: App, client: Client) -> None:
    await client.create(config_map("first"))
    app.api.faults.add(Cut(events=2))
    watch = Watching(client)
    assert await watch.names(1) == ["first"]
    assert (await watch.next())["type"] == "BOOKMARK"

    for name in ("a", "b", "c"):
        await client.create(config_map(name))

    assert await watch.names(2) == ["a", "b"]
    await watch.ends()


async def test_a_watch_that_goes_on_is_told_that_its_place_is_forgotten(app: App, client: Client) -> None:
    made = await client.create(config_map("first"))
    app.api.faults.add(Expire())

    watch = Watching(client, meta.resource_version(made))
    with pytest.raises(Gone, match="too old resource version"):
        await watch.next()

    fresh = Watching(client)
    assert await fresh.names(1) == ["first"]
    await fresh.close()


async def test_a_list_that_goes_on_is_told_so_and_how_to_go_on_all_the_same(app: App, client: Client) -> None:
    for name in ("a", "b", "c"):
        await client.create(config_map(name))
    page = await client.page(MAPS, "default", labels="test=faults", limit=2)
    app.api.faults.add(Expire(times=1, verbs=("list",)))

    with pytest.raises(Gone, match="The provided continue parameter is too old") as refused:
        await client.page(MAPS, "default", labels="test=faults", limit=2, token=page.token)

    rest = await client.page(MAPS, "default", labels="test=faults", token=refused.value.metadata["continue"])
    assert [meta.name(one) for one in rest.items] == ["c"]


# ── stale reads ──


async def test_reads_can_show_the_cluster_as_it_was(app: App, client: Client) -> None:
    await client.create(config_map("old", colour="red"))
    gone = await client.create(config_map("gone"))
    app.api.faults.add(Stale())
    await client.patch(at("old"), {"data": {"colour": "blue"}})
    await client.delete(meta.ref(gone))
    await client.create(config_map("new"))

    assert await listed(client) == ["gone", "old"]
    assert (await client.get(at("old")))["data"] == {"colour": "red"}
    with pytest.raises(NotFound):
        await client.get(at("new"))
    assert (await client.get(at("gone")))["metadata"]["uid"] == meta.uid(gone)

    app.api.faults.clear()
    assert await listed(client) == ["new", "old"]


async def test_reads_can_lag_behind_by_some_versions(app: App, client: Client) -> None:
    for name in ("a", "b", "c"):
        await client.create(config_map(name))
    app.api.faults.add(Stale(versions=1))

    assert await listed(client) == ["a", "b"]
    # A read that names a version is at least as new.
    newest = meta.resource_version(await app.client().patch(at("a"), {"data": {"x": "y"}}))
    page = await client.page(MAPS, "default", labels="test=faults", version=newest)
    assert [one.get("data") for one in page.items][:1] == [{"x": "y"}]
    assert len(page.items) == 3


async def test_reads_can_lag_behind_by_some_time(app: App, client: Client) -> None:
    await client.create(config_map("a"))
    app.api.faults.add(Stale(seconds=0.2, verbs=("list",)))
    await client.create(config_map("b"))
    assert await listed(client) == ["a"]

    async with asyncio.timeout(10):
        seen = ["a"]
        while seen == ["a"]:
            await asyncio.sleep(0.01)
            seen = await listed(client)

    assert seen == ["a", "b"]


async def test_a_stale_watch_tells_what_was_and_the_rest_when_the_fault_is_gone(
    app: App, client: Client
) -> None:
    await client.create(config_map("a"))
    open_before = Watching(client)
    assert await open_before.names(1) == ["a"]
    await open_before.next()
    app.api.faults.add(Stale())
    await client.create(config_map("b"))
    await open_before.ends()

    watch = Watching(client)
    assert await watch.names(1) == ["a"]
    assert (await watch.next())["type"] == "BOOKMARK"
    waiting = await still_waiting(watch.next())
    app.api.faults.clear()

    assert meta.name((await waiting)["object"]) == "b"
    await watch.close()


# ── the administration API ──


async def faults_request(client: Client, method: str, path: str = "", body: object = None) -> Any:
    sent = orjson.dumps(body) if body is not None else None
    return orjson.loads(await client.request(method, f"/lamina/faults{path}", body=sent))


async def test_faults_are_set_shown_and_taken_back_over_http_whatever_is_broken(
    app: App, client: Client
) -> None:
    assert await faults_request(client, "GET") == {"faults": []}

    made = await faults_request(client, "POST", body={"fault": "silence", "verbs": ["get", "list"]})
    assert await faults_request(client, "GET") == {"faults": [{**made, "met": 0}]}
    replaced = await faults_request(client, "PUT", body={"faults": [shown(Slow(seconds=1)), shown(Stale())]})
    assert [one["fault"] for one in replaced["faults"]] == ["slow", "stale"]
    left = await faults_request(client, "DELETE", f"/{replaced['faults'][0]['id']}")
    assert [one["fault"] for one in left["faults"]] == ["stale"]

    assert await faults_request(client, "DELETE") == {"faults": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "complaint"),
    [
        ("POST", "", {"fault": "slow"}, "object missing required field seconds"),
        ("POST", "", [], "the request is no JSON object"),
        ("PUT", "", {}, "faults: expected a list of faults"),
        ("PUT", "", {"faults": [{"fault": "refuse", "rate": 2}]}, r"faults\[0\].rate: expected float <= 1.0"),
        ("DELETE", "/nobody", None, 'there is no fault "nobody"; the active faults are none'),
    ],
)
async def test_what_makes_no_sense_is_said(
    client: Client, method: str, path: str, body: object, complaint: str
) -> None:
    with pytest.raises((BadRequest, NotFound), match=complaint):
        await faults_request(client, method, path, body)


async def test_a_table_that_makes_no_sense_takes_the_place_of_none(app: App, client: Client) -> None:
    app.api.faults.add(Refuse(id="stays", users=("nobody",)))

    with pytest.raises(BadRequest, match="invalid value 'explode'"):
        await faults_request(client, "PUT", body={"faults": [{"fault": "silence"}, {"fault": "explode"}]})

    assert [entry.fault.id for entry in app.api.faults.entries] == ["stays"]


async def test_only_administrators_of_the_server_set_faults(app: App) -> None:
    jane = app.client(Identity("jane", ("system:authenticated",)))

    with pytest.raises(Forbidden, match='user "jane" does not administer this server'):
        await faults_request(jane, "GET")


@pytest.mark.parametrize("fault", [Silence(), Refuse(), Stale()])
async def test_requests_that_remove_faults_meet_no_fault(app: App, fault: Fault) -> None:
    mender = Client(HttpTransport(read_kubeconfig(app.kubeconfig)), manager="lamina-chaos")
    app.api.faults.add(fault)
    try:
        assert meta.name(await mender.get(Ref("v1", "Namespace", "", "default"))) == "default"
    finally:
        app.api.faults.clear()
        await mender.close()
