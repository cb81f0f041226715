"""Clients that take their time: how long they are waited for, and for what."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from lamina.server.certificates import Certificates
from lamina.server.desk import Patience
from lamina.server.request import Answer, Request
from tests.server.speaking import LONG, Scripted, Served, Wire, serving, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

LARGE = b"x" * (40 * 1024 * 1024)
"""More than the buffers of the operating system hold on the way."""


async def heard(served: Served, wire: Wire, data: bytes) -> None:
    """Say something, and have it heard: an answer to somebody who speaks later has been given."""
    await wire.say(data)
    async with await served.connect() as other:
        assert (await other.ask("GET", "/other", "Connection: close")).status == 200
        await other.ends()
    await until(lambda: served.listener.connected == 1)


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
        await heard(served, wire, beginning)
        served.pass_time(29)
        assert served.listener.connected == 1
        served.pass_time(31)
        assert await wire.ends() == b""


async def test_a_request_that_comes_in_drops_is_waited_for_no_longer(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        assert (await wire.ask("GET", "/first")).status == 200
        await heard(served, wire, b"GET / HTTP/1.1\r\nHost: x\r\n")
        began = asyncio.get_running_loop().time()
        for number in range(3):
            await heard(served, wire, b"A%d: b\r\n" % number)
        served.listener.sweep(began + 29)
        assert served.listener.connected == 1
        served.listener.sweep(began + 31)
        assert await wire.ends() == b""


async def test_a_request_that_began_behind_another_is_waited_for_as_long(certificates: Certificates) -> None:
    answered = asyncio.Event()

    async def slowly(request: Request) -> Answer:
        await answered.wait()
        return Answer(200, b'"slow"')

    handler = Scripted(later={"/slow": slowly})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await heard(served, wire, wire.asking("POST", "/slow") + b"GET / HTTP/1.1\r\n")
        served.pass_time(1000)
        answered.set()
        assert (await wire.hear()).json == "slow"
        served.pass_time(29)
        assert served.listener.connected == 1
        served.pass_time(31)
        assert await wire.ends() == b""


async def test_an_idle_connection_is_kept_for_minutes(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        for _ in range(2):
            assert (await wire.ask("GET", "/")).status == 200
            served.pass_time(170)
            assert served.listener.connected == 1
        served.pass_time(190)
        assert await wire.ends() == b""


async def test_line_ends_alone_do_not_keep_a_connection(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, await served.connect() as wire:
        assert (await wire.ask("GET", "/")).status == 200
        began = asyncio.get_running_loop().time()
        await heard(served, wire, b"\r\n\r\n")
        served.listener.sweep(began + 181)
        assert await wire.ends() == b""


async def test_who_waits_for_us_is_never_late(certificates: Certificates) -> None:
    answered = asyncio.Event()

    async def slowly(request: Request) -> Answer:
        await answered.wait()
        return Answer(200, b'"slow"')

    async def stream(request: Request) -> Answer:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            await answered.wait()
            yield b"last"

        return Answer(200, chunks())

    handler = Scripted(later={"/slow": slowly, "/stream": stream})
    async with serving(handler, certificates) as served, await served.connect() as one:
        other = await served.connect()
        await one.say(one.asking("POST", "/slow"))
        await other.say(other.asking("GET", "/stream"))
        await until(lambda: served.listener.answering == 2)
        served.pass_time(100_000)
        answered.set()

        assert (await one.hear()).json == "slow"
        assert (await other.hear()).body == b"firstlast"
        await other.leave()


async def test_an_answer_that_nobody_reads_is_not_kept_for_ever(certificates: Certificates) -> None:
    handler = Scripted(now={"/large": lambda request: Answer(200, LARGE)})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        wire.pause()
        await wire.say(wire.asking("GET", "/large"))
        await until(lambda: handler.asked == ["GET /large"])
        served.pass_time(59)
        assert served.listener.connected == 1
        await until(lambda: served.gone_after(61))


async def test_whoever_reads_slowly_is_not_late(certificates: Certificates) -> None:
    handler = Scripted(now={"/large": lambda request: Answer(200, LARGE)})
    async with serving(handler, certificates) as served, await served.connect() as wire:
        await wire.say(wire.asking("GET", "/large"))
        answer = await wire.hear_head()
        left = int(answer.one("content-length") or 0)
        for _ in range(3):
            served.pass_time(59)
            async with asyncio.timeout(LONG):
                left -= len(await wire.reader.readexactly(1 << 22))
        async with asyncio.timeout(LONG):
            await wire.reader.readexactly(left)
        after = await wire.ask("GET", "/after")

    assert after.json == "/after"


async def test_a_last_answer_is_sent_whole_to_whoever_reads_slowly(certificates: Certificates) -> None:
    """Closing gives what is unsent a few seconds; a large answer is given as long as it takes."""
    handler = Scripted(now={"/large": lambda request: Answer(200, LARGE)})
    patience = Patience(leaving=0.05)
    async with serving(handler, certificates, patience) as served, await served.connect() as wire:
        wire.pause()
        await wire.say(wire.asking("GET", "/large", "Connection: close"))
        await until(lambda: handler.asked == ["GET /large"])
        async with await served.connect() as other:
            for _ in range(50):
                await other.ask("GET", "/other")
                await asyncio.sleep(0.002)
        wire.resume()
        answer, rest = await wire.hear(), await wire.ends()

    assert answer.body == LARGE
    assert rest == b""


async def test_requests_of_a_client_that_reads_no_answers_are_left_unread(certificates: Certificates) -> None:
    """Otherwise answers would pile up here as fast as somebody can ask."""
    body = b"x" * 100_000
    handler = Scripted(now={"/large": lambda request: Answer(200, body)})
    count = 400
    async with serving(handler, certificates) as served, await served.connect() as wire:
        wire.pause()
        for _ in range(count):
            wire.writer.write(wire.asking("GET", "/large"))
        await until(lambda: len(handler.asked) > 2)
        async with await served.connect() as other:
            for _ in range(20):
                assert (await other.ask("GET", "/other")).status == 200
        asked = handler.asked.count("GET /large")
        wire.resume()
        for _ in range(count):
            assert (await wire.hear()).body == body

    assert asked < count // 2
    assert handler.asked.count("GET /large") == count


async def test_whoever_does_not_finish_the_handshake_is_sent_away(certificates: Certificates) -> None:
    patience = Patience(connecting=1.0)
    async with serving(Scripted(), certificates, patience) as served, asyncio.timeout(LONG):
        loop = asyncio.get_running_loop()
        with socket.socket() as plain:
            plain.setblocking(False)
            await loop.sock_connect(plain, ("127.0.0.1", served.port))
            with suppress(ConnectionResetError):
                assert await loop.sock_recv(plain, 100) == b""
        async with await served.connect() as wire:
            assert (await wire.ask("GET", "/")).status == 200


async def test_http_without_tls_is_not_answered(certificates: Certificates) -> None:
    async with serving(Scripted(), certificates) as served, asyncio.timeout(LONG):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionResetError):
            assert b"HTTP" not in await reader.read()
        writer.close()
        async with await served.connect() as wire:
            assert (await wire.ask("GET", "/")).status == 200


async def test_one_client_with_many_requests_does_not_keep_others_waiting(certificates: Certificates) -> None:
    handler = Scripted()
    async with serving(handler, certificates) as served, await served.connect() as many:
        async with await served.connect() as one:
            many.writer.write(many.asking("GET", "/many") * 3000)
            one.writer.write(one.asking("GET", "/one"))
            answer = await one.hear()
        before = len(handler.asked)
        for _ in range(3000):
            assert (await many.hear()).json == "/many"

    assert answer.json == "/one"
    assert before < 3000
