"""
Keep-alive HTTP/1.1 connections for writes.

A controller writes thousands of small objects, and most of their cost is the
transport. A write is one request with a complete body and one response that is
read whole, so this has no redirects, cookies, compression or streams; requests
that need them go through aiohttp (docs/decisions/writes.md). Responses are
parsed by httptools.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import httptools
from aiohappyeyeballs import start_connection

from lamina.client.write_guard import WriteGuard, check_guard

_IDLE_TIMEOUT = 55.0
"""How long an idle connection is kept, in seconds; servers keep theirs a little longer."""
_CONNECT_TIMEOUT = 10.0
_HAPPY_EYEBALLS_DELAY = 0.25
"""How long one address of a server has before the next is tried beside it, in seconds."""
_MAX_HEAD = 1 << 20
_IDEMPOTENT = frozenset(("PUT", "DELETE"))
"""Idempotent methods: they are sent again if the connection ended before any response."""


class HttpResponse(NamedTuple):
    """The response of a server. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionClosed(ConnectionError):
    """The server closed the connection before its response was complete."""


class WritePool:
    """Sends writes to one server."""

    def __init__(
        self, base: str, tls: ssl.SSLContext | None, timeout: float | None, *, tls_name: str = ""
    ) -> None:
        parts = urlsplit(base)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._named, self._prefix = parts.netloc.rpartition("@")[2], parts.path
        self._tls, self._timeout = tls, timeout
        self._tls_name = (tls_name or self._host) if tls is not None else None
        self._idle: list[_Connection] = []
        self._closed = False

    async def send(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        guard: WriteGuard | None = None,
    ) -> HttpResponse:
        """
        Return the response to a request, read to its end.

        Raises OSError if there is no response or it is no HTTP, and TimeoutError
        if it takes too long.
        """
        request = _request(method, self._prefix + target, self._named, headers, body)
        connection = self._take_idle()
        if connection is not None:
            try:
                return await self._exchange(connection, request, guard)
            except ConnectionClosed:
                # The server may have closed it while it was idle.
                if connection.has_received or method not in _IDEMPOTENT:
                    raise
        # Without leadership there is no reason to connect.
        check_guard(guard)
        return await self._exchange(await self._connect(), request, guard)

    async def close(self) -> None:
        self._closed = True
        self._close_idle()
        # The transports close in the next iteration of the loop.
        await asyncio.sleep(0)

    def _close_idle(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _take_idle(self) -> _Connection | None:
        """Return the idle connection that was used last, and close those that are too old."""
        now = asyncio.get_running_loop().time()
        while self._idle and (self._idle[0].is_closed or now - self._idle[0].idle_since > _IDLE_TIMEOUT):
            self._idle.pop(0).close()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed:
                return connection
        return None

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(min(_CONNECT_TIMEOUT, self._timeout or _CONNECT_TIMEOUT)):
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            connected = await start_connection(
                found, happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY, interleave=1
            )
            try:
                _, connection = await loop.create_connection(
                    _Connection, sock=connected, ssl=self._tls, server_hostname=self._tls_name
                )
            except BaseException:
                connected.close()
                raise
        return connection

    async def _exchange(
        self, connection: _Connection, request: bytes, guard: WriteGuard | None
    ) -> HttpResponse:
        loop = asyncio.get_running_loop()
        try:
            # The last check before the bytes leave.
            check_guard(guard)
            late = loop.call_later(self._timeout, connection.time_out) if self._timeout is not None else None
            try:
                answer = await connection.send(request)
            finally:
                if late is not None:
                    late.cancel()
        except (TimeoutError, asyncio.CancelledError):
            if not connection.has_received:
                # A server that does not respond on one connection does not on the others.
                self._close_idle()
            raise
        finally:
            # A connection with an unfinished response cannot be used again.
            if connection.is_idle and not self._closed:
                connection.idle_since = loop.time()
                self._idle.append(connection)
            else:
                connection.close()
        return answer


def _request(
    method: str, target: str, host: str, headers: Iterable[tuple[str, str]], body: bytes | None
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"content-length: {len(body) if body is not None else 0}")
    if any("\n" in line or "\r" in line for line in lines):
        raise ValueError("a header has a line break in it")
    return "\r\n".join((*lines, "\r\n")).encode() + (body or b"")


class _Connection(asyncio.Protocol):
    """One connection, with one request on it at a time. The callbacks of its parser are the `on_` methods."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.is_closed = False
        self.has_received = False
        """Whether any byte of the response has arrived."""
        self._response: asyncio.Future[HttpResponse] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._body = dict[str, str](), list[bytes]()
        self._has_head = self._until_closed = False
        self._head_size = 0
        self._transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        return self._response is None and not self.is_closed

    async def send(self, request: bytes) -> HttpResponse:
        """Send a request, and return its response."""
        if self.is_closed:
            raise ConnectionClosed("the server closed the connection")
        self._response = asyncio.get_running_loop().create_future()
        self.has_received = False
        self._transport.write(request)
        return await self._response

    def time_out(self) -> None:
        self._fail(TimeoutError("no answer in time"))

    def close(self) -> None:
        """Close without TLS's close_notify: the server may be unable to answer it."""
        self.is_closed = True
        self._transport.abort()

    # ── asyncio.Protocol ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        if self._until_closed and error is None:
            self._finish()
        else:
            self._fail(
                ConnectionClosed(str(error) if error is not None else "the server closed the connection")
            )

    def data_received(self, data: bytes) -> None:
        if self._response is None or self._response.done():
            # There is no request that this could answer.
            self.close()
            return
        self.has_received = True
        try:
            self._parser.feed_data(data)
            if not self._has_head:
                self._head_size += len(data)
                if self._head_size > _MAX_HEAD:
                    raise ValueError("its head is too long")
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, ValueError) as wrong:
            self._fail(ConnectionError(f"invalid response: {wrong.__context__ or wrong}"))

    # ── httptools ──

    def on_message_begin(self) -> None:
        if self._response is None:
            self.is_closed = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_head:
            return
        key, text, headers = name.decode("latin-1").lower(), value.decode("latin-1"), self._headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        self._has_head = True
        encoding = self._headers.get("transfer-encoding")
        if encoding is not None and encoding.lower() != "chunked":
            raise ValueError(f"it is encoded as {encoding!r}")
        self._until_closed = (
            encoding is None and "content-length" not in self._headers and status not in (204, 304)
        )

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._finish()
        else:
            self._headers = {}

    def _finish(self) -> None:
        response, self._response = self._response, None
        if not self._parser.should_keep_alive():
            self.is_closed = True
        if response is not None and not response.done():
            status = self._parser.get_status_code()
            response.set_result(HttpResponse(status, self._headers, b"".join(self._body)))
        self._headers, self._body, self._has_head, self._head_size = {}, [], False, 0

    def _fail(self, error: Exception) -> None:
        response, self._response = self._response, None
        self.is_closed = True
        if response is not None and not response.done():
            response.set_exception(error)
