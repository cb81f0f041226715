"""A webhook for tests: an ordinary HTTP server that answers as the test says, and records its requests."""

import asyncio
import inspect
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Said = dict[str, Any]
Reply = Said | bytes | web.Response
Answer = Callable[[Said], Reply | Awaitable[Reply]]

TIMEOUT = 120.0


class Hook:
    """What a webhook was asked, and what it answers: `answer` may be replaced at any time, also for one path."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.paths: dict[str, Answer] = {}
        self.requests: list[Said] = []
        self.headers: list[dict[str, str]] = []
        self.request_paths: list[str] = []
        self.delay: float = 0.0
        self.url = ""
        self._news = asyncio.Condition()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        said = json.loads(await request.read())
        self.headers.append(dict(request.headers))
        self.request_paths.append(request.path)
        self.requests.append(said)
        async with self._news:
            self._news.notify_all()
        if self.delay:
            await asyncio.sleep(self.delay)
        given = self.paths.get(request.path, self.answer)(said)
        reply = await given if inspect.isawaitable(given) else given
        if isinstance(reply, web.Response):
            return reply
        body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        return web.Response(body=body, content_type="application/json")

    def on(self, path: str) -> list[Said]:
        """Return what was asked at one path."""
        return [said for said, heard in zip(self.requests, self.request_paths, strict=True) if heard == path]

    async def called(self, times: int, path: str = "") -> None:
        """Wait until it has been called so often."""
        try:
            async with asyncio.timeout(TIMEOUT), self._news:
                await self._news.wait_for(lambda: self.count(path) >= times)
        except TimeoutError:
            raise AssertionError(f"called {self.count(path)} times at {path or 'any path'}") from None

    async def received(self, wanted: Callable[[Said], bool], since: int = 0) -> None:
        """Wait until it has been asked something, at the earliest after so many calls."""
        async with asyncio.timeout(TIMEOUT), self._news:
            await self._news.wait_for(lambda: any(map(wanted, self.requests[since:])))

    def count(self, path: str = "") -> int:
        """Return how often it has been called."""
        return len(self.on(path) if path else self.requests)

    def forget(self) -> None:
        """Begin to count anew."""
        self.requests.clear()
        self.headers.clear()
        self.request_paths.clear()

    async def called_again(self, path: str = "", times: int = 1) -> Said:
        """
        Wait until it is called once more than it has been, and return what was said then.

        Not after a write that causes the call: the call may come before the response to the write.
        """
        await self.called(self.count(path) + times, path)
        return (self.on(path) if path else self.requests)[-1]


@asynccontextmanager
async def serve(answer: Answer, secured: ssl.SSLContext | None = None) -> AsyncIterator[Hook]:
    """Serve a webhook on loopback until the end of the block."""
    hook = Hook(answer)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/{path:.*}", hook.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=secured)
    await site.start()
    host, port = runner.addresses[0][:2]
    hook.url = f"{'https' if secured else 'http'}://{host}:{port}"
    try:
        yield hook
    finally:
        await runner.cleanup()
