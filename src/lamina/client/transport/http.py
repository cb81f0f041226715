"""A transport over HTTP, to any Kubernetes API server."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from lamina.client import codec
from lamina.client.kubeconfig.credentials import Credentials, Identity, describe, load_identity
from lamina.client.kubeconfig.read import Access
from lamina.client.transport.base import Query, Response
from lamina.client.transport.write_pool import HttpResponse, WritePool
from lamina.client.write_guard import WriteGuard, check_guard
from lamina.errors import NotLeading, SettingsError, Unauthorized, Unreachable
from lamina.tls import client_context

_LARGE = 512 * 1024
_RECENT = 64
_WRITES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_CONNECTION_ERRORS = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


class HttpTransport:
    """
    Sends requests to a server over as many connections as needed.

    `timeout` limits an ordinary request. A stream is limited by `silence`: the server
    sends bookmarks, so a stream without any data for longer is dead. Another client
    certificate gets new connections; what is under way ends on the old ones. Behind a
    proxy everything goes through aiohttp, which can tunnel.
    """

    def __init__(self, access: Access, *, timeout: float | None = 60.0, silence: float = 900.0) -> None:
        self._access = access
        self._base, self._is_secure = _server_url(access.server)
        self._ordinary = aiohttp.ClientTimeout(total=timeout, sock_connect=10.0)
        self._streaming = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._write_pool: WritePool | None = None
        self._context: ssl.SSLContext | None = None
        self._credentials = Credentials(access)
        self._identity = self._credentials.identity
        self._retired: aiohttp.ClientSession | None = None
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
        guard: WriteGuard | None = None,
    ) -> Response:
        if self._closed:
            raise Unreachable(f"{method} {self._base}{path}: not sent, the transport is closed")
        target = quote(path, safe="/:@!$&'()*+,;=~")
        if query:
            target = f"{target}?{urlencode(query)}"
        await self._renew(f"{method} {self._base}{path}")
        if self._closed:
            raise Unreachable(f"{method} {self._base}{path}: not sent, the transport is closed")
        is_write, is_large = method in _WRITES and not streams, body is not None and len(body) > _LARGE
        if is_write and not is_large and not self._access.proxy:
            return await self._write(method, path, target, headers, body, guard)
        mark = self._credentials.mark
        try:
            response = await self._open_session().request(
                method,
                URL(self._base + target, encoded=True),
                headers=self._credentials.add_to(headers),
                data=_GuardedBody(body or b"", guard) if is_write else body,
                timeout=self._streaming if streams else self._ordinary,
                allow_redirects=False,
                server_hostname=self._access.tls_name or None,
                proxy=self._access.proxy or None,
            )
        except (*_CONNECTION_ERRORS, ValueError) as error:
            raise Unreachable(f"{method} {self._base}{path}: {_message(error)}") from error
        return await self._accepted(_Response(response, f"{method} {self._base}{path}"), mark)

    async def _write(
        self,
        method: str,
        path: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        guard: WriteGuard | None,
    ) -> Response:
        if self._write_pool is None:
            self._write_pool = WritePool(
                self._base, self._tls(), self._timeout, tls_name=self._access.tls_name
            )
        mark = self._credentials.mark
        try:
            response = await self._write_pool.send(
                method, target, self._credentials.add_to(headers), body, guard
            )
        except (OSError, ValueError) as error:
            raise Unreachable(f"{method} {self._base}{path}: {_message(error)}") from error
        return await self._accepted(_ReadResponse(response), mark)

    async def _accepted(self, response: Response, mark: object) -> Response:
        """Return a response; Unauthorized, which names the credentials and the server, where it is 401."""
        if response.status != 401:
            return response
        self._credentials.invalidate(mark)
        error = await codec.api_error(response)
        raise Unauthorized(f"{error.message}: {self._base} does not accept {describe(self._access)}")

    async def _renew(self, request: str) -> None:
        """Renew credentials, and have new connections present the client certificate there is now."""
        try:
            await self._credentials.renew()
        except Unreachable as error:
            failure = Unreachable(f"{request}: {error}")
            failure.hint = error.hint
            raise failure from error
        while (identity := self._credentials.identity) != self._identity:
            self._identity, self._context = identity, None
            pool, self._write_pool = self._write_pool, None
            retired, self._retired, self._session = self._retired, self._session, None
            if pool is not None:
                await pool.close()
            if retired is not None:
                await _close_session(retired)

    def _tls(self) -> ssl.SSLContext | None:
        if self._context is None and self._is_secure:
            self._context = _tls(self._access, self._identity)
        return self._context

    async def close(self) -> None:
        self._closed = True
        if self._write_pool is not None:
            await self._write_pool.close()
            self._write_pool = None
        sessions = [one for one in (self._session, self._retired) if one is not None]
        self._session = self._retired = None
        for session in sessions:
            await _close_session(session)

    def _open_session(self) -> aiohttp.ClientSession:
        # Made on first use: a session belongs to the event loop it is made in.
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


async def _close_session(session: aiohttp.ClientSession) -> None:
    connector = session.connector
    await session.close()
    assert isinstance(connector, _Connector)
    connector.abort()
    # The connections close in the next iteration of the loop.
    await asyncio.sleep(0)


class _Connector(aiohttp.TCPConnector):
    """
    Checks the write guard when a connection is available, immediately before the request is sent.

    A request that is cancelled leaves a TLS connection that sends close_notify and waits
    for the peer's; `abort` aborts those.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Only the latest: connections that were cancelled earlier have closed since.
        self._recent: deque[asyncio.Transport] = deque(maxlen=_RECENT)

    def abort(self) -> None:
        """Abort connections that still wait for the peer's close_notify."""
        for transport in self._recent:
            transport.abort()

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        created = await super()._create_connection(req, traces, timeout)
        if created.transport is not None:
            self._recent.append(created.transport)
        return created

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if isinstance(req.body, _GuardedBody):
            try:
                check_guard(req.body.guard)
            except NotLeading:
                connection.release()
                raise
        return connection


