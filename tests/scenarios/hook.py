"""A webhook for tests: an ordinary HTTP server that answers as the test says, and remembers what it heard."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Said = dict[str, Any]
Reply = Said | bytes | web.Response
Answer = Callable[[Said], Reply]


class Hook:
    """What a webhook was asked, and what it answers: `answer` may be replaced at any time, also for one path."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.paths: dict[str, Answer] = {}
        self.requests: list[Said] = []
        self.headers: list[dict[str, str]] = []
        self.heard_paths: list[str] = []
        self.delay: float = 0.0
        self.url = ""
        self._news = asyncio.Condition()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        said = json.loads(await request.read())
        self.headers.append(dict(request.headers))
        self.heard_paths.append(request.path)
        self.requests.append(said)
        async with self._news:
            self._news.notify_all()
        if self.delay:
            await asyncio.sleep(self.delay)
        reply = self.paths.get(request.path, self.answer)(said)
        if isinstance(reply, web.Response):
            return reply
        body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        return web.Response(body=body, content_type="application/json")

    def on(self, path: str) -> list[Said]:
        """Return what was asked at one path."""
        return [said for said, heard in zip(self.requests, self.heard_paths, strict=True) if heard == path]

    async def called(self, times: int, path: str = "") -> None:
        """Wait until it has been called so often."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.on(path) if path else self.requests) >= times)


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[Hook]:
    """Serve a webhook on loopback until the end of the block."""
    hook = Hook(answer)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/{path:.*}", hook.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    hook.url = f"http://{host}:{port}"
    try:
        yield hook
    finally:
        await runner.cleanup()
