"""The embedded server in this process, reached without HTTP."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from lamina.app import App
from lamina.server.http.request import Request
from lamina.server.identity import ADMIN
from lamina.settings import Settings
from tests.bed.wire import Answer
from tests.conformance.transcript.reach import SILENCE, TIMEOUT, Stream

T = TypeVar("T")


class InProcessWire:
    """A server in this process, in a thread of its own."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self._app, self._loop = app, loop

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        return self.wait(self._answer(self._request(method, path, headers, body)))

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        request = self._request("GET", path, headers, None)
        response = self.wait(self._app.clusters.router.handle(request))
        if isinstance(response.body, bytes):
            return _answer(request, response, response.body)
        return _InProcessStream(self, response.body)

    def _request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Request:
        route, _, query = path.partition("?")
        lowered = {name.lower(): value for name, value in headers.items()}
        return Request(method, route, query, lowered, body or b"", ADMIN)

    async def _answer(self, request: Request) -> Answer:
        response = await self._app.clusters.router.handle(request)
        body = response.body
        if not isinstance(body, bytes):
            body = b"".join([piece async for piece in body])
        return _answer(request, response, body)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the server's thread and return its result."""
        waiting: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return waiting.result(TIMEOUT)


def _answer(request: Request, response: Any, body: bytes) -> Answer:
    return Answer(
        code=response.status,
        headers={"content-type": response.content_type}
        | {name.lower(): value for name, value in response.headers},
        warnings=tuple(f"299 - {json.dumps(sentence, ensure_ascii=False)}" for sentence in request.warnings),
        body=body,
    )


class _InProcessStream:
    """A stream that is read as it arrives, like a socket, even if no caller waits."""

    def __init__(self, wire: InProcessWire, body: AsyncIterator[bytes]) -> None:
        self._wire, self._body = wire, body
        self._read = b""
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._pump = wire.wait(self._start())

    def line(self) -> Any:
        while b"\n" not in self._read:
            piece = self._wire.wait(asyncio.wait_for(self._pieces.get(), SILENCE))
            if piece is None:
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        self._wire.wait(self._end())

    async def _start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for piece in self._body:
            self._pieces.put_nowait(piece)
        self._pieces.put_nowait(None)

    async def _end(self) -> None:
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        end = getattr(self._body, "aclose", None)
        if end is not None:
            await end()


@contextmanager
def in_process() -> Iterator[InProcessWire]:
    """Run the embedded server in a thread of this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded server", daemon=True)
    thread.start()
    app = App(Settings(ephemeral=True, port=0, simulate="off"))
    try:
        asyncio.run_coroutine_threadsafe(app.__aenter__(), loop).result(TIMEOUT)
        try:
            yield InProcessWire(app, loop)
        finally:
            asyncio.run_coroutine_threadsafe(app.stop(), loop).result(TIMEOUT)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIMEOUT)
        loop.close()
