"""A transport that can be cancelled, so that callers stop waiting for responses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.errors import CacheNotSynced


class CancellableTransport:
    """
    Sends requests through another transport until it is cancelled.

    A request that was sent before may or may not have been processed.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pending: set[asyncio.Timeout] = set()
        self._ended = False

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
        if self._ended:
            raise _cancelled_error(method, path)
        # The timeout has no deadline until `end` sets one.
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                self._pending.add(timeout)
                return await self._transport.request(
                    method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
                )
        except TimeoutError:
            if timeout.expired():
                raise _cancelled_error(method, path) from None
            raise
        finally:
            self._pending.discard(timeout)

    def end(self) -> None:
        """Fail pending and future requests."""
        self._ended = True
        pending, self._pending = self._pending, set()
        for timeout in pending:
            timeout.reschedule(asyncio.get_running_loop().time())

    async def close(self) -> None:
        await self._transport.close()


def _cancelled_error(method: str, path: str) -> CacheNotSynced:
    return CacheNotSynced(f"{method} {path}: this cluster is no longer in use")
