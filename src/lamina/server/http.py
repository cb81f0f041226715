"""
HTTP to requests, answers to HTTP.

A bare ASGI application: it reads the body within its bounds, says who asks,
hands the request over and sends what comes back. It has no opinion about any
of it.
"""

from __future__ import annotations

import asyncio
import gzip
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from lamina.errors import ApiError, BadRequest, TimedOut, TooLarge
from lamina.logs import log
from lamina.server.identity import Authenticator
from lamina.server.options import deadline
from lamina.server.request import Answer, Request, error_answer

BODY_LIMIT = 3 * 1024 * 1024
_COMPRESS_ABOVE = 128 * 1024
_OFF_LOOP_ABOVE = 1024 * 1024
_BODY_PATIENCE = 30.0
"""Seconds a client may take to send its body once its headers are here."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Handler(Protocol):
    """What answers requests."""

    async def handle(self, request: Request) -> Answer: ...


class Http:
    """The ASGI application in front of one handler."""

    def __init__(self, handler: Handler, authenticator: Authenticator) -> None:
        self._handler = handler
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request = Request(
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            scope["query_string"].decode("latin-1"),
            headers,
        )
        try:
            certified = scope["extensions"]["tls"] if "extensions" in scope else None
            request.user = self._authenticator.identify(headers.get("authorization", ""), certified)
            if request.method not in ("GET", "HEAD"):
                request.body = await _read_body(headers, receive)
            patience = deadline(request) if request.query and "timeout=" in request.query else 0.0
        except ApiError as error:
            await _send(request, error_answer(error), send)
            return
        except ConnectionError:
            return
        if patience:
            try:
                answer = await asyncio.wait_for(self._handler.handle(request), patience)
            except TimeoutError:
                answer = error_answer(
                    TimedOut("Timeout: request did not complete within the allotted timeout", retry_after=1)
                )
        else:
            answer = await self._handler.handle(request)
        if isinstance(answer.body, bytes):
            await _send(request, answer, send)
        else:
            await _stream(request, answer, answer.body, receive, send)


async def _read_body(headers: Mapping[str, str], receive: Receive) -> bytes:
    length = headers.get("content-length")
    if length is not None and (not length.isdigit() or int(length) > BODY_LIMIT):
        raise _too_large()
    try:
        async with asyncio.timeout(_BODY_PATIENCE):
            message = await receive()
            body: bytes = message.get("body", b"")
            if message["type"] == "http.disconnect":
                raise ConnectionError
            if not message.get("more_body"):
                if len(body) > BODY_LIMIT:
                    raise _too_large()
                return body
            parts, size = [body], len(body)
            while message.get("more_body"):
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionError
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > BODY_LIMIT:
                    raise _too_large()
            return b"".join(parts)
    except TimeoutError:
        raise BadRequest("the request's body did not arrive in time") from None


def _too_large() -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {BODY_LIMIT}")


def _headers(request: Request, answer: Answer) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"content-type", answer.content_type.encode("latin-1")),
        (b"audit-id", str(uuid.uuid4()).encode()),
    ]
    named = {name.lower() for name, _ in answer.headers}
    if "cache-control" not in named:
        headers.append((b"cache-control", b"no-cache, private"))
    headers += [
        (name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in answer.headers
    ]
    for sentence in request.warnings:
        headers.append((b"warning", _warning(sentence)))
    return headers


def _warning(sentence: str) -> bytes:
    """Return a Warning header: quotes and backslashes escaped, control characters gone."""
    kept = "".join(letter if letter >= " " else " " for letter in sentence)
    escaped = kept.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode("utf-8", "replace")


async def _send(request: Request, answer: Answer, send: Send) -> None:
    body = answer.body
    assert isinstance(body, bytes)
    headers = _headers(request, answer)
    if len(body) > _COMPRESS_ABOVE and "gzip" in request.headers.get("accept-encoding", ""):
        if len(body) > _OFF_LOOP_ABOVE:
            body = await asyncio.to_thread(gzip.compress, body, 1)
        else:
            body = gzip.compress(body, 1)
        headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
    headers.append((b"content-length", str(len(body)).encode()))
    if answer.status == 413:
        # The rest of the body is still on its way; nobody will read it.
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _stream(
    request: Request, answer: Answer, body: AsyncIterator[bytes], receive: Receive, send: Send
) -> None:
    """Send a stream until it ends or nobody is there to read it."""
    pump = asyncio.ensure_future(_pump(request, answer, body, send))
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((pump, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        pump.cancel()
        await asyncio.gather(pump, gone, return_exceptions=True)


async def _pump(request: Request, answer: Answer, body: AsyncIterator[bytes], send: Send) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": _headers(request, answer)})
    try:
        async for chunk in body:
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except ApiError as error:
        log.warning("stream ended early", path=request.path, because=error.message)
    finally:
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
