"""Streams, and clients that disconnect or stop reading."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import orjson
import pytest

from lamina.app import App
from lamina.server.api.assembly import assemble
from lamina.server.api.authn import Authenticator
from lamina.server.api.dispatch import Api
from lamina.server.http.connection import Connection
from lamina.server.http.connection_context import Timeouts
from lamina.server.http.request import Request, Response
from lamina.server.identity import ADMIN
from lamina.server.storage.bucket_history import Window
from lamina.server.storage.memory_store import MemoryStore
from lamina.server.storage.watch_cursor import WatchCursor
from lamina.server.tls.certificates import Certificates
from lamina.testing.waiting import eventually
from tests.server.raw_http import CONFIG_MAPS, TOKEN, Scripted, Served, Wire, reach, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

WATCH = f"{CONFIG_MAPS}?watch=1"


@asynccontextmanager
async def bare_server(
    certificates: Certificates, window: Window, timeouts: Timeouts | None = None
) -> AsyncIterator[tuple[Served, Api]]:
    """A server without controllers, so that all watches are the test's."""
    store = MemoryStore(window=window)
    api = assemble(store, lambda: datetime.now(UTC), Authenticator({TOKEN: ADMIN}), {})
    await api.handle(
        Request("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"default"}}', user=ADMIN)
    )
    async with serving(api, certificates, timeouts) as served:
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
        await wire.send(
            wire.request_bytes(
                "GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1&fieldSelector=metadata.name=x"
            )
        )
        head = await wire.read_head()

    assert (head.status, head.one("transfer-encoding"), head.one("content-length")) == (200, "chunked", None)


async def test_a_watch_that_is_not_read_costs_little_and_does_not_block_others(
    certificates: Certificates,
) -> None:
    """When it reads again and has missed too many events, it gets an error and the stream ends properly."""
    async with (
        bare_server(certificates, Window(events=40)) as (served, api),
        await served.connect() as asleep,
    ):
        awake = await served.connect()
        for wire in (asleep, awake):
            await wire.send(wire.request_bytes("GET", f"{WATCH}&allowWatchBookmarks=true"))
            await wire.read_head()
            assert b"initial-events-end" in await anext(wire.chunks())
        asleep.pause()
        seen = 0
        for number in range(400):
            await write(api, f"large-{number}", 100_000)
            seen += (await anext(awake.chunks())).count(b'"ADDED"')
        (unsent,) = {_unsent(one) for one in _connections()} - {0}
        asleep.resume()
        events = [orjson.loads(line) async for chunk in asleep.chunks() for line in chunk.splitlines()]
        after = await asleep.send_request("GET", "/version")
        awake.abort()

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
        await wire.send(wire.request_bytes("GET", WATCH))
        await wire.read_head()
        wire.pause()
        for number in range(300):
            await write(api, f"large-{number}", 100_000)
        # Bytes that it sends meanwhile do not mean that it reads.
        await wire.send(wire.request_bytes("GET", "/version"))
        async with await served.connect() as other:
            await other.send_request("GET", "/version")
        await eventually(lambda: served.listener.connected == 1)
        served.pass_time(59)
        assert served.listener.connected == 1
        await eventually(lambda: served.is_empty_after(61))
        await eventually(lambda: served.listener.in_progress == 0)


@pytest.mark.parametrize("politely", [True, False])
async def test_nothing_is_left_of_a_watcher_that_leaves(certificates: Certificates, politely: bool) -> None:
    async with bare_server(certificates, Window()) as (served, api):
        before = instances(WatchCursor)
        wires = [await served.connect() for _ in range(5)]
        for wire in wires:
            await wire.send(wire.request_bytes("GET", WATCH))
            await wire.read_head()
        await eventually(lambda: instances(WatchCursor) == before + 5)
        assert served.listener.in_progress == 5
        for wire in wires:
            if politely:
                await wire.close()
            else:
                wire.abort()
        await eventually(lambda: served.listener.connected == served.listener.in_progress == 0)
        await eventually(lambda: instances(WatchCursor) == before)
        await write(api, "after")


async def test_a_connection_that_has_ended_is_forgotten_at_once(certificates: Certificates) -> None:
    """Connection and parser refer to each other, and TLS buffers are too large to wait for the collector."""
    async with serving(Scripted(), certificates) as served:
        gc.collect()
        before = instances(Connection)
        gc.disable()
        try:
            for ending in ("Connection: close", "Connection: keep-alive"):
                for _ in range(10):
                    wire = await served.connect()
                    await wire.send_request("GET", "/", ending)
                    await wire.close()
            await eventually(lambda: served.listener.connected == 0)
            await eventually(lambda: instances(Connection) == before)
        finally:
            gc.enable()


async def test_a_stream_that_is_ready_when_its_client_has_gone_is_not_begun(
    certificates: Certificates,
) -> None:
    """Otherwise it would never end."""
    ready = asyncio.Event()
    told: list[str] = []

    class Chunks:
        def __aiter__(self) -> AsyncIterator[bytes]:
            told.append("begun")
            raise AssertionError("there is no client")

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

        async def aclose(self) -> None:
            told.append("closed")

    async def stream(request: Request) -> Response:
        await ready.wait()
        return Response(200, Chunks())

    handler = Scripted(later={"/stream": stream})
    async with serving(handler, certificates) as served:
        async with await served.connect() as wire:
            await wire.send(wire.request_bytes("GET", "/stream"))
            await eventually(lambda: served.listener.in_progress == 1)
        await eventually(lambda: served.listener.connected == 0)
        assert served.listener.in_progress == 1
        ready.set()
        await eventually(lambda: served.listener.in_progress == 0)

    assert told == ["closed"]


async def test_a_write_is_finished_without_its_client(certificates: Certificates) -> None:
    ready = asyncio.Event()
    written: list[bytes] = []

    async def write_down(request: Request) -> Response:
        await ready.wait()
        written.append(request.body)
        return Response(201, b"{}")

    handler = Scripted(later={"/": write_down})
    async with serving(handler, certificates) as served:
        async with await served.connect() as wire:
            await wire.send(wire.request_bytes("POST", "/", body=b"important"))
            await eventually(lambda: served.listener.in_progress == 1)
        await eventually(lambda: served.listener.connected == 0)
        gc.collect()
        ready.set()
        await eventually(lambda: served.listener.in_progress == 0)

    assert written == [b"important"]


async def test_a_write_that_did_not_arrive_whole_is_not_made(app: App) -> None:
    body = orjson.dumps({"metadata": {"name": "half"}})
    async with await reach(app) as wire:
        await wire.send(wire.request_bytes("POST", CONFIG_MAPS, body=body)[:-1])
    async with await reach(app) as wire:
        chunked = wire.request_bytes("POST", CONFIG_MAPS, "Transfer-Encoding: chunked")
        await wire.send(chunked + b"%x\r\n%b\r\n" % (len(body), body))
    async with await reach(app) as wire:
        found = await wire.send_request("GET", f"{CONFIG_MAPS}/half")

    assert found.status == 404


async def test_requests_behind_a_stream_are_answered_when_it_ends(app: App) -> None:
    async with await reach(app) as wire:
        await wire.send(
            wire.request_bytes("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1"),
            *[wire.request_bytes("GET", "/version")] * 3,
        )
        stream = await wire.read_response()
        after = [await wire.read_response() for _ in range(3)]

    assert stream.body.count(b'"ADDED"') >= 4
    assert [one.status for one in after] == [200, 200, 200]


async def test_hundreds_of_clients_are_served_at_once(app: App) -> None:
    path = f"{CONFIG_MAPS}/kube-root-ca.crt"
    # A few at a time: in one event loop, the client's part of the handshakes is the slow one.
    gate = asyncio.Semaphore(50)

    async def arrive() -> int:
        async with gate:
            wire = await reach(app)
            wires.append(wire)
            return (await wire.send_request("GET", path)).status

    wires: list[Wire] = []
    arrived = await asyncio.gather(*[arrive() for _ in range(500)])
    read = await asyncio.gather(*[wire.send_request("GET", path) for wire in wires])
    listed = await asyncio.gather(*[wire.send_request("GET", f"{CONFIG_MAPS}?limit=1") for wire in wires])
    for wire in wires:
        wire.abort()

    assert arrived == [200] * 500
    assert {one.status for one in read} == {one.status for one in listed} == {200}
