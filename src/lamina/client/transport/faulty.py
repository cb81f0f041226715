"""
A transport that injects faults on the way to any server.

It takes the same faults as the embedded server, for tests of controllers against
a real server. A stale response is an earlier response to the same request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import aclosing
from typing import TypeAlias

import orjson

from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.errors import ApiError, Gone, Unreachable
from lamina.faults import Cut, Expire, Faults, RequestAttributes, Silence, Stale, attributes_of
from lamina.faults.table import Entry, RequestFaults, applies

TIMEOUT = 60.0
"""Seconds to wait for a response that a fault may hold back."""
_HISTORY = 64
"""Earlier responses that are kept per request."""

_Key: TypeAlias = tuple[str, Query, str]


class FaultyTransport:
    """Sends requests through another transport and applies `faults` to them."""

    def __init__(
        self, transport: Transport, faults: Faults | None = None, *, timeout: float = TIMEOUT
    ) -> None:
        self._transport, self._timeout = transport, timeout
        self.faults = faults if faults is not None else Faults()
        self.faults.added = self._begin
        self._watches: dict[_Watch, RequestAttributes] = {}
        self._history: dict[_Key, deque[tuple[float, _ReadResponse]]] = {}

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
        request = attributes_of(method, path, dict(query))
        effects = self.faults.match(request)
        try:
            await self._with_timeout(effects.before(), f"{method} {path}")
            if effects.find(Expire) is not None:
                raise Gone("too old resource version: injected by a fault")
            response = await self._transport.request(
                method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
            )
            if effects.entries:
                try:
                    await self._with_timeout(effects.after(), f"{method} {path}")
                except BaseException:
                    await response.close()
                    raise
        except ApiError as error:
            return _ReadResponse.of_error(error)
        if request.verb == "watch":
            watch = _Watch(response, effects, self._watches)
            self._watches[watch] = request
            return watch
        stale = effects.find(Stale)
        if stale is not None and response.status == 200:
            key = (path, tuple(query), headers.get("accept", ""))
            return self._stale(stale, key, await _ReadResponse.of(response))
        return response

    async def close(self) -> None:
        await self._transport.close()

    async def _with_timeout(self, effects: Awaitable[None], what: str) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await effects
        except TimeoutError:
            raise Unreachable(f"{what}: no answer within {self._timeout:g} seconds") from None

    def _stale(self, entry: Entry, key: _Key, current: _ReadResponse) -> _ReadResponse:
        """Return an earlier response to the same request, as old as the fault says."""
        assert isinstance(entry.fault, Stale)
        now = asyncio.get_running_loop().time()
        history = self._history.setdefault(key, deque(maxlen=_HISTORY))
        history.append((now, current))
        if entry.fault.versions is not None:
            return history[max(0, len(history) - 1 - entry.fault.versions)][1]
        if entry.fault.seconds is None:
            return history[0][1]
        while len(history) > 1 and history[1][0] <= now - entry.fault.seconds:
            history.popleft()
        return history[0][1]

    def _begin(self, entry: Entry) -> None:
        """Apply a new fault to open watches: matching ones end, so that clients reconnect under the fault."""
        if isinstance(entry.fault, Stale):
            self._history.clear()
        if isinstance(entry.fault, Cut | Stale | Silence):
            for watch, request in list(self._watches.items()):
                if applies(entry, request):
                    watch.end()


class _ReadResponse:
    """A response that was read completely."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self._body = status, headers, body

    @classmethod
    async def of(cls, response: Response) -> _ReadResponse:
        return cls(response.status, response.headers, await response.read())

    @classmethod
    def of_error(cls, error: ApiError) -> _ReadResponse:
        headers = {"content-type": "application/json"}
        if error.retry_after is not None:
            headers["retry-after"] = str(error.retry_after)
        return cls(error.code, headers, orjson.dumps(error.status()))

    async def read(self) -> bytes:
        return self._body

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None:
        """Nothing to close: the response was read completely."""


class _Watch:
    """A watch that faults can change and end."""

    def __init__(
        self, response: Response, effects: RequestFaults, open_watches: dict[_Watch, RequestAttributes]
    ) -> None:
        self.status, self.headers = response.status, response.headers
        self._response, self._effects, self._open = response, effects, open_watches
        self._ended: asyncio.Future[None] | None = None

    def end(self) -> None:
        self._ended = asyncio.ensure_future(self.close())

    async def read(self) -> bytes:
        self._open.pop(self, None)
        return await self._response.read()

    async def stream(self) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._effects.stream(self._response.stream())) as chunks:
                async for chunk in chunks:
                    yield chunk
        except Unreachable:
            # An end that a fault requested is reported as a regular end of the watch.
            if self._ended is None:
                raise
        finally:
            self._open.pop(self, None)

    async def close(self) -> None:
        self._open.pop(self, None)
        await self._response.close()
