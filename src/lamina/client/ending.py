"""A transport that somebody may end: whoever waits for an answer then waits no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lamina.client.transport import Query, Response, Transport
from lamina.errors import NotSeenYet


class EndingTransport:
    """
    Carries requests through another transport until it is ended.

    What had been sent by then may have been done or not; nobody is told.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: set[asyncio.Timeout] = set()
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
    ) -> Response:
        if self._ended:
            raise _over(method, path)
        # Without a deadline, until there is one.
        wait = asyncio.timeout(None)
        try:
            async with wait:
                self._waiting.add(wait)
                return await self._transport.request(
                    method, path, query=query, headers=headers, body=body, streams=streams
                )
        except TimeoutError:
            if wait.expired():
                raise _over(method, path) from None
            raise
        finally:
            self._waiting.discard(wait)

    def end(self) -> None:
        """Carry nothing more, and wait for no answer."""
        self._ended = True
        waiting, self._waiting = self._waiting, set()
        for wait in waiting:
            wait.reschedule(asyncio.get_running_loop().time())

    async def close(self) -> None:
        await self._transport.close()


def _over(method: str, path: str) -> NotSeenYet:
    return NotSeenYet(f"{method} {path}: nobody looks at this cluster any more")
