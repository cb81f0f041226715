"""The end: streams are ended, writes finished, nobody is kept waiting."""

import asyncio
import os
import signal
from base64 import b64encode
from collections.abc import AsyncIterator

import orjson
import pytest

from lamina.app import App
from lamina.server.certificates import Certificates
from lamina.server.listener import TlsFiles, tls_context
from lamina.server.request import Answer, Request
from lamina.settings import Settings
from tests.bed.embedded import embedded_server
from tests.server.speaking import CONFIG_MAPS, LONG, Scripted, connect, reach, serving, tls_to, until


@pytest.mark.asyncio
async def test_watches_end_with_a_last_chunk() -> None:
    async with App(Settings(ephemeral=True, port=0, simulate="off")) as app:
        wire = await reach(app)
        await wire.say(wire.asking("GET", "/api/v1/namespaces?watch=1"))
        head = await wire.hear_head()
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
    """Whoever asks webhooks ends after those who wait for their answers."""
    came, ready = asyncio.Event(), asyncio.Event()

    async def allow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"uid":"')
        uid = (await reader.readuntil(b'"'))[:-1].decode()
        came.set()
        await ready.wait()
        said = orjson.dumps(
            {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": uid, "allowed": True},
            }
        )
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said))
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
        asked = {
            "name": "check.example.com",
            "clientConfig": where,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [rule],
        }
        registered = await app.request(
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            body=orjson.dumps({"metadata": {"name": "check"}, "webhooks": [asked]}),
        )
        wire = await reach(app)
        await wire.say(wire.asking("POST", CONFIG_MAPS, body=b'{"metadata":{"name":"late"}}'))
        async with asyncio.timeout(LONG):
            await came.wait()
        stopping = asyncio.create_task(app.stop())
        for _ in range(20):
            await asyncio.sleep(0)
        ready.set()
        answer = await wire.hear()
        await stopping

    assert registered.status == 201
    assert answer.status == 201, answer.body


@pytest.mark.asyncio
async def test_an_accepted_write_is_finished_and_answered(certificates: Certificates) -> None:
    ready = asyncio.Event()
    written: list[bytes] = []

    async def write_down(request: Request) -> Answer:
        await ready.wait()
        written.append(request.body)
        return Answer(201, b'"written"')

    handler = Scripted(later={"/": write_down})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.say(wire.asking("POST", "/", body=b"important") + wire.asking("GET", "/not-begun"))
        await until(lambda: served.listener.answering == 1)
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        ready.set()
        answer, rest = await wire.hear(), await wire.ends()
        await stopping

    assert (answer.status, answer.json, answer.one("connection")) == (201, "written", "close")
    assert rest == b""
    assert written == [b"important"]
    assert handler.asked == ["POST /"]


@pytest.mark.asyncio
async def test_a_write_whose_client_has_gone_is_finished(certificates: Certificates) -> None:
    ready = asyncio.Event()
    written: list[bytes] = []

    async def write_down(request: Request) -> Answer:
        await ready.wait()
        await asyncio.sleep(0)
        written.append(request.body)
        return Answer(201, b"{}")

    handler = Scripted(later={"/": write_down})
    async with serving(handler, certificates) as served:
        async with await served.connect() as wire:
            await wire.say(wire.asking("POST", "/", body=b"important"))
            await until(lambda: served.listener.answering == 1)
        await until(lambda: served.listener.connected == 0)
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        ready.set()
        await stopping

    assert written == [b"important"]


@pytest.mark.asyncio
async def test_nobody_new_is_let_in(certificates: Certificates) -> None:
    ready = asyncio.Event()

    async def slowly(request: Request) -> Answer:
        await ready.wait()
        return Answer(200, b'"slow"')

    handler = Scripted(later={"/slow": slowly})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.say(wire.asking("GET", "/slow"))
        await until(lambda: served.listener.answering == 1)
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        with pytest.raises(OSError):
            await served.connect()
        ready.set()
        assert (await wire.hear()).json == "slow"
        await stopping


@pytest.mark.asyncio
async def test_idle_clients_and_those_in_the_middle_of_a_request_are_left(certificates: Certificates) -> None:
    handler = Scripted()
    async with serving(handler, certificates) as served:
        idle, silent, half = [await served.connect() for _ in range(3)]
        await idle.ask("GET", "/")
        await half.say(half.asking("POST", "/half", body=b"whole")[:-1])
        await until(lambda: served.listener.connected == 3)
        await served.listener.stop()
        rests = [await wire.ends() for wire in (idle, silent, half)]

    assert rests == [b"", b"", b""]
    assert served.listener.connected == 0
    assert handler.asked == ["GET /"]


@pytest.mark.asyncio
async def test_a_stream_that_has_an_end_of_its_own_is_not_cut_short_as_if_it_were_whole(
    certificates: Certificates,
) -> None:
    """Half a backup that ends well would be taken for a whole one."""
    ready = asyncio.Event()

    async def copy(request: Request) -> Answer:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first half, "
            await ready.wait()
            yield b"second half"

        return Answer(200, chunks(), "application/vnd.sqlite3")

    handler = Scripted(later={"/copy": copy})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.say(wire.asking("POST", "/copy"))
        await wire.hear_head()
        stopping = asyncio.create_task(served.listener.stop())
        await asyncio.sleep(0)
        ready.set()
        body = b"".join([chunk async for chunk in wire.chunks()])
        await stopping

    assert body == b"first half, second half"


@pytest.mark.asyncio
async def test_a_stream_that_nobody_reads_does_not_hold_up_the_end(certificates: Certificates) -> None:
    async def stream(request: Request) -> Answer:
        async def chunks() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 100_000
                await asyncio.sleep(0)

        return Answer(200, chunks())

    handler = Scripted(later={"/stream": stream})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.say(wire.asking("GET", "/stream?watch=1"))
        await wire.hear_head()
        wire.pause()
        other = await served.connect()
        for _ in range(20):
            await other.ask("GET", "/")
        async with asyncio.timeout(LONG):
            await served.listener.stop()
        await until(lambda: served.listener.connected == served.listener.answering == 0)


@pytest.mark.asyncio
async def test_a_request_for_which_nothing_is_done_does_not_hold_up_the_end(
    certificates: Certificates,
) -> None:
    """Such as one that a fault keeps without an answer, or one that winds the clock by years."""
    ended: list[bool] = []

    async def hold(request: Request) -> Answer:
        request.held = True
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        raise AssertionError("nobody lets go of it")

    handler = Scripted(later={"/": hold})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.say(wire.asking("POST", "/", body=b"{}"))
        await until(lambda: served.listener.answering == 1)
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
        await watch.say(watch.asking("GET", f"{CONFIG_MAPS}?watch=1"))
        head = await watch.hear_head()
        made = await idle.ask("POST", CONFIG_MAPS, body=b'{"metadata":{"name":"last"}}')
        os.kill(program.process.pid, signal.SIGTERM)
        events = [orjson.loads(line) async for chunk in watch.chunks() for line in chunk.splitlines()]
        rests = [await watch.ends(), await idle.ends()]
        code = await asyncio.to_thread(program.process.wait, LONG)
        said = program.log.read_text()

    assert (head.status, made.status, code) == (200, 201, 0)
    assert events[-1]["object"]["metadata"]["name"] == "last"
    assert rests == [b"", b""]
    assert "stopping" in said
    assert "Traceback" not in said and "level=" not in said
