"""Streams, and clients that leave or stop reading in the middle of things."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson
import pytest

from lamina.app import App
from lamina.server.api import Api
from lamina.server.assembly import assemble
from lamina.server.bucket import Window
from lamina.server.certificates import Certificates
from lamina.server.connection import Connection
from lamina.server.desk import Patience
from lamina.server.follower import Reader
from lamina.server.identity import Authenticator
from lamina.server.memory import MemoryStore
from lamina.server.request import ADMIN, Answer, Request
from tests.server.speaking import CONFIG_MAPS, TOKEN, Scripted, Served, Wire, reach, serving, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

WATCH = f"{CONFIG_MAPS}?watch=1"


@asynccontextmanager
async def bare_server(
    certificates: Certificates, window: Window, patience: Patience | None = None
) -> AsyncIterator[tuple[Served, Api]]:
    """A server without actors, so that whoever follows its log is a client of the test's."""
    store = MemoryStore(window=window)
    api = assemble(store, lambda: datetime.now(UTC), Authenticator({TOKEN: ADMIN}), {})
    await api.handle(
        Request("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"default"}}', user=ADMIN)
    )
    async with serving(api, certificates, patience) as served:
        yield served, api
    await store.close()


async def write(api: Api, name: str, size: int = 10) -> None:
    body = orjson.dumps({"metadata": {"name": name}, "data": {"a": "x" * size}})
    answer = await api.handle(Request("POST", CONFIG_MAPS, body=body, user=ADMIN))
    assert answer.status == 201


def instances(kind: type) -> int:
    return sum(isinstance(one, kind) for one in gc.get_objects())


async def test_a_watch_says_at_once_that_it_has_begun(app: App) -> None:
    async with await reach(app) as wire:
        await wire.say(
            wire.asking("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1&fieldSelector=metadata.name=x")
        )
        head = await wire.hear_head()

    assert (head.status, head.one("transfer-encoding"), head.one("content-length")) == (200, "chunked", None)


async def test_a_watcher_that_reads_nothing_costs_little_and_holds_up_nobody(
    certificates: Certificates,
) -> None:
    """When it reads on, and has missed too much, it is told so and the stream ends as it should."""
    async with (
        bare_server(certificates, Window(events=40)) as (served, api),
        await served.connect() as asleep,
    ):
        awake = await served.connect()
        for wire in (asleep, awake):
            await wire.say(wire.asking("GET", f"{WATCH}&allowWatchBookmarks=true"))
            await wire.hear_head()
            assert b"initial-events-end" in await anext(wire.chunks())
        asleep.pause()
        seen = 0
        for number in range(400):
            await write(api, f"large-{number}", 100_000)
            seen += (await anext(awake.chunks())).count(b'"ADDED"')
        (unsent,) = {_unsent(one) for one in _connections()} - {0}
        asleep.resume()
        events = [orjson.loads(line) async for chunk in asleep.chunks() for line in chunk.splitlines()]
        after = await asleep.ask("GET", "/version")
        awake.vanish()

    assert seen == 400
    assert unsent < 1024 * 1024
    assert {one["type"] for one in events[:-1]} == {"ADDED"}
    assert len(events) < 400
    assert (events[-1]["type"], events[-1]["object"]["code"]) == ("ERROR", 410)
    assert events[-1]["object"]["message"].startswith("too old resource version")
    assert after.status == 200


def _connections() -> list[Connection]:
    return [one for one in gc.get_objects() if isinstance(one, Connection)]


def _unsent(connection: Connection) -> int:
    return connection._transport.get_write_buffer_size()


async def test_a_watcher_that_never_reads_again_is_left(certificates: Certificates) -> None:
    async with bare_server(certificates, Window()) as (served, api), await served.connect() as wire:
        await wire.say(wire.asking("GET", WATCH))
        await wire.hear_head()
        wire.pause()
        for number in range(300):
            await write(api, f"large-{number}", 100_000)
        # What it says meanwhile is no sign that it reads.
        await wire.say(wire.asking("GET", "/version"))
        async with await served.connect() as other:
            await other.ask("GET", "/version")
        await until(lambda: served.listener.connected == 1)
        served.pass_time(59)
        assert served.listener.connected == 1
        await until(lambda: served.gone_after(61))
        await until(lambda: served.listener.answering == 0)


@pytest.mark.parametrize("politely", [True, False])
async def test_nothing_is_left_of_a_watcher_that_leaves(certificates: Certificates, politely: bool) -> None:
    async with bare_server(certificates, Window()) as (served, api):
        before = instances(Reader)
        wires = [await served.connect() for _ in range(5)]
        for wire in wires:
            await wire.say(wire.asking("GET", WATCH))
            await wire.hear_head()
        await until(lambda: instances(Reader) == before + 5)
        assert served.listener.answering == 5
        for wire in wires:
            if politely:
                await wire.leave()
            else:
                wire.vanish()
        await until(lambda: served.listener.connected == served.listener.answering == 0)
        await until(lambda: instances(Reader) == before)
        await write(api, "after")


async def test_a_connection_that_has_ended_is_forgotten_at_once(certificates: Certificates) -> None:
    """It and its parser know each other, and what they hold of TLS is too much to wait for the collector."""
    async with serving(Scripted(), certificates) as served:
        gc.collect()
        before = instances(Connection)
        gc.disable()
        try:
            for ending in ("Connection: close", "Connection: keep-alive"):
                for _ in range(10):
                    wire = await served.connect()
                    await wire.ask("GET", "/", ending)
                    await wire.leave()
            await until(lambda: served.listener.connected == 0)
            await until(lambda: instances(Connection) == before)
        finally:
            gc.enable()


async def test_a_stream_that_is_ready_when_its_client_has_gone_is_not_begun(
    certificates: Certificates,
) -> None:
    """Nobody would ever end it."""
    ready = asyncio.Event()
    told: list[str] = []

    class Chunks:
        def __aiter__(self) -> AsyncIterator[bytes]:
            told.append("begun")
            raise AssertionError("nobody is there")

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

        async def aclose(self) -> None:
            told.append("closed")

    async def stream(request: Request) -> Answer:
        await ready.wait()
        return Answer(200, Chunks())

    handler = Scripted(later={"/stream": stream})
    async with serving(handler, certificates) as served:
        async with await served.connect() as wire:
            await wire.say(wire.asking("GET", "/stream"))
            await until(lambda: served.listener.answering == 1)
        await until(lambda: served.listener.connected == 0)
        assert served.listener.answering == 1
        ready.set()
        await until(lambda: served.listener.answering == 0)

    assert told == ["closed"]


async def test_a_write_is_finished_without_its_client(certificates: Certificates) -> None:
    ready = asyncio.Event()
    written: list[bytes] = []

    async def write_down(request: Request) -> Answer:
        await ready.wait()
        written.append(request.body)
        return Answer(201, b"{}")

    handler = Scripted(later={"/": write_down})
    async with serving(handler, certificates) as served:
        async with await served.connect() as wire:
            await wire.say(wire.asking("POST", "/", body=b"important"))
            await until(lambda: served.listener.answering == 1)
        await until(lambda: served.listener.connected == 0)
        gc.collect()
        ready.set()
        await until(lambda: served.listener.answering == 0)

    assert written == [b"important"]


async def test_a_write_that_did_not_arrive_whole_is_not_made(app: App) -> None:
    body = orjson.dumps({"metadata": {"name": "half"}})
    async with await reach(app) as wire:
        await wire.say(wire.asking("POST", CONFIG_MAPS, body=body)[:-1])
    async with await reach(app) as wire:
        chunked = wire.asking("POST", CONFIG_MAPS, "Transfer-Encoding: chunked")
        await wire.say(chunked + b"%x\r\n%b\r\n" % (len(body), body))
    async with await reach(app) as wire:
        found = await wire.ask("GET", f"{CONFIG_MAPS}/half")

    assert found.status == 404


async def test_requests_behind_a_stream_are_answered_when_it_ends(app: App) -> None:
    async with await reach(app) as wire:
        await wire.say(
            wire.asking("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1"),
            *[wire.asking("GET", "/version")] * 3,
        )
        stream = await wire.hear()
        after = [await wire.hear() for _ in range(3)]

    assert stream.body.count(b'"ADDED"') >= 4
    assert [one.status for one in after] == [200, 200, 200]


async def test_hundreds_of_clients_are_served_at_once(app: App) -> None:
    path = f"{CONFIG_MAPS}/kube-root-ca.crt"
    # A few at a time: a client that shares its loop with the server is the slow side of a handshake.
    gate = asyncio.Semaphore(50)

    async def arrive() -> int:
        async with gate:
            wire = await reach(app)
            wires.append(wire)
            return (await wire.ask("GET", path)).status

    wires: list[Wire] = []
    arrived = await asyncio.gather(*[arrive() for _ in range(500)])
    read = await asyncio.gather(*[wire.ask("GET", path) for wire in wires])
    listed = await asyncio.gather(*[wire.ask("GET", f"{CONFIG_MAPS}?limit=1") for wire in wires])
    for wire in wires:
        wire.vanish()

    assert arrived == [200] * 500
    assert {one.status for one in read} == {one.status for one in listed} == {200}
