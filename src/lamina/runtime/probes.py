"""What others ask a process: does it live, is it ready, what has it counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from lamina.errors import SettingsError

_TEXT = "text/plain; version=0.0.4; charset=utf-8"

Page = Callable[[], bytes | None]
"""What a path answers with; None means that it cannot yet."""


def address(text: str) -> tuple[str, int] | None:
    """Return where to listen, or None for `0`; without a host, on every interface."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f'expected an address like HOST:PORT, :PORT or 0, got "{text}"')
    return host.strip("[]"), int(port)


@asynccontextmanager
async def listening(*pages: tuple[str, Mapping[str, Page]]) -> AsyncIterator[tuple[str, ...]]:
    """Serve pages, by address and path, until the end of the block; yields where. `0` serves none."""
    runners: list[web.AppRunner] = []
    served: list[str] = []
    try:
        for text, paths in _together(pages).items():
            where = address(text)
            if where is None:
                continue
            app = web.Application()
            for path, page in paths.items():
                app.router.add_get(path, _handler(page))
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            runners.append(runner)
            try:
                await web.TCPSite(runner, where[0] or None, where[1]).start()
            except OSError as taken:
                raise SettingsError(f"cannot listen on {text}: {taken.strerror}") from None
            served += [f"{host}:{port}" for host, port, *_ in runner.addresses]
        yield tuple(served)
    finally:
        for runner in runners:
            await runner.cleanup()


def _together(pages: Sequence[tuple[str, Mapping[str, Page]]]) -> dict[str, dict[str, Page]]:
    """Return what is served where; an address that is named twice serves both."""
    both: dict[str, dict[str, Page]] = {}
    for text, paths in pages:
        both.setdefault(text, {}).update(paths)
    return both


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        body = page()
        if body is None:
            return web.Response(status=503, text="not yet\n")
        return web.Response(body=body, headers={"Content-Type": _TEXT})

    return handle
