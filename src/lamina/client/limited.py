"""A transport that is in no hurry: so many requests a second, and the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from lamina.client.transport import Query, Response, Transport
from lamina.rates import Bucket


class LimitedTransport:
    """
    Carries requests through another transport, at a limited rate.

    `waited` is told how long each request waited for its turn.
    """

    def __init__(
        self, transport: Transport, bucket: Bucket, waited: Callable[[str, float], None] = lambda method, seconds: None
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
    ) -> Response:
        wait = self._bucket.reserve()
        if wait:
            await asyncio.sleep(wait)
        self._waited(method, wait)
        return await self._transport.request(
            method, path, query=query, headers=headers, body=body, streams=streams
        )

    async def close(self) -> None:
        await self._transport.close()
