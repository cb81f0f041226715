"""A wire between Metacontroller and its server: it counts what passes, it can be cut, and it can be the end."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from lamina.client.client import Client
from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.errors import Unreachable


class Sent(NamedTuple):
    """One request that passed."""

    method: str
    path: str
    streams: bool

    @property
    def is_write(self) -> bool:
        return self.method != "GET"


class Wire:
    """
    Carries requests, and remembers them.

    After `last` writes, if that is set, no answer comes back any more, as if the
    sender had died, and `dead` is set. While `forgetful` is
    set, a watch that takes up an older one hears that the server no longer
    keeps where it ended.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cut = asyncio.Event()
        self.sent: list[Sent] = []
        self.last: int | None = None
        self.forgetful = False
        self.forgotten = 0
        self.dead = asyncio.Event()

    @property
    def writes(self) -> list[Sent]:
        return [one for one in self.sent if one.is_write]

    @property
    def looks(self) -> list[Sent]:
        """Return the requests that ask for something once: no writes and no watches."""
        return [one for one in self.sent if not one.is_write and not one.streams]

    def cut(self) -> None:
        """Break off everything that is under way; nothing passes until it is mended."""
        self._cut.set()

    def mend(self) -> None:
        self._cut = asyncio.Event()

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
        if self.dead.is_set():
            await asyncio.get_running_loop().create_future()
        if self._cut.is_set():
            raise Unreachable(f"{method} {path}: the wire is cut")
        self.sent.append(Sent(method, path, streams))
        if self.last is not None and len(self.writes) >= self.last:
            self.dead.set()
        last_words = self.dead.is_set()
        asked = dict(query)
        if streams and self.forgetful and asked.get("resourceVersion") and "sendInitialEvents" not in asked:
            self.forgotten += 1
            return _Expired()
        answer = await self._transport.request(
            method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
        )
        if last_words:
            await asyncio.get_running_loop().create_future()
        return _Cuttable(answer, self._cut) if streams else answer

    async def close(self) -> None:
        """The transport is owned by the caller."""


class _Expired:
    """The answer of a server that has forgotten."""

    status = 410
    headers: Mapping[str, str] = {"content-type": "application/json"}

    async def read(self) -> bytes:
        return (
            b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,'
            b'"message":"too old resource version"}'
        )

    async def stream(self) -> AsyncIterator[bytes]:
        yield await self.read()

    async def close(self) -> None:
        """It was answered at once."""


class _Cuttable:
    """A stream that ends in the middle when the wire is cut."""

    def __init__(self, answer: Response, cut: asyncio.Event) -> None:
        self._answer, self._cut = answer, cut
        self.status, self.headers = answer.status, answer.headers

    async def read(self) -> bytes:
        return await self._answer.read()

    async def stream(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._answer.stream())
        broken = asyncio.create_task(self._cut.wait())
        try:
            while not broken.done():
                piece = asyncio.ensure_future(anext(pieces, None))
                try:
                    await asyncio.wait((piece, broken), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not piece.done():
                        piece.cancel()
                        await asyncio.wait((piece,))
                if not broken.done():
                    arrived = piece.result()
                    if arrived is None:
                        return
                    yield arrived
            raise Unreachable("the wire is cut")
        finally:
            broken.cancel()

    async def close(self) -> None:
        await self._answer.close()


def wired(client: Client) -> tuple[Client, Wire]:
    """Return a client of the same server, and the wire it speaks through."""
    wire = Wire(client._transport)
    return Client(wire), wire
