"""
One connection: bytes to requests, answers to bytes.

httptools finds the parts of a request; here they are bounded, put together,
answered one at a time in the order they came, and written with one write each.
A stream is written as it comes, as fast as its reader reads.
"""

from __future__ import annotations

import asyncio
import gzip
from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol, cast

import httptools

from lamina.errors import ApiError, BadRequest, TimedOut, TooLarge
from lamina.logs import log
from lamina.server.heads import head_of
from lamina.server.identity import Authenticator
from lamina.server.options import deadline
from lamina.server.request import Answer, Identity, Request, error_answer

BODY_LIMIT = 3 * 1024 * 1024
HEADERS_LIMIT = 100
HEADER_BYTES_LIMIT = 64 * 1024
REQUEST_PATIENCE = 30.0
"""Seconds a client may take to send a request once it has begun, or after it has connected."""
IDLE_PATIENCE = 180.0
_QUEUE_LIMIT = 16
"""How many requests may wait behind the one being answered before nothing more is read."""
_COMPRESS_ABOVE = 128 * 1024
_OFF_LOOP_ABOVE = 1024 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"


class Handler(Protocol):
    """What answers requests."""

    def answer_now(self, request: Request) -> Answer | None:
        """Return the answer to a request that nothing has to be waited for, None for any other."""
        ...

    async def handle(self, request: Request) -> Answer: ...


class Desk:
    """What the connections of one listener share."""

    def __init__(self, handler: Handler, authenticator: Authenticator) -> None:
        self.handler = handler
        self.authenticator = authenticator
        self.connections: set[Connection] = set()
        self.closing = False
        self.deserted = asyncio.Event()
        """Set whenever nobody is connected any more."""


