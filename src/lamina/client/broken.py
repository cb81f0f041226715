"""
A transport that breaks things on request, on the way to any server.

It takes the faults that the embedded server takes, for controllers that are to
be seen in trouble on a server which cannot be told to make any. The past, here,
is an earlier answer to the same question.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import aclosing
from typing import TypeAlias

import orjson

from lamina.client.transport import Query, Response, Transport
from lamina.errors import ApiError, Gone, Unreachable
from lamina.faults import Asked, Cut, Expire, Faults, Silence, Stale, asked
from lamina.faults.table import Entry, Meeting, hits

PATIENCE = 60.0
"""For how many seconds an answer is waited for that may not come."""
_KEPT = 64
"""How many earlier answers to a question are kept."""

_Question: TypeAlias = tuple[str, Query, str]


class BrokenTransport:
    """Carries requests through another transport, as badly as `faults` say."""

    def __init__(
        self, transport: Transport, faults: Faults | None = None, *, patience: float = PATIENCE
    ) -> None:
        self._transport, self._patience = transport, patience
        self.faults = faults if faults is not None else Faults()
        self.faults.added = self._begin
        self._watches: dict[_Watch, Asked] = {}
        self._answers: dict[_Question, deque[tuple[float, _Said]]] = {}

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
        request = asked(method, path, dict(query))
        meeting = self.faults.meet(request)
        try:
            await self._patiently(meeting.before(), f"{method} {path}")
            if meeting.find(Expire) is not None:
                raise Gone("too old resource version: a fault asked for it")
            response = await self._transport.request(
                method, path, query=query, headers=headers, body=body, streams=streams
            )
            if meeting.entries:
                try:
                    await self._patiently(meeting.after(), f"{method} {path}")
                except BaseException:
                    await response.close()
                    raise
        except ApiError as refused:
            return _Said.refusal(refused)
        if request.verb == "watch":
            watch = _Watch(response, meeting, self._watches)
            self._watches[watch] = request
            return watch
        stale = meeting.find(Stale)
        if stale is not None and response.status == 200:
            question = (path, tuple(query), headers.get("accept", ""))
            return self._earlier(stale, question, await _Said.of(response))
        return response

    async def close(self) -> None:
        await self._transport.close()

    async def _patiently(self, meeting: Awaitable[None], what: str) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await meeting
        except TimeoutError:
            raise Unreachable(f"{what}: no answer within {self._patience:g} seconds") from None

    def _earlier(self, entry: Entry, question: _Question, present: _Said) -> _Said:
        """Return what a question was answered with before, as far back as the fault says."""
        assert isinstance(entry.fault, Stale)
        now = asyncio.get_running_loop().time()
        answers = self._answers.setdefault(question, deque(maxlen=_KEPT))
        answers.append((now, present))
        if entry.fault.versions is not None:
            return answers[max(0, len(answers) - 1 - entry.fault.versions)][1]
        if entry.fault.seconds is None:
            return answers[0][1]
        while len(answers) > 1 and answers[1][0] <= now - entry.fault.seconds:
            answers.popleft()
        return answers[0][1]

    def _begin(self, entry: Entry) -> None:
        """Take note of a fault that has come; watches that it is about come back and meet it."""
        if isinstance(entry.fault, Stale):
            self._answers.clear()
        if isinstance(entry.fault, Cut | Stale | Silence):
            for watch, about in list(self._watches.items()):
                if hits(entry, about):
                    watch.end()


class _Said:
    """An answer that is here, whole."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self._body = status, headers, body

    @classmethod
    async def of(cls, response: Response) -> _Said:
        return cls(response.status, response.headers, await response.read())

    @classmethod
    def refusal(cls, error: ApiError) -> _Said:
        headers = {"content-type": "application/json"}
        if error.retry_after is not None:
            headers["retry-after"] = str(error.retry_after)
        return cls(error.code, headers, orjson.dumps(error.status()))

    async def read(self) -> bytes:
        return self._body

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None:
        """There is nothing to close: all of it is here."""


class _Watch:
    """A watch that can be ended from outside, and that meets with faults."""

    def __init__(self, response: Response, meeting: Meeting, known: dict[_Watch, Asked]) -> None:
        self.status, self.headers = response.status, response.headers
        self._response, self._meeting, self._known = response, meeting, known
        self._ended: asyncio.Future[None] | None = None

    def end(self) -> None:
        self._ended = asyncio.ensure_future(self.close())

    async def read(self) -> bytes:
        self._known.pop(self, None)
        return await self._response.read()

    async def stream(self) -> AsyncIterator[bytes]:
        try:
            async with aclosing(self._meeting.stream(self._response.stream())) as pieces:
                async for piece in pieces:
                    yield piece
        except Unreachable:
            # An end that was asked for is as clean as one of the server's own.
            if self._ended is None:
                raise
        finally:
            self._known.pop(self, None)

    async def close(self) -> None:
        self._known.pop(self, None)
        await self._response.close()
