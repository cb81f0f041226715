"""
Raw HTTP over TLS to a server in this process.

A test sends and reads bytes, so that it can send what no client library would.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from lamina.app import App
from lamina.server.api.authn import Authenticator
from lamina.server.http.connection_context import Handler, Timeouts
from lamina.server.http.listener import Listener, TlsFiles, listen, open_socket
from lamina.server.http.request import Request, Response
from lamina.server.identity import ADMIN
from lamina.server.tls.certificates import Certificates, Pair

TIMEOUT = 60.0
"""Seconds after which a waiting test fails."""
TOKEN = "sesame"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True)
class RawResponse:
    """One response, as received."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def status(self) -> int:
        return int(self.line.split(" ")[1])

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """The message of a Status."""
        status = self.json
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", self.status)
        return str(status["message"])

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def one(self, name: str) -> str | None:
        """The only value of a header, None if it is absent."""
        values = self.all(name)
        assert len(values) <= 1, values
        return values[0] if values else None


@dataclass
class Wire:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str = TOKEN

    def request_bytes(self, method: str, path: str, *headers: str, body: bytes | None = None) -> bytes:
        """Return the bytes of an ordinary authenticated request."""
        lines = [f"{method} {path} HTTP/1.1", "Host: here", f"Authorization: Bearer {self.token}", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")

    async def send(self, *pieces: bytes) -> None:
        async with asyncio.timeout(TIMEOUT):
            for piece in pieces:
                self.writer.write(piece)
                await self.writer.drain()

    async def send_request(
        self, method: str, path: str, *headers: str, body: bytes | None = None
    ) -> RawResponse:
        await self.send(self.request_bytes(method, path, *headers, body=body))
        return await self.read_response(method)

    async def read_response(self, method: str = "GET") -> RawResponse:
        """Read one whole response."""
        async with asyncio.timeout(TIMEOUT):
            response = await self.read_head()
            if method == "HEAD" or response.status in (100, 304):
                return response
            if response.one("transfer-encoding") == "chunked":
                return RawResponse(
                    response.line, response.headers, b"".join([chunk async for chunk in self.chunks()])
                )
            length = response.one("content-length")
            body = await (self.reader.read() if length is None else self.reader.readexactly(int(length)))
            return RawResponse(response.line, response.headers, body)

    async def read_head(self) -> RawResponse:
        async with asyncio.timeout(TIMEOUT):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = [(name, value) for name, _, value in (one.partition(": ") for one in rest)]
        return RawResponse(line, headers, b"")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of a body up to the empty last one, which must be present."""
        while size := int((await self._line()).split(b";")[0], 16):
            async with asyncio.timeout(TIMEOUT):
                chunk = await self.reader.readexactly(size)
            assert await self._line() == b""
            yield chunk
        assert await self._line() == b""

    async def _line(self) -> bytes:
        async with asyncio.timeout(TIMEOUT):
            return (await self.reader.readuntil(b"\r\n"))[:-2]

    async def ends(self) -> bytes:
        """Wait until the server closes, and return what it sent before."""
        async with asyncio.timeout(TIMEOUT):
            rest = b""
            with suppress(OSError, ssl.SSLError):
                while piece := await self.reader.read(1 << 20):
                    rest += piece
            return rest

    def pause(self) -> None:
        """Stop reading, so that the server's buffers fill up."""
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it reads as well as it writes

    def resume(self) -> None:
        self.writer.transport.resume_reading()  # type: ignore[attr-defined]

    async def close(self) -> None:
        """Close the connection with TLS close_notify."""
        self.writer.close()
        with suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()

    def abort(self) -> None:
        """Close the connection without close_notify."""
        self.writer.transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.abort()
        await self.close()


def tls_to(authority: Path, pair: Pair | None = None) -> ssl.SSLContext:
    """Return a client's TLS context, with a client certificate if given."""
    context = ssl.create_default_context(cafile=str(authority))
    context.set_alpn_protocols(["http/1.1"])
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


async def connect(port: int, tls: ssl.SSLContext, token: str = TOKEN) -> Wire:
    async with asyncio.timeout(TIMEOUT):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1", limit=1 << 22
        )
    return Wire(reader, writer, token)


async def reach(app: App, tls: ssl.SSLContext | None = None) -> Wire:
    """Connect to a control plane; requests are sent as its administrator."""
    port = urlsplit(app.url).port
    assert port is not None
    return await connect(port, tls or tls_to(app.certificates.authority.certificate), app.token)


@dataclass
class Scripted:
    """A handler with a function per path that records its requests."""

    now: dict[str, Callable[[Request], Response]] = field(default_factory=dict)
    later: dict[str, Callable[[Request], Awaitable[Response]]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def handle_nowait(self, request: Request) -> Response | None:
        if request.path in self.later:
            return None
        self.requests.append(f"{request.method} {request.path}")
        answer = self.now.get(request.path)
        return answer(request) if answer else Response(200, f'"{request.path}"'.encode())

    async def handle(self, request: Request) -> Response:
        self.requests.append(f"{request.method} {request.path}")
        return await self.later[request.path](request)


@dataclass
class Served:
    """A listener of the test, and how to connect to it."""

    listener: Listener
    port: int
    tls: ssl.SSLContext

    async def connect(self) -> Wire:
        return await connect(self.port, self.tls)

    def pass_time(self, seconds: float) -> None:
        """Run the sweep as if the time had passed."""
        self.listener.sweep(asyncio.get_running_loop().time() + seconds)

    def is_empty_after(self, seconds: float) -> bool:
        """Return whether no client is connected after the time has passed."""
        self.pass_time(seconds)
        return self.listener.connected == 0


@asynccontextmanager
async def serving(
    handler: Handler, certificates: Certificates, timeouts: Timeouts | None = None
) -> AsyncIterator[Served]:
    """Serve a handler on loopback."""
    opened = open_socket("127.0.0.1", 0)
    port = opened.getsockname()[1]
    pair, authority = certificates.server, certificates.authority.certificate
    listener = await listen(
        opened,
        handler,
        Authenticator({TOKEN: ADMIN}),
        TlsFiles(pair.certificate, pair.key, authority),
        timeouts,
    )
    try:
        yield Served(listener, port, tls_to(authority))
    finally:
        await listener.stop()