class Connection(asyncio.Protocol):
    """One client, from its arrival to its going."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._certified: Identity | None = None
        # When the client should have been heard of; None while it waits for us.
        # A sweep looks at it now and then, which is cheaper than a timer a request.
        self._due: float | None = None
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._streaming = False
        self._lost = False
        self._broken = False
        self._room: asyncio.Future[None] | None = None
        self._full = False
        self._begin()

    # What the transport says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are transports in all but their base class.
        self._transport = cast(asyncio.Transport, transport)
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        if certificate:
            from lamina.server.certificates import identity_in

            self._certified = identity_in(certificate)
        self._desk.connections.add(self)
        self._desk.deserted.clear()
        self._due = self._loop.time() + REQUEST_PATIENCE

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._desk.connections.discard(self)
        if not self._desk.connections:
            self._desk.deserted.set()
        self._waiting.clear()
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        if self._task is not None and self._streaming:
            # A write that was accepted goes on without its client; a stream has nobody left.
            self._task.cancel()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._broken:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(BadRequest("this server does not upgrade connections"))
        except httptools.HttpParserError:
            self._refuse(BadRequest("the request is no HTTP"))

    def eof_received(self) -> bool:
        return False

    # What the parser finds

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._size = 0
        self._body: list[bytes] = []
        self._body_size = 0

    def on_message_begin(self) -> None:
        self._begin()
        if self._task is None:
            self._due = self._loop.time() + REQUEST_PATIENCE

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._count(len(name) + len(value))

    def _count(self, size: int) -> None:
        self._size += size
        if (self._size > HEADER_BYTES_LIMIT or len(self._headers) > HEADERS_LIMIT) and not self._broken:
            self._stop_with(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")

    def on_headers_complete(self) -> None:
        length = self._headers.get("content-length", "")
        if length.isdigit() and int(length) > BODY_LIMIT:
            self._refuse(_too_large())
        elif self._headers.get("expect", "").lower() == "100-continue" and not self._broken:
            self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        if self._body_size > BODY_LIMIT:
            self._refuse(_too_large())
        elif not self._broken:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._broken:
            return
        url = httptools.parse_url(self._url)
        request = Request(
            self._parser.get_method().decode("latin-1"),
            (url.path or b"/").decode("latin-1"),
            (url.query or b"").decode("latin-1"),
            self._headers,
            b"".join(self._body) if len(self._body) != 1 else self._body[0],
        )
        self._due = None
        keep = self._parser.should_keep_alive()
        if self._task is not None:
            self._waiting.append((request, keep))
            if len(self._waiting) >= _QUEUE_LIMIT:
                self._transport.pause_reading()
            return
        self._serve(request, keep)

    # Answering

    def _serve(self, request: Request, keep: bool) -> None:
        """Answer a request at once where that is possible, and otherwise in a task."""
        try:
            request.user = self._desk.authenticator.identify(
                request.headers.get("authorization", ""), self._certified
            )
        except ApiError as error:
            self._send(request, error_answer(error), keep)
            self._next(keep)
            return
        answer = self._desk.handler.answer_now(request)
        if answer is not None and isinstance(answer.body, bytes) and len(answer.body) <= _OFF_LOOP_ABOVE:
            self._send(request, answer, keep)
            self._next(keep)
            return
        self._task = self._loop.create_task(self._work(request, answer, keep))

    def _next(self, keep: bool) -> None:
        """Go on with what was sent meanwhile, or wait for more."""
        if self._lost:
            return
        if not keep or self._desk.closing or self._broken:
            self._transport.close()
            return
        if self._waiting:
            request, keep = self._waiting.popleft()
            if len(self._waiting) == _QUEUE_LIMIT - 1:
                self._transport.resume_reading()
            # Not from here: a hundred requests in one packet are no reason for a deep stack.
            self._loop.call_soon(self._serve, request, keep)
        else:
            self._due = self._loop.time() + IDLE_PATIENCE

    async def _work(self, request: Request, answer: Answer | None, keep: bool) -> None:
        try:
            answer = answer or await self._answer(request)
            if isinstance(answer.body, bytes):
                if len(answer.body) > _OFF_LOOP_ABOVE and _takes_gzip(request):
                    packed = await asyncio.to_thread(gzip.compress, answer.body, 1)
                    answer = Answer(answer.status, packed, answer.content_type, [*answer.headers, *_PACKED])
                self._send(request, answer, keep)
            else:
                await self._stream(request, answer, answer.body, keep)
        except Exception:
            log.exception("connection failed", path=request.path)
            keep = False
        finally:
            self._task = None
        self._next(keep)

    async def _answer(self, request: Request) -> Answer:
        if "timeout=" not in request.query:
            return await self._desk.handler.handle(request)
        try:
            return await asyncio.wait_for(self._desk.handler.handle(request), deadline(request))
        except ApiError as error:
            return error_answer(error)
        except TimeoutError:
            return error_answer(
                TimedOut("Timeout: request did not complete within the allotted timeout", retry_after=1)
            )

    def _send(self, request: Request, answer: Answer, keep: bool) -> None:
        if self._lost:
            return
        body = answer.body
        assert isinstance(body, bytes)
        headers = answer.headers
        packed = any(name == "content-encoding" for name, _ in headers)
        if len(body) > _COMPRESS_ABOVE and not packed and _takes_gzip(request):
            body = gzip.compress(body, 1)
            headers = [*headers, *_PACKED]
        head = head_of(answer.status, answer.content_type, headers, request.warnings, len(body), keep)
        self._transport.write(head if request.method == "HEAD" or answer.status == 304 else head + body)

    async def _stream(self, request: Request, answer: Answer, body: AsyncIterator[bytes], keep: bool) -> None:
        """Write a stream as it comes; an end that somebody asked for is as clean as its own."""
        self._streaming = True
        write = self._transport.write
        write(head_of(answer.status, answer.content_type, answer.headers, request.warnings, None, keep))
        try:
            async for chunk in body:
                if chunk:
                    write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                    if self._full:
                        await self._drained()
        except asyncio.CancelledError:
            if not self._desk.closing:
                raise
        except ApiError as error:
            log.warning("stream ended early", path=request.path, because=error.message)
        finally:
            self._streaming = False
            close = getattr(body, "aclose", None)
            if close is not None:
                await close()
        if not self._lost:
            write(_LAST_CHUNK)

    async def _drained(self) -> None:
        self._room = self._loop.create_future()
        try:
            await self._room
        finally:
            self._room = None

    # Ending

    def shut(self) -> None:
        """End the connection soon: now if it is idle, after its answer if it is not; streams end here."""
        if self._task is None and not self._waiting:
            self._transport.close()
        elif self._streaming and self._task is not None:
            self._task.cancel()

    def drop(self) -> None:
        """End the connection now, whatever it is doing."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def _refuse(self, error: ApiError) -> None:
        """Answer a request that cannot be read to its end, and close."""
        if self._broken:
            return
        answer = error_answer(error)
        assert isinstance(answer.body, bytes)
        head = head_of(answer.status, answer.content_type, answer.headers, (), len(answer.body), False)
        self._broken = True
        self._transport.write(head + answer.body)
        self._transport.close()

    def _stop_with(self, line: bytes) -> None:
        self._broken = True
        self._transport.write(line + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        self._transport.close()

    def close_if_late(self, now: float) -> None:
        """Close the connection if it should have been heard of by now."""
        if self._due is not None and now > self._due and self._task is None:
            self._transport.close()


_PACKED = [("content-encoding", "gzip"), ("vary", "Accept-Encoding")]


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _too_large() -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {BODY_LIMIT}")
