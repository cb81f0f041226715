"""Serves health checks, readiness and metrics over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from ssl import SSLContext
from typing import NamedTuple

from aiohttp import web

from lamina.errors import SettingsError

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class NotReady(str):
    """Why a page is answered with 503."""


Page = Callable[[], bytes | NotReady]
"""Returns the response of a path."""


def address(text: str) -> tuple[str, int] | None:
    """Return the host and port to listen on, or None for `0`; an empty host is every interface."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f'expected an address like HOST:PORT, :PORT or 0, got "{text}"')
    return host.strip("[]"), int(port)


class Protection(NamedTuple):
    """How pages are protected: by TLS, and by a review of the headers of each request."""

    context: SSLContext
    review: Callable[[Mapping[str, str]], Awaitable[HTTPStatus]]


@asynccontextmanager
async def listening(
    *pages: tuple[str, Mapping[str, Page]], protection: Protection | None = None
) -> AsyncIterator[tuple[str, ...]]:
    """Serve pages, by address and path, until the end of the block; yields the addresses. `0` serves none."""
    review = protection.review if protection is not None else None
    context = protection.context if protection is not None else None
    runners: list[web.AppRunner] = []
    served: list[str] = []
    try:
        for text, paths in _by_address(pages).items():
            parsed = address(text)
            if parsed is None:
                continue
            app = web.Application()
            for path, page in paths.items():
                app.router.add_get(path, _handler(page, review))
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            runners.append(runner)
            try:
                await web.TCPSite(runner, parsed[0] or None, parsed[1], ssl_context=context).start()
            except OSError as error:
                raise SettingsError(f"cannot listen on {text}: {error.strerror}") from None
            served += [f"{host}:{port}" for host, port, *_ in runner.addresses]
        yield tuple(served)
    finally:
        for runner in runners:
            await runner.cleanup()


def _by_address(pages: Sequence[tuple[str, Mapping[str, Page]]]) -> dict[str, dict[str, Page]]:
    """Return the pages by address; an address that is named twice serves both."""
    merged: dict[str, dict[str, Page]] = {}
    for text, paths in pages:
        merged.setdefault(text, {}).update(paths)
    return merged


def _handler(
    page: Page, review: Callable[[Mapping[str, str]], Awaitable[HTTPStatus]] | None
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        if review is not None and (status := await review(request.headers)) is not HTTPStatus.OK:
            return web.Response(status=status, text=f"{status.phrase}\n")
        body = page()
        if isinstance(body, NotReady):
            return web.Response(status=503, text=f"{body}\n")
        return web.Response(body=body, headers={"Content-Type": _TEXT})

    return handle
