"""The little HTTP that a write takes, with servers of every kind on the other side."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from lamina.client.lines import Answer, HungUp, Lines


@dataclass
class Told:
    """What a server was told: how many connections were made, and every request."""

    url: str = ""
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    serving: list[asyncio.Task[None] | None] = field(default_factory=list)


@asynccontextmanager
async def answering(*answers: bytes | Sequence[bytes] | None) -> AsyncIterator[Told]:
    """A server that gives these answers one after another, over as many connections as are made; None hangs up."""
    told, waiting = Told(), iter(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.connections += 1
        told.serving.append(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                told.requests.append(head + await reader.readexactly(length))
                told.asked.set()
                answer = next(waiting)
                if answer is None:
                    return
                for piece in (answer,) if isinstance(answer, bytes) else answer:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if b"close" in (answer if isinstance(answer, bytes) else b"".join(answer)):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        told.url = f"http://{host}:{port}/base"
        yield told
        await asyncio.gather(*(task for task in told.serving if task is not None))


@asynccontextmanager
async def lines(told: Told, timeout: float | None = 60.0) -> AsyncIterator[Lines]:
    made = Lines(told.url, None, timeout)
    try:
        yield made
    finally:
        await made.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def test_writes_one_after_another_share_a_connection() -> None:
    async with answering(OK, OK) as told, lines(told) as http:
        first = await http.send("POST", "/x?a=b", {"accept": "application/json"}, b"body")
        second = await http.send("DELETE", "/y", {}, None)

    assert first == second == Answer(200, {"content-type": "application/json", "content-length": "2"}, b"{}")
    assert told.connections == 1
    host = told.url.partition("://")[2].partition("/")[0].encode()
    assert told.requests == [
        b"POST /base/x?a=b HTTP/1.1\r\nhost: %b\r\naccept: application/json\r\ncontent-length: 4\r\n\r\nbody"
        % host,
        b"DELETE /base/y HTTP/1.1\r\nhost: %b\r\ncontent-length: 0\r\n\r\n" % host,
    ]


async def test_writes_side_by_side_have_a_connection_each() -> None:
    async with answering(OK, OK, OK) as told, lines(told) as http:
        await asyncio.gather(*(http.send("POST", "/x", {}, b"{}") for _ in range(3)))

    assert told.connections == 3


CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "status", "body"),
    [
        ([OK[:9], OK[9:40], OK[40:-1], OK[-1:]],                          200, b"{}"),
        ([CHUNKED + b"3\r\none\r\n", b"4;x=y\r\nthree"[:-1], b"\r\n0\r\n\r\n"], 201, b"onethre"),
        ([CHUNKED + b"1\r", b"\na\r\n0\r\n", b"Trailer: x\r\n\r\n"],        201, b"a"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", OK],                          200, b"{}"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"],                            204, b""),
        ([b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end"],     200, b"to the end"),
        ([b"HTTP/1.0 200 OK\r\nServer: close\r\n\r\nold"],                200, b"old"),
    ],
)  # fmt: skip
async def test_an_answer_is_read_however_it_comes(said: Sequence[bytes], status: int, body: bytes) -> None:
    async with answering(said) as told, lines(told) as http:
        answer = await http.send("PUT", "/x", {}, b"{}")

    assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize(
    "said",
    [
        b"220 smtp ready\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: few\r\n\r\n",
        CHUNKED + b"no number\r\n",
        CHUNKED + b"1\r\nlonger\r\n",
    ],
)
async def test_an_answer_that_makes_no_sense_is_an_error(said: bytes) -> None:
    async with answering(said) as told, lines(told) as http:
        with pytest.raises(ConnectionError, match="makes no sense"):
            await http.send("POST", "/x", {}, b"{}")


async def test_an_answer_that_breaks_off_is_an_error() -> None:
    async with answering(b"HTTP/1.1 200 close\r\nContent-Length: 10\r\n\r\n{") as told, lines(told) as http:
        with pytest.raises(HungUp):
            await http.send("PUT", "/x", {}, b"{}")


@pytest.mark.parametrize(
    ("method", "again"), [("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)]
)
async def test_a_connection_that_ended_unseen_costs_only_what_cannot_be_sent_twice(
    method: str, again: bool
) -> None:
    async with answering(OK, None, OK) as told, lines(told) as http:
        await http.send("POST", "/x", {}, b"{}")
        if again:
            assert (await http.send(method, "/x", {}, b"{}")).status == 200
        else:
            with pytest.raises(HungUp):
                await http.send(method, "/x", {}, b"{}")

    assert told.connections == 1 + again


async def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    closing = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    async with answering(closing, OK) as told, lines(told) as http:
        await http.send("POST", "/x", {}, b"{}")
        await http.send("POST", "/x", {}, b"{}")

    assert told.connections == 2


async def test_nobody_waits_longer_than_they_may() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n") as told, lines(told, 0.05) as http:
        with pytest.raises(TimeoutError):
            await http.send("POST", "/x", {}, b"{}")


async def test_a_write_that_is_called_off_leaves_no_connection_behind_that_answers_it_later() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n", OK) as told, lines(told) as http:
        writing = asyncio.create_task(http.send("POST", "/x", {}, b"{}"))
        await told.asked.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        answer = await http.send("POST", "/y", {}, b"{}")

    assert answer.status == 200
    assert told.connections == 2


async def test_a_header_cannot_begin_another_line() -> None:
    async with answering(OK) as told, lines(told) as http:
        with pytest.raises(ValueError, match="line break"):
            await http.send("POST", "/x", {"user-agent": "a\r\nx: y"}, b"{}")

    assert told.connections == 0
