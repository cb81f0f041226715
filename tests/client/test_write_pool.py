"""Connections for writes, with servers of every kind."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from lamina.client.transport.write_pool import ConnectionClosed, HttpResponse, WritePool


@dataclass
class Received:
    """What a server received: the number of connections, and every request."""

    url: str = ""
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    serving: list[asyncio.Task[None] | None] = field(default_factory=list)


@asynccontextmanager
async def answering(*answers: bytes | Sequence[bytes] | None) -> AsyncIterator[Received]:
    """A server with these responses in order, over any number of connections; None closes."""
    received, waiting = Received(), iter(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.connections += 1
        received.serving.append(asyncio.current_task())
        try:
            while not reader.at_eof():
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                received.requests.append(head + await reader.readexactly(length))
                received.asked.set()
                answer = next(waiting)
                if answer is None:
                    return
                for piece in (answer,) if isinstance(answer, bytes) else answer:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if b"close" in (answer if isinstance(answer, bytes) else b"".join(answer)).lower():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        received.url = f"http://{host}:{port}/base"
        yield received
        await asyncio.gather(*(task for task in received.serving if task is not None))


@asynccontextmanager
async def lines(received: Received, timeout: float | None = 60.0) -> AsyncIterator[WritePool]:
    made = WritePool(received.url, None, timeout)
    try:
        yield made
    finally:
        await made.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def test_writes_one_after_another_share_a_connection() -> None:
    async with answering(OK, OK) as received, lines(received) as http:
        first = await http.send("POST", "/x?a=b", {"accept": "application/json"}.items(), b"body")
        second = await http.send("DELETE", "/y", (), None)

    assert (
        first
        == second
        == HttpResponse(200, {"content-type": "application/json", "content-length": "2"}, b"{}")
    )
    assert received.connections == 1
    host = received.url.partition("://")[2].partition("/")[0].encode()
    assert received.requests == [
        b"POST /base/x?a=b HTTP/1.1\r\nhost: %b\r\naccept: application/json\r\ncontent-length: 4\r\n\r\nbody"
        % host,
        b"DELETE /base/y HTTP/1.1\r\nhost: %b\r\ncontent-length: 0\r\n\r\n" % host,
    ]


async def test_writes_side_by_side_have_a_connection_each() -> None:
    async with answering(OK, OK, OK) as received, lines(received) as http:
        await asyncio.gather(*(http.send("POST", "/x", (), b"{}") for _ in range(3)))

    assert received.connections == 3


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
        ([bytes([one]) for one in OK],                                    200, b"{}"),
        ([bytes([one]) for one in CHUNKED + b"a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n"], 201, b"0123456789x"),
    ],
)  # fmt: skip
async def test_an_answer_is_read_however_it_comes(said: Sequence[bytes], status: int, body: bytes) -> None:
    async with answering(said) as received, lines(received) as http:
        answer = await http.send("PUT", "/x", (), b"{}")

    assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize(
    "said",
    [
        b"220 smtp ready\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: few\r\n\r\n",
        CHUNKED + b"no number\r\n",
        CHUNKED + b"1\r\nlonger\r\n",
        CHUNKED + b"-1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
    ],
)
async def test_an_answer_that_makes_no_sense_is_an_error(said: bytes) -> None:
    async with answering(said) as received, lines(received) as http:
        with pytest.raises(ConnectionError, match="invalid response"):
            await http.send("POST", "/x", (), b"{}")


async def test_an_answer_that_breaks_off_is_an_error() -> None:
    async with (
        answering(b"HTTP/1.1 200 close\r\nContent-Length: 10\r\n\r\n{") as received,
        lines(received) as http,
    ):
        with pytest.raises(ConnectionClosed):
            await http.send("PUT", "/x", (), b"{}")


@pytest.mark.parametrize(
    ("method", "again"), [("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)]
)
async def test_a_connection_that_ended_unseen_costs_only_what_cannot_be_sent_twice(
    method: str, again: bool
) -> None:
    async with answering(OK, None, OK) as received, lines(received) as http:
        await http.send("POST", "/x", (), b"{}")
        if again:
            assert (await http.send(method, "/x", (), b"{}")).status == 200
        else:
            with pytest.raises(ConnectionClosed):
                await http.send(method, "/x", (), b"{}")

    assert received.connections == 1 + again


@pytest.mark.parametrize(
    "said", [b"Connection: close", b"Connection: Close, TE", b"Connection: TE\r\nConnection: close"]
)
async def test_a_connection_that_the_server_closes_is_not_used_again(said: bytes) -> None:
    closing = OK.replace(b"\r\n\r\n", b"\r\n" + said + b"\r\n\r\n")
    async with answering(closing, OK) as received, lines(received) as http:
        await http.send("POST", "/x", (), b"{}")
        await http.send("POST", "/x", (), b"{}")

    assert received.connections == 2


async def test_a_write_times_out() -> None:
    async with (
        answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n") as received,
        lines(received, 0.05) as http,
    ):
        with pytest.raises(TimeoutError):
            await http.send("POST", "/x", (), b"{}")


async def test_a_write_that_is_called_off_leaves_no_connection_behind_that_answers_it_later() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n", OK) as received, lines(received) as http:
        writing = asyncio.create_task(http.send("POST", "/x", (), b"{}"))
        await received.asked.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        answer = await http.send("POST", "/y", (), b"{}")

    assert answer.status == 200
    assert received.connections == 2


@pytest.mark.parametrize("called_off", [False, True])
async def test_a_server_that_died_without_a_word_costs_one_write_however_many_connections_it_had(
    called_off: bool,
) -> None:
    silence: Sequence[bytes] = ()
    async with (
        answering(OK, OK, OK, silence, OK) as received,
        lines(received, None if called_off else 0.05) as http,
    ):
        await asyncio.gather(*(http.send("POST", "/x", (), b"{}") for _ in range(3)))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05 if called_off else None):
                await http.send("PUT", "/x", (), b"{}")
        await http.send("PUT", "/x", (), b"{}")

    assert received.connections == 4


async def test_an_address_that_does_not_respond_does_not_block_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with answering(OK) as received:
        port = int(received.url.removesuffix("/base").rpartition(":")[2])
        with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
            deaf.bind(("127.0.0.2", port))
            deaf.listen(0)
            # These connections are never accepted, so the backlog is full.
            for one in (first, second):
                one.setblocking(False)
                one.connect_ex(("127.0.0.2", port))
            found = [
                (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))
                for address in ("127.0.0.2", "127.0.0.1")
            ]
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
            received.url = f"http://api.example:{port}"
            async with lines(received, 5.0) as http:
                answer = await http.send("POST", "/x", (), b"{}")

    assert answer.status == 200


async def test_a_header_cannot_begin_another_line() -> None:
    async with answering(OK) as received, lines(received) as http:
        with pytest.raises(ValueError, match="line break"):
            await http.send("POST", "/x", [("user-agent", "a\r\nx: y")], b"{}")

    assert received.connections == 0
