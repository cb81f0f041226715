"""Servers behind an HTTP proxy."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from urllib.parse import urlsplit

import pytest

from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access
from lamina.errors import NotLeading, Unreachable
from lamina.server.tls.certificates import ensure_certificates
from tests.client.test_http_transport import BOTH, OK, responding, transport

LARGE = b" " * 600_000


@asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that tunnels, and forwards requests of plain HTTP; it notes the heads that it reads."""
    heads: list[bytes] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()
            return
        heads.append(head)
        method, target, _ = head.split(b" ", 2)
        host, _, port = (
            target.decode() if method == b"CONNECT" else urlsplit(target.decode()).netloc
        ).partition(":")
        there, back = await asyncio.open_connection(host, int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            back.write(head)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}", heads


@BOTH
async def test_reads_and_writes_go_through_the_proxy(method: str) -> None:
    async with (
        responding(OK) as (url, heads),
        proxy() as (through, seen),
        transport(Access(server=url, proxy=through, token="t")) as http,
    ):
        answer = await http.request(method, "/x", headers={}, body=b"{}" if method == "POST" else None)
        assert await answer.read() == b"{}"

    assert seen[0].startswith(f"{method} {url}/x ".encode())
    assert b"authorization: bearer t" in heads[0].lower()


@BOTH
async def test_a_server_with_tls_is_reached_through_a_tunnel_that_has_no_credentials_but_its_own(
    tmp_path: Path, method: str
) -> None:
    made = ensure_certificates(tmp_path, ["inside.example"], "admin", ())
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.server.certificate, made.server.key)
    async with responding(OK, tls=tls) as (url, heads), proxy() as (through, seen):
        access = Access(
            server=url,
            authority=made.authority.certificate_pem,
            tls_name="inside.example",
            proxy=through.replace("http://", "http://me:secret@"),
            token="t",
        )
        async with transport(access) as http:
            assert (await http.request(method, "/x", headers={})).status == 200

    (tunnel,) = seen
    assert tunnel.startswith(b"CONNECT " + url.removeprefix("https://").encode())
    assert b64encode(b"me:secret") in tunnel
    assert b"bearer" not in tunnel.lower()
    assert b"authorization: bearer t" in heads[0].lower()
    assert b"proxy-authorization" not in heads[0].lower()


@pytest.mark.parametrize("body", [b"{}", LARGE, None], ids=["short", "long", "none"])
async def test_a_write_through_a_proxy_is_not_sent_once_leadership_is_lost(body: bytes | None) -> None:
    async with (
        responding(OK) as (url, heads),
        proxy() as (through, seen),
        transport(Access(server=url, proxy=through)) as http,
    ):
        client = Client(http)
        with pytest.raises(NotLeading):
            await client.request("DELETE", "/x", body=body, guard=lambda: False)
        assert seen == heads == []

        await client.request("DELETE", "/x", body=b"{}", guard=lambda: True)
        assert len(heads) == 1


async def test_a_proxy_that_does_not_answer_is_unreachable() -> None:
    async with transport(Access(server="https://127.0.0.1:2", proxy="http://127.0.0.1:1")) as http:
        with pytest.raises(Unreachable, match="PUT https://127.0.0.1:2/x: "):
            await http.request("PUT", "/x", headers={}, body=b"{}")


async def test_the_password_of_a_proxy_is_in_no_message() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        access = Access(server="https://127.0.0.1:2", proxy=f"http://user:s3cret@{host}:{port}")
        async with transport(access) as http:
            with pytest.raises(Unreachable, match="GET https://127.0.0.1:2/x: 407 ") as refused:
                await http.request("GET", "/x", headers={})

    assert "s3cret" not in str(refused.value)
