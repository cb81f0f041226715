"""
A transport that calls the embedded server directly.

Requests and answers are the server's own, so a controller in this process
meets the server that kubectl meets: same routes, same checks, same bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias
from urllib.parse import urlencode

from lamina.client.leave import check_leave
from lamina.client.transport import Query, Response, Sink
from lamina.errors import Unreachable

PATIENCE = 60.0
"""For how many seconds an answer is waited for, where one may fail to come; as long as over HTTP."""


class Answered(Protocol):
    """What the server answers: a body that is an iterator is a stream."""

    @property
    def status(self) -> int: ...
    @property
    def content_type(self) -> str: ...
    @property
    def headers(self) -> Sequence[tuple[str, str]]: ...
    @property
    def body(self) -> bytes | AsyncIterator[bytes]: ...


Handle: TypeAlias = Callable[[str, str, str, Mapping[str, str], bytes], Awaitable[Answered]]
"""The server's front door: method, path, raw query, headers in lower case, body. It knows who asks."""


class InProcessTransport:
    """
    Hands requests to a server in the same process.

    Such a server always answers, unless it is told not to: then `patience`
    returns for how many seconds an answer is waited for, and otherwise None.
    """

    def __init__(self, handle: Handle, patience: Callable[[], float | None] = lambda: None) -> None:
        self._handle, self._patience = handle, patience

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
        asked = _encoded(tuple(query)) if query else ""
        check_leave(method)
        patience = self._patience()
        if patience is None:
            return _Response(await self._handle(method, path, asked, headers, body or b""))
        try:
            async with asyncio.timeout(patience):
                return _Response(await self._handle(method, path, asked, headers, body or b""))
        except TimeoutError:
            raise Unreachable(f"{method} {path}: no answer within {patience:g} seconds") from None

    async def close(self) -> None:
        """There is nothing to close: the server is somebody else's."""


@lru_cache(maxsize=512)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    """Return a query as the server reads it; a controller asks for the same few all day."""
    return urlencode(query)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


class _Response:
    def __init__(self, answer: Answered) -> None:
        self.status = answer.status
        self._answer = answer
        self._body = answer.body

    @property
    def headers(self) -> Mapping[str, str]:
        return {"content-type": self._answer.content_type} | {
            name.lower(): value for name, value in self._answer.headers
        }

    async def read(self) -> bytes:
        if isinstance(self._body, bytes):
            return self._body
        return b"".join([piece async for piece in self._body])

    def push_to(self, sink: Sink) -> None:
        push_to = getattr(self._body, "push_to", None)
        if push_to is not None:
            push_to(sink)

    def stream(self) -> AsyncIterator[bytes]:
        return _once(self._body) if isinstance(self._body, bytes) else self._body

    async def close(self) -> None:
        # A stream that is dropped half-way would keep its watcher until the
        # garbage collector comes by.
        end = getattr(self._body, "aclose", None)
        if end is not None:
            await end()
