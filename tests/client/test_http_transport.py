"""HTTP when the other side does not behave."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lamina.client.http import HttpTransport
from lamina.client.kubeconfig import Access
from lamina.errors import SettingsError, Unreachable


@asynccontextmanager
async def saying(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server on loopback that says these bytes, one answer a connection, and hangs up."""
    heads: list[bytes] = []
    waiting = iter(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(next(waiting))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}", heads


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@asynccontextmanager
async def transport(access: Access) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(access)
    try:
        yield made
    finally:
        await made.close()


async def test_nobody_there_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        async with transport(Access(server=f"http://127.0.0.1:{port}")) as http:
            with pytest.raises(Unreachable, match=f"GET http://127.0.0.1:{port}/version"):
                await http.request("GET", "/version", headers={})


async def test_an_answer_that_is_no_http_is_unreachable() -> None:
    async with saying(b"220 smtp ready\r\n\r\n") as (url, _), transport(Access(server=url)) as http:
        with pytest.raises(Unreachable):
            await http.request("GET", "/version", headers={})


async def test_a_body_that_breaks_off_is_unreachable() -> None:
    short = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    async with saying(short) as (url, _), transport(Access(server=url)) as http:
        response = await http.request("GET", "/version", headers={})
        with pytest.raises(Unreachable, match="the answer broke off"):
            await response.read()


async def test_a_stream_that_breaks_off_gives_what_came_and_then_says_so() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\none\n\n\r\n"
    pieces = []
    async with saying(chunked) as (url, _), transport(Access(server=url)) as http:
        response = await http.request("GET", "/x", headers={}, streams=True)
        with pytest.raises(Unreachable, match="the stream broke off"):
            async for piece in response.stream():
                pieces.append(piece)
        await response.close()

    assert b"".join(pieces) == b"one\n\n"


async def test_the_path_is_sent_as_it_should_be_read() -> None:
    async with saying(OK) as (url, heads), transport(Access(server=url + "/base/")) as http:
        response = await http.request("GET", "/a b/ü:x", query=[("labelSelector", "a in (x,y)")], headers={})
        await response.read()

    assert heads[0].split(b" ")[1] == b"/base/a%20b/%C3%BC:x?labelSelector=a+in+%28x%2Cy%29"


async def test_a_token_in_a_file_is_read_from_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    async with saying(OK) as (url, heads), transport(Access(server=url, token_file=file)) as http:
        await (await http.request("GET", "/version", headers={})).read()

    assert b"authorization: bearer first" in heads[0].lower()


async def test_a_token_that_cannot_be_read_is_said_with_its_file(tmp_path: Path) -> None:
    access = Access(server="http://127.0.0.1:1", token_file=tmp_path / "none")
    async with transport(access) as http:
        with pytest.raises(Unreachable, match="none: the token cannot be read"):
            await http.request("GET", "/version", headers={})


async def test_a_name_and_password_are_sent() -> None:
    async with saying(OK) as (url, heads), transport(_known(url)) as http:
        await (await http.request("GET", "/version", headers={})).read()

    assert b"authorization: basic bwu6c2vjcmv0" in heads[0].lower()


def _known(url: str) -> Access:
    return Access(server=url, username="me", password="secret")


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"authority": b"nonsense"}, "the authority given for https://127.0.0.1:1 cannot be read"),
        ({"certificate": b"x", "key": b"y"}, "the client certificate for https://127.0.0.1:1 cannot be used"),
    ],
)
async def test_certificates_that_make_no_sense_are_named(broken: dict[str, Any], complaint: str) -> None:
    async with transport(Access(server="https://127.0.0.1:1", **broken)) as http:
        with pytest.raises(SettingsError, match=complaint):
            await http.request("GET", "/version", headers={})
