"""Shutdown: streams are ended, writes finished, and it does not wait for idle clients."""

import asyncio
import os
import signal
from base64 import b64encode
from collections.abc import AsyncIterator

import orjson
import pytest

from lamina.app import App
from lamina.server.http.listener import TlsFiles, tls_context
from lamina.server.http.request import Request, Response
from lamina.server.tls.certificates import Certificates
from lamina.settings import Settings
from lamina.testing.waiting import eventually
from tests.bed.embedded import embedded_server
from tests.server.raw_http import CONFIG_MAPS, TIMEOUT, Scripted, connect, reach, serving, tls_to


@pytest.mark.asyncio
async def test_watches_end_with_a_last_chunk() -> None:
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        wire = await reach(app)
        await wire.send(wire.request_bytes("GET", "/api/v1/namespaces?watch=1"))
        head = await wire.read_head()
        await app.stop()
        events = [orjson.loads(line) async for chunk in wire.chunks() for line in chunk.splitlines()]
        rest = await wire.ends()

    assert head.status == 200
    assert {one["type"] for one in events} == {"ADDED"}
    assert rest == b""


@pytest.mark.asyncio
async def test_a_write_that_waits_for_a_webhook_is_finished_and_answered(
    certificates: Certificates,
) -> None:
    """Webhook calls end after the requests that wait for them."""
    came, ready = asyncio.Event(), asyncio.Event()

    async def allow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"uid":"')
        uid = (await reader.readuntil(b'"'))[:-1].decode()
        came.set()
        await ready.wait()
        response = orjson.dumps(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": uid, "allowed": True},
            }
        )
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(response), response))
        writer.close()

    pair = certificates.server
    tls = tls_context(TlsFiles(pair.certificate, pair.key, certificates.authority.certificate))
    webhook = await asyncio.start_server(allow, "127.0.0.1", 0, ssl=tls)
    async with webhook, App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        where = {
            "url": f"https://127.0.0.1:{webhook.sockets[0].getsockname()[1]}/",
            "caBundle": b64encode(certificates.authority.certificate_pem).decode(),
        }
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["configmaps"],
        }
        requests = {
            "name": "check.example.com",
            "clientConfig": where,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [rule],
        }
        registered = await app.request(
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            body=orjson.dumps({"metadata": {"name": "check"}, "webhooks": [requests]}),
        )
        wire = await reach(app)
        await wire.send(wire.request_bytes("POST", CONFIG_MAPS, body=b'{"metadata":{"name":"late"}}'))
        async with asyncio.timeout(TIMEOUT):
            await came.wait()
        stopping = asyncio.create_task(app.stop())
        for _ in range(20):
            await asyncio.sleep(0)
        ready.set()
        answer = await wire.read_response()
        await stopping

    assert registered.status == 201
    assert answer.status == 201, answer.body


@pytest.mark.asyncio
async def test_an_accepted_write_is_finished_and_answered(certificates: Certificates) -> None:
    ready = asyncio.Event()
    written: list[bytes] = []

    async def write_down(request: Request) -> Response:
        await ready.wait()
        written.append(request.body)
        return Response(201, b'"written"')

    handler = Scripted(later={"/": write_down})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(
            wire.request_bytes("POST", "/", body=b"important") + wire.request_bytes("GET", "/not-begun")
        )
        await eventually(lambda: served.listener.in_progress == 1)
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        ready.set()
        answer, rest = await wire.read_response(), await wire.ends()
        await stopping

    assert (answer.status, answer.json, answer.one("connection")) == (201, "written", "close")
    assert rest == b""
    assert written == [b"important"]
    assert handler.requests == ["POST /"]


@pytest.mark.asyncio
async def test_a_write_whose_client_has_gone_is_finished(certificates: Certificates) -> None:
    ready = asyncio.Event()
    written: list[bytes] = []

    async def write_down(request: Request) -> Response:
        await ready.wait()
        await asyncio.sleep(0)
        written.append(request.body)
        return Response(201, b"{}")

    handler = Scripted(later={"/": write_down})
    async with serving(handler, certificates) as served:
        async with await served.connect() as wire:
            await wire.send(wire.request_bytes("POST", "/", body=b"important"))
            await eventually(lambda: served.listener.in_progress == 1)
        await eventually(lambda: served.listener.connected == 0)
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        ready.set()
        await stopping

    assert written == [b"important"]


