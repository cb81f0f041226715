"""The HTTP transport with servers that misbehave."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest

from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access
from lamina.client.transport.http import HttpTransport
from lamina.errors import ApiError, SettingsError, Unauthorized, Unreachable
from lamina.server.tls.certificates import ensure_certificates


@asynccontextmanager
async def responding(
    *answers: bytes, tls: SSLContext | None = None
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server on loopback that sends these bytes, one response per connection, and closes."""
    heads: list[bytes] = []
    waiting = iter(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(next(waiting))
            await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{'https' if tls else 'http'}://{host}:{port}", heads


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@asynccontextmanager
async def transport(access: Access) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(access)
    try:
        yield made
    finally:
        await made.close()


async def test_an_address_without_a_server_is_unreachable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        async with transport(Access(server=f"http://127.0.0.1:{port}")) as http:
            with pytest.raises(Unreachable, match=f"GET http://127.0.0.1:{port}/version"):
                await http.request("GET", "/version", headers={})


async def test_an_answer_that_is_no_http_is_unreachable() -> None:
    async with responding(b"220 smtp ready\r\n\r\n") as (url, _), transport(Access(server=url)) as http:
        with pytest.raises(Unreachable):
            await http.request("GET", "/version", headers={})


async def test_a_body_that_breaks_off_is_unreachable() -> None:
    short = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    async with responding(short) as (url, _), transport(Access(server=url)) as http:
        response = await http.request("GET", "/version", headers={})
        with pytest.raises(Unreachable, match="connection lost while reading the response"):
            await response.read()


async def test_a_stream_that_breaks_off_gives_what_came_and_then_says_so() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\none\n\n\r\n"
    pieces = []
    async with responding(chunked) as (url, _), transport(Access(server=url)) as http:
        response = await http.request("GET", "/x", headers={}, streams=True)
        with pytest.raises(Unreachable, match="connection lost while reading the stream"):
            async for piece in response.stream():
                pieces.append(piece)
        await response.close()

    assert b"".join(pieces) == b"one\n\n"


async def test_the_path_is_sent_as_it_should_be_read() -> None:
    async with responding(OK) as (url, heads), transport(Access(server=url + "/base/")) as http:
        response = await http.request("GET", "/a b/ü:x", query=[("labelSelector", "a in (x,y)")], headers={})
        await response.read()

    assert heads[0].split(b" ")[1] == b"/base/a%20b/%C3%BC:x?labelSelector=a+in+%28x%2Cy%29"


async def test_a_token_in_a_file_is_read_from_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    async with responding(OK) as (url, heads), transport(Access(server=url, token_file=file)) as http:
        await (await http.request("GET", "/version", headers={})).read()

    assert b"authorization: bearer first" in heads[0].lower()


async def test_a_token_that_cannot_be_read_is_said_with_its_file(tmp_path: Path) -> None:
    access = Access(server="http://127.0.0.1:1", token_file=tmp_path / "none")
    async with transport(access) as http:
        with pytest.raises(Unreachable, match="none: cannot read the token"):
            await http.request("GET", "/version", headers={})


BOTH = pytest.mark.parametrize("method", ["GET", "POST"])
"""Reads and writes use different connections."""
REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@BOTH
async def test_a_token_that_is_not_taken_is_looked_for_again(tmp_path: Path, method: str) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    async with (
        responding(REFUSED, OK) as (url, heads),
        transport(Access(server=url, token_file=file)) as http,
    ):
        with pytest.raises(Unauthorized):
            await http.request(method, "/x", headers={})
        file.write_text("second")
        await (await http.request(method, "/x", headers={})).read()

    assert [b"bearer first" in head.lower() for head in heads] == [True, False]
    assert b"bearer second" in heads[1].lower()


@BOTH
@pytest.mark.parametrize(
    ("access", "sent"),
    [
        ({"token": "t", "user": "east"}, "the token, of user east"),
        ({"username": "jo", "password": "p"}, "the password of jo"),
        ({}, "requests without credentials"),
    ],
)
async def test_what_a_server_does_not_accept_is_named_with_its_user_and_the_server(
    access: dict[str, Any], sent: str, method: str
) -> None:
    async with responding(REFUSED) as (url, _), transport(Access(server=url, **access)) as http:
        with pytest.raises(Unauthorized) as found:
            await http.request(method, "/x", headers={})

    assert str(found.value).endswith(f": {url} does not accept {sent}")


@pytest.mark.parametrize("meanwhile", [b"", b"\xff\xfe", b"two\nlines", None])
async def test_a_token_holds_until_there_is_another(tmp_path: Path, meanwhile: bytes | None) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    async with (
        responding(REFUSED, OK) as (url, heads),
        transport(Access(server=url, token_file=file)) as http,
    ):
        with pytest.raises(Unauthorized):
            await http.request("GET", "/x", headers={})
        if meanwhile is None:
            file.unlink()
        else:
            file.write_bytes(meanwhile)
        await (await http.request("POST", "/x", headers={})).read()

    assert all(b"bearer first" in head.lower() for head in heads)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\n", "the file has no token"),
        (b"\xff\xfe", "cannot read the token"),
        (b"two\nlines", "the file has no valid token"),
    ],
)
@BOTH
async def test_what_is_no_token_is_said_with_its_file(
    tmp_path: Path, content: bytes, complaint: str, method: str
) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    async with transport(Access(server="http://127.0.0.1:1", token_file=file)) as http:
        with pytest.raises(Unreachable, match=f"{file}: {complaint}"):
            await http.request(method, "/x", headers={})


