"""Timeouts of slow clients."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from lamina.server.http.connection_context import Timeouts
from lamina.server.http.request import Request, Response
from lamina.server.tls.certificates import Certificates
from lamina.testing.waiting import eventually
from tests.server.raw_http import TIMEOUT, Scripted, Served, Wire, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

LARGE = b"x" * (40 * 1024 * 1024)
"""More than the buffers of the operating system hold."""


async def send_until_read(served: Served, wire: Wire, data: bytes) -> None:
    """Send bytes and wait until the server has read them, which a later response shows."""
    await wire.send(data)
    async with await served.connect() as other:
        assert (await other.send_request("GET", "/other", "Connection: close")).status == 200
        await other.ends()
    await eventually(lambda: served.listener.connected == 1)


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"\r\n",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",
    ],
)
async def test_a_request_that_has_begun_is_waited_for_half_a_minute(
    certificates: Certificates, beginning: bytes
) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        await send_until_read(served, wire, beginning)
        served.pass_time(29)
        assert served.listener.connected == 1
        served.pass_time(31)
        assert await wire.ends() == b""


async def test_a_request_that_comes_in_drops_is_waited_for_no_longer(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        assert (await wire.send_request("GET", "/first")).status == 200
        await send_until_read(served, wire, b"GET / HTTP/1.1\r\nHost: x\r\n")
        began = asyncio.get_running_loop().time()
        for number in range(3):
            await send_until_read(served, wire, b"A%d: b\r\n" % number)
        served.listener.sweep(began + 29)
        assert served.listener.connected == 1
        served.listener.sweep(began + 31)
        assert await wire.ends() == b""


async def test_a_request_that_began_behind_another_is_waited_for_as_long(certificates: Certificates) -> None:
    answered = asyncio.Event()

    async def slowly(request: Request) -> Response:
        await answered.wait()
        return Response(200, b'"slow"')

    handler = Scripted(later={"/slow": slowly})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await send_until_read(served, wire, wire.request_bytes("POST", "/slow") + b"GET / HTTP/1.1\r\n")
        served.pass_time(1000)
        answered.set()
        assert (await wire.read_response()).json == "slow"
        served.pass_time(29)
        assert served.listener.connected == 1
        served.pass_time(31)
        assert await wire.ends() == b""


async def test_an_idle_connection_is_kept_for_minutes(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        for _ in range(2):
            assert (await wire.send_request("GET", "/")).status == 200
            served.pass_time(170)
            assert served.listener.connected == 1
        served.pass_time(190)
        assert await wire.ends() == b""


async def test_line_ends_alone_do_not_keep_a_connection(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        assert (await wire.send_request("GET", "/")).status == 200
        began = asyncio.get_running_loop().time()
        await send_until_read(served, wire, b"\r\n\r\n")
        served.listener.sweep(began + 181)
        assert await wire.ends() == b""


async def test_who_waits_for_us_is_never_late(certificates: Certificates) -> None:
    answered = asyncio.Event()

    async def slowly(request: Request) -> Response:
        await answered.wait()
        return Response(200, b'"slow"')

    async def stream(request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            await answered.wait()
            yield b"last"

        return Response(200, chunks())

    handler = Scripted(later={"/slow": slowly, "/stream": stream})
    async with serving(handler, certificates) as served, await served.connect() as one:
        other = await served.connect()
        await one.send(one.request_bytes("POST", "/slow"))
        await other.send(other.request_bytes("GET", "/stream"))
        await eventually(lambda: served.listener.in_progress == 2)
        served.pass_time(100_000)
        answered.set()

        assert (await one.read_response()).json == "slow"
        assert (await other.read_response()).body == b"firstlast"
        await other.close()


async def test_an_unread_response_is_not_kept_for_ever(certificates: Certificates) -> None:
    handler = Scripted(now={"/large": lambda request: Response(200, LARGE)})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        wire.pause()
        await wire.send(wire.request_bytes("GET", "/large"))
        await eventually(lambda: handler.requests == ["GET /large"])
        served.pass_time(59)
        assert served.listener.connected == 1
        await eventually(lambda: served.is_empty_after(61))


async def test_a_slow_reader_is_not_overdue(certificates: Certificates) -> None:
    handler = Scripted(now={"/large": lambda request: Response(200, LARGE)})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.send(wire.request_bytes("GET", "/large"))
        answer = await wire.read_head()
        left = int(answer.one("content-length") or 0)
        for _ in range(3):
            served.pass_time(59)
            async with asyncio.timeout(TIMEOUT):
                left -= len(await wire.reader.readexactly(1 << 22))
        async with asyncio.timeout(TIMEOUT):
            await wire.reader.readexactly(left)
        after = await wire.send_request("GET", "/after")

    assert after.json == "/after"


async def test_a_last_response_is_sent_whole_to_a_slow_reader(certificates: Certificates) -> None:
    """Closing allows a few seconds for unsent bytes; a large response may take longer."""
    handler = Scripted(now={"/large": lambda request: Response(200, LARGE)})
    timeouts = Timeouts(leaving=0.05)
    async with serving(handler, certificates, timeouts) as served, await served.connect() as wire:
        wire.pause()
        await wire.send(wire.request_bytes("GET", "/large", "Connection: close"))
        await eventually(lambda: handler.requests == ["GET /large"])
        async with await served.connect() as other:
            for _ in range(50):
                await other.send_request("GET", "/other")
                await asyncio.sleep(0.002)
        wire.resume()
        answer, rest = await wire.read_response(), await wire.ends()

    assert answer.body == LARGE
    assert rest == b""


async def test_requests_of_a_client_that_reads_no_answers_are_left_unread(certificates: Certificates) -> None:
    """Otherwise responses would accumulate as fast as a client can send requests."""
    body = b"x" * 100_000
    handler = Scripted(now={"/large": lambda request: Response(200, body)})
    count = 400
    async with serving(handler, certificates) as served, await served.connect() as wire:
        wire.pause()
        for _ in range(count):
            wire.writer.write(wire.request_bytes("GET", "/large"))
        await eventually(lambda: len(handler.requests) > 2)
        async with await served.connect() as other:
            for _ in range(20):
                assert (await other.send_request("GET", "/other")).status == 200
        requests = handler.requests.count("GET /large")
        wire.resume()
        for _ in range(count):
            assert (await wire.read_response()).body == body

    assert requests < count // 2
    assert handler.requests.count("GET /large") == count


async def test_a_client_that_does_not_finish_the_handshake_is_closed(certificates: Certificates) -> None:
    timeouts = Timeouts(connecting=1.0)
    async with serving(Scripted(), certificates, timeouts) as served, asyncio.timeout(TIMEOUT):
        loop = asyncio.get_running_loop()
        with socket.socket() as plain:
            plain.setblocking(False)
            await loop.sock_connect(plain, ("127.0.0.1", served.port))
            with suppress(ConnectionResetError):
                assert await loop.sock_recv(plain, 100) == b""
        async with await served.connect() as wire:
            assert (await wire.send_request("GET", "/")).status == 200


async def test_http_without_tls_is_not_answered(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, asyncio.timeout(TIMEOUT):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionResetError):
            assert b"HTTP" not in await reader.read()
        writer.close()
        async with await served.connect() as wire:
            assert (await wire.send_request("GET", "/")).status == 200


async def test_one_client_with_many_requests_does_not_keep_others_waiting(certificates: Certificates) -> None:
    handler = Scripted()
    async with serving(handler, certificates) as served, await served.connect() as many:
        async with await served.connect() as one:
            many.writer.write(many.request_bytes("GET", "/many") * 3000)
            one.writer.write(one.request_bytes("GET", "/one"))
            answer = await one.read_response()
        before = len(handler.requests)
        for _ in range(3000):
            assert (await many.read_response()).json == "/many"

    assert answer.json == "/one"
    assert before < 3000