@pytest.mark.asyncio
async def test_no_new_connection_is_accepted(certificates: Certificates) -> None:
    ready = asyncio.Event()

    async def slowly(request: Request) -> Response:
        await ready.wait()
        return Response(200, b'"slow"')

    handler = Scripted(later={"/slow": slowly})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("GET", "/slow"))
        await eventually(lambda: served.listener.in_progress == 1)
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        with pytest.raises(OSError):
            await served.connect()
        ready.set()
        assert (await wire.read_response()).json == "slow"
        await stopping


@pytest.mark.asyncio
async def test_idle_clients_and_those_in_the_middle_of_a_request_are_left(certificates: Certificates) -> None:
    handler = Scripted()
    async with serving(handler, certificates) as served:
        idle, silent, half = [await served.connect() for _ in range(3)]
        await idle.send_request("GET", "/")
        await half.send(half.request_bytes("POST", "/half", body=b"whole")[:-1])
        await eventually(lambda: served.listener.connected == 3)
        await served.listener.stop()
        rests = [await wire.ends() for wire in (idle, silent, half)]

    assert rests == [b"", b"", b""]
    assert served.listener.connected == 0
    assert handler.requests == ["GET /"]


@pytest.mark.asyncio
async def test_a_stream_that_has_an_end_of_its_own_is_not_cut_short_as_if_it_were_whole(
    certificates: Certificates,
) -> None:
    """A truncated backup that ends properly would be taken for a complete one."""
    ready = asyncio.Event()

    async def copy(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first half, "
            await ready.wait()
            yield b"second half"

        return Response(200, chunks(), "application/vnd.sqlite3")

    handler = Scripted(later={"/copy": copy})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("POST", "/copy"))
        await wire.read_head()
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        ready.set()
        body = b"".join([chunk async for chunk in wire.chunks()])
        await stopping

    assert body == b"first half, second half"


@pytest.mark.asyncio
async def test_an_unread_stream_does_not_delay_the_shutdown(certificates: Certificates) -> None:
    async def stream(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            # More than any buffer of the connection takes.
            for _ in range(10_000):
                yield b"x" * 100_000
                await asyncio.sleep(0)

        return Response(200, chunks())

    handler = Scripted(later={"/stream": stream})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("GET", "/stream?watch=1"))
        await wire.read_head()
        wire.pause()
        other = await served.connect()
        for _ in range(20):
            await other.send_request("GET", "/")
        async with asyncio.timeout(TIMEOUT):
            await served.listener.stop()
        await eventually(lambda: served.listener.connected == served.listener.in_progress == 0)


@pytest.mark.asyncio
async def test_a_request_for_which_nothing_is_done_does_not_hold_up_the_end(
    certificates: Certificates,
) -> None:
    """Such as one that a fault holds back, or one that winds the clock by years."""
    ended: list[bool] = []

    async def hold(request: Request) -> Response:
        request.abandonable = True
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        raise AssertionError("it is never released")

    handler = Scripted(later={"/": hold})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("POST", "/", body=b"{}"))
        await eventually(lambda: served.listener.in_progress == 1)
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        at_once = list(ended)
        rest = await wire.ends()
        await stopping

    assert at_once == [True]
    assert rest == b""


@pytest.mark.asyncio(loop_factories=["uvloop"])
async def test_a_process_that_is_told_to_end_ends_its_watches_first() -> None:
    """As a user runs it: `lamina up`, and SIGTERM."""
    with await asyncio.to_thread(embedded_server) as server:
        program = server.programs[0]
        tls = tls_to(server.ca_file)
        port = int(server.url.rpartition(":")[2])
        watch, idle = await connect(port, tls, server.token), await connect(port, tls, server.token)
        await watch.send(watch.request_bytes("GET", f"{CONFIG_MAPS}?watch=1"))
        head = await watch.read_head()
        made = await idle.send_request("POST", CONFIG_MAPS, body=b'{"metadata":{"name":"last"}}')
        os.kill(program.process.pid, signal.SIGTERM)
        events = [orjson.loads(line) async for chunk in watch.chunks() for line in chunk.splitlines()]
        rests = [await watch.ends(), await idle.ends()]
        code = await asyncio.to_thread(program.process.wait, TIMEOUT)
        response = program.log.read_text()

    assert (head.status, made.status, code) == (200, 201, 0)
    assert events[-1]["object"]["metadata"]["name"] == "last"
    assert rests == [b"", b""]
    assert "lamina stops, waiting for requests and writes in progress" in response
    assert "Traceback" not in response and "level=" not in response
