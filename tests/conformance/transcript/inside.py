"""The embedded server in this process, reached without HTTP."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from lamina.app import App
from lamina.server.request import ADMIN, Request
from lamina.settings import Settings
from tests.bed.wire import Answer
from tests.conformance.transcript.reach import PATIENCE, SILENCE, Stream

T = TypeVar("T")


class InProcessWire:
    """A server in this process, in a thread of its own."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self._app, self._loop = app, loop

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        return self._wait(self._answer(self._request(method, path, headers, body)))

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        request = self._request("GET", path, headers, None)
        told = self._wait(self._app.api.handle(request))
        if isinstance(told.body, bytes):
            return _told(request, told, told.body)
        return _InProcessStream(self, told.body)

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Request:
        route, _, query = path.partition("?")
        lowered = {name.lower(): value for name, value in headers.items()}
        return Request(method, route, query, lowered, body or b"", ADMIN)

    async def _answer(self, request: Request) -> Answer:
        told = await self._app.api.handle(request)
        body = told.body
        if not isinstance(body, bytes):
            body = b"".join([piece async for piece in body])
        return _told(request, told, body)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        waiting: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return waiting.result(PATIENCE)


def _told(request: Request, told: Any, body: bytes) -> Answer:
    return Answer(
        code=told.status,
        headers={"content-type": told.content_type} | {name.lower(): value for name, value in told.headers},
        warnings=tuple(f"299 - {json.dumps(sentence, ensure_ascii=False)}" for sentence in request.warnings),
        body=body,
    )


class _InProcessStream:
    def __init__(self, wire: InProcessWire, body: AsyncIterator[bytes]) -> None:
        self._wire, self._body = wire, body
        self._read = b""

    def line(self) -> Any:
        while b"\n" not in self._read:
            piece = self._wire._wait(asyncio.wait_for(self._next(), SILENCE))
            if piece is None:
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    async def _next(self) -> bytes | None:
        return await anext(self._body, None)

    def close(self) -> None:
        self._wire._wait(self._end())

    async def _end(self) -> None:
        end = getattr(self._body, "aclose", None)
        if end is not None:
            await end()


@contextmanager
def in_process() -> Iterator[InProcessWire]:
    """Run the embedded server in a thread of this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded server", daemon=True)
    thread.start()
    app = App(Settings(ephemeral=True, port=0))
    try:
        asyncio.run_coroutine_threadsafe(app.__aenter__(), loop).result(PATIENCE)
        try:
            yield InProcessWire(app, loop)
        finally:
            asyncio.run_coroutine_threadsafe(app.stop(), loop).result(PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()