@BOTH
async def test_a_header_that_cannot_be_sent_is_no_riddle(method: str) -> None:
    async with responding(OK) as (url, _), transport(Access(server=url, token="two\nlines")) as http:
        with pytest.raises(Unreachable):
            await http.request(method, "/x", headers={})


@BOTH
async def test_impersonation_headers_are_sent(method: str) -> None:
    access = {
        "as_user": "jane",
        "as_uid": "1",
        "as_groups": ("a", "b"),
        "as_extra": {"Example.com/scope": ("x", "y")},
    }
    async with responding(OK, OK) as (url, heads), transport(Access(server=url, **access)) as http:  # type: ignore[arg-type] # each as it should be
        await (await http.request(method, "/x", headers={})).read()
        await (await http.request(method, "/x", headers={"impersonate-user": "joe"})).read()

    assert [_acting(head) for head in heads] == [
        [
            "impersonate-user: jane",
            "impersonate-uid: 1",
            "impersonate-group: a",
            "impersonate-group: b",
            "impersonate-extra-example.com%2fscope: x",
            "impersonate-extra-example.com%2fscope: y",
        ],
        ["impersonate-user: joe"],
    ]


def _acting(head: bytes) -> list[str]:
    return [line for line in head.decode().lower().split("\r\n") if line.startswith("impersonate")]


@BOTH
@pytest.mark.parametrize(("name", "is_known"), [("inside.example", True), ("", False)])
async def test_a_certificate_may_be_for_another_name_than_the_host(
    tmp_path: Path, method: str, name: str, is_known: bool
) -> None:
    made = ensure_certificates(tmp_path, ["inside.example"], "admin", ())
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.server.certificate, made.server.key)
    async with responding(OK, tls=tls) as (url, _):
        # Written in capitals it is no less secret.
        access = Access(
            server=url.replace("https", "HTTPS"), authority=made.authority.certificate_pem, tls_name=name
        )
        async with transport(access) as http:
            if is_known:
                assert (await http.request(method, "/x", headers={})).status == 200
            else:
                with pytest.raises(Unreachable, match="(?i)certificate"):
                    await http.request(method, "/x", headers={})


@pytest.mark.parametrize(
    "server", ["127.0.0.1:6443", "https://", "ftp://a", "https://a:b", "http://[::1", ""]
)
def test_what_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(SettingsError, match="is no server URL"):
        HttpTransport(Access(server=server))


@BOTH
async def test_what_was_closed_stays_closed(method: str) -> None:
    async with responding(OK) as (url, heads), transport(Access(server=url)) as http:
        await http.close()
        with pytest.raises(Unreachable, match="the transport is closed"):
            await http.request(method, "/x", headers={})

    assert heads == []


@BOTH
@pytest.mark.parametrize("status", [b"302 Found", b"304 Not Modified"])
async def test_being_sent_elsewhere_is_a_refusal(method: str, status: bytes) -> None:
    elsewhere = b"HTTP/1.1 %b\r\nLocation: /login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status
    async with responding(elsewhere) as (url, _), transport(Access(server=url)) as http:
        with pytest.raises(ApiError, match=f"the server answered {status[:3].decode()}"):
            await Client(http).request(method, "/x")


async def test_a_name_and_password_are_sent() -> None:
    async with responding(OK) as (url, heads), transport(_known(url)) as http:
        await (await http.request("GET", "/version", headers={})).read()

    assert b"authorization: basic bwu6c2vjcmv0" in heads[0].lower()


def _known(url: str) -> Access:
    return Access(server=url, username="me", password="secret")


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"authority": b"nonsense"}, "cannot read the CA certificate for https://127.0.0.1:1"),
        ({"certificate": b"x", "key": b"y"}, "cannot use the client certificate for https://127.0.0.1:1"),
    ],
)
async def test_certificates_that_make_no_sense_are_named(broken: dict[str, Any], complaint: str) -> None:
    async with transport(Access(server="https://127.0.0.1:1", **broken)) as http:
        with pytest.raises(SettingsError, match=complaint):
            await http.request("GET", "/version", headers={})


@asynccontextmanager
async def without_close_notify(folder: Path, *said: bytes) -> AsyncIterator[tuple[Access, asyncio.Event]]:
    """A TLS server that sends these bytes, if any, and then nothing more, not even close_notify."""
    made = ensure_certificates(folder, ["127.0.0.1"], "admin", ())
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.server.certificate, made.server.key)
    asked, over = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.writelines(said)
        asked.set()
        await over.wait()
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        host, port = server.sockets[0].getsockname()
        try:
            yield Access(server=f"https://{host}:{port}", authority=made.authority.certificate_pem), asked
        finally:
            over.set()


async def test_a_stream_that_is_left_holds_no_connection_whatever_the_other_side_does(tmp_path: Path) -> None:
    """A TLS connection waits for the peer's close_notify, and the event loop may end before it."""
    endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
    async with without_close_notify(tmp_path, endless) as (access, asked), transport(access) as http:
        response = await http.request("GET", "/x", headers={}, streams=True)
        await asked.wait()
        held = response._response.connection.transport.get_extra_info("socket")  # type: ignore[attr-defined]

        await response.close()

        assert held.fileno() == -1


async def test_a_request_that_is_given_up_holds_no_connection_once_all_is_closed(tmp_path: Path) -> None:
    async with without_close_notify(tmp_path) as (access, asked):
        async with transport(access) as http:
            waiting = asyncio.create_task(http.request("GET", "/x", headers={}))
            await asked.wait()
            (line,) = http._session.connector._recent  # type: ignore[union-attr]
            held = line.get_extra_info("socket")
            waiting.cancel()
            await asyncio.wait([waiting])

        assert held.fileno() == -1