class _GuardedBody(aiohttp.BytesIOPayload):
    """The body of a write with its guard, sent in chunks so that the event loop is not blocked."""

    def __init__(self, body: bytes, guard: WriteGuard | None) -> None:
        super().__init__(io.BytesIO(body))
        self.guard = guard


class _ReadResponse:
    """A response that was read completely."""

    def __init__(self, response: HttpResponse) -> None:
        self.status, self.headers, self._body = response

    async def read(self) -> bytes:
        return self._body

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None:
        pass


class _Response:
    def __init__(self, response: aiohttp.ClientResponse, request: str) -> None:
        self.status = response.status
        self._response = response
        self._request = request

    @property
    def headers(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self._response.headers.items()}

    async def read(self) -> bytes:
        try:
            return await self._response.read()
        except _CONNECTION_ERRORS as error:
            raise Unreachable(
                f"{self._request}: connection lost while reading the response: {_message(error)}"
            ) from error
        finally:
            self._response.release()

    async def stream(self) -> AsyncIterator[bytes]:
        # By chunk, not by line: aiohttp limits the length of a line.
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _CONNECTION_ERRORS as error:
            raise Unreachable(
                f"{self._request}: connection lost while reading the stream: {_message(error)}"
            ) from error

    async def close(self) -> None:
        connection = self._response.connection
        transport = connection.transport if connection is not None else None
        self._response.close()
        if transport is not None:
            # A TLS connection waits for the peer's close_notify, and the event loop may end before it.
            transport.abort()
            await asyncio.sleep(0)


def _message(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientResponseError):
        # Its text has the URL of the proxy, and with it the password.
        return f"{error.status} {error.message}"
    return str(error) or type(error).__name__


def _server_url(server: str) -> tuple[str, bool]:
    """Return the server URL without a trailing slash, and whether it uses TLS."""
    try:
        parts = urlsplit(server)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise SettingsError(f"{server!r} is no server URL", "https://HOST:PORT is one")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", parts.scheme == "https"


def _tls(access: Access, identity: Identity) -> ssl.SSLContext:
    try:
        context = client_context(access.authority.decode() if access.authority else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the CA certificate for {access.server}: {error}") from error
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate and identity.key:
        try:
            load_identity(context, identity)
        except ssl.SSLError as error:
            raise SettingsError(f"cannot use the client certificate for {access.server}: {error}") from error
    return context
