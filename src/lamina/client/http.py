"""A transport over HTTP, to any Kubernetes API server."""

from __future__ import annotations

import asyncio
import io
import os
import ssl
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from lamina.client.credentials import Credentials
from lamina.client.kubeconfig import Access
from lamina.client.leave import check_leave
from lamina.client.lines import Answer, Lines
from lamina.client.transport import Query, Response
from lamina.errors import NotLeading, SettingsError, Unreachable
from lamina.trust import trusting

_LONG = 512 * 1024
_LATELY = 64
_WRITES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_BROKEN = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


class HttpTransport:
    """
    Carries requests to a server, over as many connections as are needed.

    `timeout` bounds an ordinary request. A stream is bounded by `silence`: a
    server sends bookmarks, so one that says nothing at all for longer is gone.
    """

    def __init__(self, access: Access, *, timeout: float | None = 60.0, silence: float = 900.0) -> None:
        self._access = access
        self._base, self._is_secure = _place(access.server)
        self._ordinary = aiohttp.ClientTimeout(total=timeout, sock_connect=10.0)
        self._streaming = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._lines: Lines | None = None
        self._context: ssl.SSLContext | None = None
        self._credentials = Credentials(access)
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
    ) -> Response:
        if self._closed:
            raise Unreachable(f"{method} {self._base}{path}: nothing is sent any more, this was closed")
        target = quote(path, safe="/:@!$&'()*+,;=~")
        if query:
            target = f"{target}?{urlencode(query)}"
        if method in _WRITES and not streams and (body is None or len(body) <= _LONG):
            return await self._written(method, path, target, headers, body)
        try:
            answer = await self._opened().request(
                method,
                URL(self._base + target, encoded=True),
                headers=self._credentials.on(headers),
                # A long one goes in pieces, or nothing else happens in this process until it has gone.
                data=io.BytesIO(body) if body is not None and len(body) > _LONG else body,
                timeout=self._streaming if streams else self._ordinary,
                allow_redirects=False,
                server_hostname=self._access.tls_name or None,
            )
        except (*_BROKEN, ValueError) as error:
            raise Unreachable(f"{method} {self._base}{path}: {_words(error)}") from error
        self._heed(answer.status)
        return _Response(answer, f"{method} {self._base}{path}")

    async def _written(
        self, method: str, path: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self._lines is None:
            self._lines = Lines(self._base, self._tls(), self._timeout, tls_name=self._access.tls_name)
        try:
            answer = await self._lines.send(method, target, self._credentials.on(headers), body)
        except (OSError, ValueError) as error:
            raise Unreachable(f"{method} {self._base}{path}: {_words(error)}") from error
        self._heed(answer.status)
        return _Read(answer)

    def _heed(self, status: int) -> None:
        if status == 401:
            self._credentials.doubt()

    def _tls(self) -> ssl.SSLContext | None:
        if self._context is None and self._is_secure:
            self._context = _tls(self._access)
        return self._context

    async def close(self) -> None:
        self._closed = True
        if self._lines is not None:
            await self._lines.close()
            self._lines = None
        if self._session is not None:
            session, connector, self._session = self._session, self._session.connector, None
            await session.close()
            assert isinstance(connector, _Connector)
            connector.hang_up()
            # Hanging up takes the loop a turn.
            await asyncio.sleep(0)

    def _opened(self) -> aiohttp.ClientSession:
        # Made on first use: a session belongs to the loop it is made in.
        if self._session is None:
            connector = _Connector(
                limit=0,
                ssl=self._tls() or True,
                keepalive_timeout=55.0,
            )
            # The default buffer of 64 KiB would pause a watch for every large object.
            self._session = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=True,
                read_bufsize=1 << 20,
                skip_auto_headers=("User-Agent", "Content-Type", "Accept"),
            )
        return self._session


class _Connector(aiohttp.TCPConnector):
    """
    Finds a connection for each request, which may take a while, and asks then whether it is still to be sent.

    Whoever is interrupted in the middle of a request leaves a connection that takes its
    leave in secret, and waits for the other side to do so, too.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Those that were made last: who was interrupted longer ago has taken leave since.
        self._made: deque[asyncio.Transport] = deque(maxlen=_LATELY)

    def hang_up(self) -> None:
        """Wait for nobody's leave any more."""
        for transport in self._made:
            transport.abort()

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        made = await super()._create_connection(req, traces, timeout)
        if made.transport is not None:
            self._made.append(made.transport)
        return made

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        try:
            check_leave(req.method)
        except NotLeading:
            connection.release()
            raise
        return connection


class _Read:
    """An answer that has been read to its end."""

    def __init__(self, answer: Answer) -> None:
        self.status, self.headers, self._body = answer

    async def read(self) -> bytes:
        return self._body

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None:
        pass


class _Response:
    def __init__(self, answer: aiohttp.ClientResponse, asked: str) -> None:
        self.status = answer.status
        self._answer = answer
        self._asked = asked

    @property
    def headers(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self._answer.headers.items()}

    async def read(self) -> bytes:
        try:
            return await self._answer.read()
        except _BROKEN as error:
            raise Unreachable(f"{self._asked}: the answer broke off: {_words(error)}") from error
        finally:
            self._answer.release()

    async def stream(self) -> AsyncIterator[bytes]:
        # Whatever has arrived, not line by line: a line of ours may be longer
        # than the longest that aiohttp would read.
        try:
            async for piece in self._answer.content.iter_any():
                yield piece
        except _BROKEN as error:
            raise Unreachable(f"{self._asked}: the stream broke off: {_words(error)}") from error

    async def close(self) -> None:
        connection = self._answer.connection
        transport = connection.transport if connection is not None else None
        self._answer.close()
        if transport is not None:
            # Who takes leave in secret waits for the other to do so, too, and the loop may end before.
            transport.abort()
            await asyncio.sleep(0)


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _place(server: str) -> tuple[str, bool]:
    """Return the address of a server without a slash at its end, and whether it is spoken to in secret."""
    try:
        parts = urlsplit(server)
        is_whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise SettingsError(f"{server!r} is no address of a server", "https://HOST:PORT is one")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", parts.scheme == "https"


def _tls(access: Access) -> ssl.SSLContext:
    try:
        context = trusting(access.authority.decode() if access.authority else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise SettingsError(f"the authority given for {access.server} cannot be read: {error}") from error
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate and access.key:
        _load_identity(context, access)
    return context


def _load_identity(context: ssl.SSLContext, access: Access) -> None:
    # The ssl module takes a certificate and its key from a file, and from nothing else.
    handle, name = tempfile.mkstemp(prefix="lamina-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(access.certificate + b"\n" + access.key)
        context.load_cert_chain(name)
    except ssl.SSLError as error:
        raise SettingsError(f"the client certificate for {access.server} cannot be used: {error}") from error
    finally:
        Path(name).unlink()
