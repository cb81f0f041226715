"""A transport with client-side rate limiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.ratelimit import TokenBucket


class RateLimitedTransport:
    """
    Sends requests through another transport, at a limited rate.

    `waited` is called with the method and the seconds that each request waited.
    """

    def __init__(
        self, transport: Transport, bucket: TokenBucket, waited: Callable[[str, float], None] = lambda method, seconds: None
    ) -> None:  # fmt: skip
        self._transport, self._bucket, self._waited = transport, bucket, waited

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
        wait = self._bucket.reserve()
        if wait:
            await asyncio.sleep(wait)
        self._waited(method, wait)
        return await self._transport.request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )

    async def close(self) -> None:
        await self._transport.close()
