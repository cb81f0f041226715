"""
A transport that calls the embedded server directly.

Requests pass the same dispatch, admission and encoding as over HTTP, so a
controller in this process gets the responses that kubectl gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias
from urllib.parse import urlencode

from lamina.client.transport.base import Query, Response, Sink
from lamina.client.write_guard import WriteGuard, check_guard
from lamina.errors import Unreachable

TIMEOUT = 60.0
"""Seconds to wait for a response that a fault may hold back; the same as over HTTP."""


class ServerResponse(Protocol):
    """A response of the server; an iterator as body is a stream."""

    @property
    def status(self) -> int: ...
    @property
    def content_type(self) -> str: ...
    @property
    def headers(self) -> Sequence[tuple[str, str]]: ...
    @property
    def body(self) -> bytes | AsyncIterator[bytes]: ...


Handle: TypeAlias = Callable[[str, str, str, Mapping[str, str], bytes], Awaitable[ServerResponse]]
"""The server's entry point: method, path, raw query, headers in lower case, body; bound to an identity."""


class InProcessTransport:
    """
    Passes requests to a server in the same process.

    The server always responds, except under a fault: then `timeout` returns the
    seconds to wait, otherwise None.
    """

    def __init__(self, handle: Handle, timeout: Callable[[], float | None] = lambda: None) -> None:
        self._handle, self._timeout = handle, timeout

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
        request = _encoded(tuple(query)) if query else ""
        check_guard(guard)
        timeout = self._timeout()
        if timeout is None:
            return _Response(await self._handle(method, path, request, headers, body or b""))
        try:
            async with asyncio.timeout(timeout):
                return _Response(await self._handle(method, path, request, headers, body or b""))
        except TimeoutError:
            raise Unreachable(f"{method} {path}: no answer within {timeout:g} seconds") from None

    async def close(self) -> None:
        """Nothing to close: the server has another owner."""


@lru_cache(maxsize=512)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    """Return a query as a string; cached, because a controller repeats a few queries."""
    return urlencode(query)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


class _Response:
    def __init__(self, response: ServerResponse) -> None:
        self.status = response.status
        self._response = response
        self._body = response.body

    @property
    def headers(self) -> Mapping[str, str]:
        return {"content-type": self._response.content_type} | {
            name.lower(): value for name, value in self._response.headers
        }

    async def read(self) -> bytes:
        if isinstance(self._body, bytes):
            return self._body
        return b"".join([chunk async for chunk in self._body])

    def push_to(self, sink: Sink) -> None:
        push_to = getattr(self._body, "push_to", None)
        if push_to is not None:
            push_to(sink)

    def stream(self) -> AsyncIterator[bytes]:
        return _once(self._body) if isinstance(self._body, bytes) else self._body

    async def close(self) -> None:
        # A dropped stream would keep its watch open until the garbage collector runs.
        end = getattr(self._body, "aclose", None)
        if end is not None:
            await end()
