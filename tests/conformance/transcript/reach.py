"""
Ways to reach a server: over HTTP, or in process where the server is ours.

Both give the same answers; that they do is what the transcripts show when they
are played through either.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from http.client import HTTPResponse, HTTPSConnection
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from lamina.app import App
from lamina.server.request import ADMIN, Request
from lamina.settings import Settings
from tests.bed.wire import Answer

T = TypeVar("T")
PATIENCE = 60.0
SILENCE = 8.0
"""Seconds without a line after which nothing more is expected of a stream."""


class Stream(Protocol):
    """An answer that arrives line by line."""

    def line(self) -> Any:
        """Return the next line, decoded; None at the end. Raises TimeoutError when nothing comes."""
        ...

    def close(self) -> None: ...


class Wire(Protocol):
    """Carries requests to one server as an administrator."""

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Send one request and return its whole answer."""
        ...

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        """Begin to read a stream; whatever is not 200 is an answer."""
        ...


class HttpWire:
    """A server at an address."""

    def __init__(self, url: str, authority: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 443
        self._tls = ssl.create_default_context(cafile=authority)
        self._token = token

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        connection, answer = self._send(method, path, headers, body)
        try:
            return _whole(answer)
        finally:
            connection.close()

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        connection, answer = self._send("GET", path, headers, None)
        if answer.status == 200:
            connection.sock.settimeout(SILENCE)
            return _HttpStream(connection, answer)
        try:
            return _whole(answer)
        finally:
            connection.close()

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[HTTPSConnection, HTTPResponse]:
        connection = HTTPSConnection(self._host, self._port, context=self._tls, timeout=PATIENCE)
        try:
            # A server that has read enough of a body answers and hangs up; its answer is there all the same.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, {"Authorization": f"Bearer {self._token}", **headers})
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise


def _whole(answer: HTTPResponse) -> Answer:
    return Answer(
        code=answer.status,
        headers={name.lower(): value for name, value in answer.getheaders()},
        warnings=tuple(answer.headers.get_all("Warning") or ()),
        body=answer.read(),
    )


class _HttpStream:
    def __init__(self, connection: HTTPSConnection, answer: HTTPResponse) -> None:
        self._connection, self._answer = connection, answer

    def line(self) -> Any:
        read = self._answer.readline()
        return json.loads(read) if read else None

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


class InProcessWire:
    """A server in this process, in a thread of its own."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self._app, self._loop = app, loop

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        return self._wait(self._answer(self._request(method, path, headers, body)))

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        request = self._request("GET", path, headers, None)
        told = self._wait(self._app.api.handle(request))
        if isinstance(told.body, bytes):
            return _told(request, told, told.body)
        return _InProcessStream(self, told.body)

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Request:
        route, _, query = path.partition("?")
        lowered = {name.lower(): value for name, value in headers.items()}
        return Request(method, route, query, lowered, body or b"", ADMIN)

    async def _answer(self, request: Request) -> Answer:
        told = await self._app.api.handle(request)
        body = told.body
        if not isinstance(body, bytes):
            body = b"".join([piece async for piece in body])
        return _told(request, told, body)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        waiting: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return waiting.result(PATIENCE)


def _told(request: Request, told: Any, body: bytes) -> Answer:
    return Answer(
        code=told.status,
        headers={"content-type": told.content_type} | {name.lower(): value for name, value in told.headers},
        warnings=tuple(f"299 - {json.dumps(sentence, ensure_ascii=False)}" for sentence in request.warnings),
        body=body,
    )


class _InProcessStream:
    def __init__(self, wire: InProcessWire, body: AsyncIterator[bytes]) -> None:
        self._wire, self._body = wire, body
        self._read = b""

    def line(self) -> Any:
        while b"\n" not in self._read:
            piece = self._wire._wait(asyncio.wait_for(self._next(), SILENCE))
            if piece is None:
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    async def _next(self) -> bytes | None:
        return await anext(self._body, None)

    def close(self) -> None:
        self._wire._wait(self._end())

    async def _end(self) -> None:
        end = getattr(self._body, "aclose", None)
        if end is not None:
            await end()


@contextmanager
def in_process() -> Iterator[InProcessWire]:
    """Run the embedded server in a thread of this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded server", daemon=True)
    thread.start()
    app = App(Settings(ephemeral=True, port=0))
    try:
        asyncio.run_coroutine_threadsafe(app.__aenter__(), loop).result(PATIENCE)
        try:
            yield InProcessWire(app, loop)
        finally:
            asyncio.run_coroutine_threadsafe(app.stop(), loop).result(PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
