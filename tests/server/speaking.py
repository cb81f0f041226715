"""
HTTP by hand, over TLS, to a server in this process.

Nothing here helps: a test says bytes and reads bytes, so that it can say what
no client library would.
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
from lamina.server.certificates import Certificates, Pair
from lamina.server.desk import Handler, Patience
from lamina.server.identity import Authenticator
from lamina.server.listener import Listener, TlsFiles, listen, open_socket
from lamina.server.request import ADMIN, Answer, Request

LONG = 60.0
"""Seconds after which a test that waits has failed."""
TOKEN = "sesame"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True)
class Said:
    """One answer, as it stood on the wire."""

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
        """The only value of a header, None where it is absent."""
        values = self.all(name)
        assert len(values) <= 1, values
        return values[0] if values else None


@dataclass
class Wire:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str = TOKEN

    def asking(self, method: str, path: str, *headers: str, body: bytes | None = None) -> bytes:
        """Return the bytes of an ordinary request by somebody known."""
        lines = [f"{method} {path} HTTP/1.1", "Host: here", f"Authorization: Bearer {self.token}", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")

    async def say(self, *pieces: bytes) -> None:
        async with asyncio.timeout(LONG):
            for piece in pieces:
                self.writer.write(piece)
                await self.writer.drain()

    async def ask(self, method: str, path: str, *headers: str, body: bytes | None = None) -> Said:
        await self.say(self.asking(method, path, *headers, body=body))
        return await self.hear(method)

    async def hear(self, method: str = "GET") -> Said:
        """Read one answer to its end."""
        async with asyncio.timeout(LONG):
            said = await self.hear_head()
            if method == "HEAD" or said.status in (100, 304):
                return said
            if said.one("transfer-encoding") == "chunked":
                return Said(said.line, said.headers, b"".join([chunk async for chunk in self.chunks()]))
            length = said.one("content-length")
            body = await (self.reader.read() if length is None else self.reader.readexactly(int(length)))
            return Said(said.line, said.headers, body)

    async def hear_head(self) -> Said:
        async with asyncio.timeout(LONG):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = [(name, value) for name, _, value in (one.partition(": ") for one in rest)]
        return Said(line, headers, b"")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of a body up to the last one, which is empty and must be there."""
        while size := int((await self._line()).split(b";")[0], 16):
            async with asyncio.timeout(LONG):
                chunk = await self.reader.readexactly(size)
            assert await self._line() == b""
            yield chunk
        assert await self._line() == b""

    async def _line(self) -> bytes:
        async with asyncio.timeout(LONG):
            return (await self.reader.readuntil(b"\r\n"))[:-2]

    async def ends(self) -> bytes:
        """Wait for the other side to hang up, and return what it said before."""
        async with asyncio.timeout(LONG):
            rest = b""
            with suppress(OSError, ssl.SSLError):
                while piece := await self.reader.read(1 << 20):
                    rest += piece
            return rest

    def pause(self) -> None:
        """Read nothing, so that the other side cannot send for long."""
        self.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it reads as well as it writes

    def resume(self) -> None:
        self.writer.transport.resume_reading()  # type: ignore[attr-defined]

    async def leave(self) -> None:
        """Hang up as a well-behaved client does."""
        self.writer.close()
        with suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()

    def vanish(self) -> None:
        """Hang up without a word."""
        self.writer.transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.vanish()
        await self.leave()


def tls_to(authority: Path, pair: Pair | None = None) -> ssl.SSLContext:
    """Return a client's side of TLS, with a certificate of its own if it has one."""
    context = ssl.create_default_context(cafile=str(authority))
    context.set_alpn_protocols(["http/1.1"])
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


async def connect(port: int, tls: ssl.SSLContext, token: str = TOKEN) -> Wire:
    async with asyncio.timeout(LONG):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname="127.0.0.1", limit=1 << 22
        )
    return Wire(reader, writer, token)


async def reach(app: App, tls: ssl.SSLContext | None = None) -> Wire:
    """Connect to a whole control plane, as its administrator if a request says who asks."""
    port = urlsplit(app.url).port
    assert port is not None
    return await connect(port, tls or tls_to(app.certificates.authority.certificate), app.token)


@dataclass
class Scripted:
    """A handler that does what a test tells it for each path, and remembers what it was asked."""

    now: dict[str, Callable[[Request], Answer]] = field(default_factory=dict)
    later: dict[str, Callable[[Request], Awaitable[Answer]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer_now(self, request: Request) -> Answer | None:
        if request.path in self.later:
            return None
        self.asked.append(f"{request.method} {request.path}")
        answer = self.now.get(request.path)
        return answer(request) if answer else Answer(200, f'"{request.path}"'.encode())

    async def handle(self, request: Request) -> Answer:
        self.asked.append(f"{request.method} {request.path}")
        return await self.later[request.path](request)


@dataclass
class Served:
    """A listener of a test's own, and how to connect to it."""

    listener: Listener
    port: int
    tls: ssl.SSLContext

    async def connect(self) -> Wire:
        return await connect(self.port, self.tls)

    def pass_time(self, seconds: float) -> None:
        """Have the sweep come by as if so much time had passed."""
        self.listener.sweep(asyncio.get_running_loop().time() + seconds)

    def gone_after(self, seconds: float) -> bool:
        """Say whether nobody is left once so much time has passed."""
        self.pass_time(seconds)
        return self.listener.connected == 0


@asynccontextmanager
async def serving(
    handler: Handler, certificates: Certificates, patience: Patience | None = None
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
        patience,
    )
    try:
        yield Served(listener, port, tls_to(authority))
    finally:
        await listener.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so, by letting everybody else have their turn."""
    async with asyncio.timeout(LONG):
        while not condition():  # noqa: ASYNC110  what it asks for sets no event
            await asyncio.sleep(0.001)
