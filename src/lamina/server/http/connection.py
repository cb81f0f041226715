"""
One HTTP/1.1 connection: requests in, responses out.

- Requests are served one at a time, in the order they arrive: synchronously where the handler can,
  otherwise in a task.
- While a request waits to be served, reading from the transport is paused.
- A response is one write. A client that does not read its responses gets no further ones, and a
  stream that is not read is closed after a timeout.
- A malformed request is rejected in its turn, and ends the connection.
- A periodic sweep closes overdue connections, which is cheaper than one timer per request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from lamina.errors import ApiError, InternalError, TimedOut
from lamina.logs import log
from lamina.server.http.compression import COMPRESS_ABOVE, compress, should_compress
from lamina.server.http.connection_context import ConnectionContext
from lamina.server.http.deadline import deadline, is_long_running
from lamina.server.http.request import PushStream, Request, Response, error_response
from lamina.server.http.request_parser import Arrival, RequestParser
from lamina.server.http.response_head import encode_head
from lamina.server.identity import Identity

_UNSENT_LIMIT = 128 * 1024
"""Unsent bytes at which writing to a client is paused."""
_WRITE_SLICE = 256 * 1024
"""Larger bodies are written in slices, so that other connections are served in between."""
_REQUESTS_PER_TURN = 16
"""Requests of one connection that are served before the event loop continues with other connections."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, context: ConnectionContext) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._parser = RequestParser()
        self._transport: asyncio.Transport
        self._client_identity: Identity | None = None
        # When the client is closed as overdue; None while it waits for the server.
        self._deadline: float | None = None
        self._finishing_request = (
            True  # whether the deadline is for a request in progress: further bytes do not extend it
        )
        self._task: asyncio.Task[None] | None = None
        self._request: Request | None = None  # the request that the task serves
        self._head_sent = False  # whether the head of the current response has been written
        self._streaming = False
        self._long_running = (
            False  # whether the response is a long-running stream, which may be ended at any event
        )
        self._mid_chunk = False  # whether a chunk has been written in part
        self._lost = False
        self._reading_paused = False
        self._writing_paused = False
        self._drain_waiter: asyncio.Future[None] | None = None

    # Transport callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        context = self._context
        if context.closing:
            self._lost = True
            self._transport.abort()
            return
        context.connections.add(self)
        context.no_connections.clear()
        self._transport.set_write_buffer_limits(high=_UNSENT_LIMIT)
        self._deadline = self._loop.time() + context.timeouts.request
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        if certificate:
            self._read_client_certificate(certificate)

    def _read_client_certificate(self, certificate: bytes) -> None:
        from lamina.server.tls.certificates import certificate_identity

        try:
            self._client_identity = certificate_identity(certificate)
        except Exception as error:
            # A signed certificate may still be malformed in any way.
            log.warning("invalid client certificate", error=str(error))
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        context = self._context
        context.connections.discard(self)
        if not context.connections:
            context.no_connections.set()
        self._parser.close()
        # Only what the task needs is kept: TLS holds tens of kilobytes per connection.
        del self._transport
        self._wake_drain_waiter()
        if self._task is not None and (
            self._streaming or (self._request is not None and self._request.abandonable)
        ):
            # An accepted write is finished without its client; a stream has no reader left.
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._task is not None:
            self._wake_drain_waiter()
        else:
            self._serve_arrived()

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser.finished:
            return
        try:
            parser.feed(data)
        except Exception:
            log.exception("request not understood")
            parser.reject(error_response(InternalError("Internal error occurred: see the server's log")))
        if parser.arrived:
            self._serve_arrived()
        elif self._task is None:
            self._resume_reading()

    # Serving in order

    def _serve_arrived(self) -> None:
        """Serve the requests that have arrived, in order, until one needs a task."""
        if self._lost:
            return
        arrived = self._parser.arrived
        turns = _REQUESTS_PER_TURN
        while arrived and self._task is None and not self._writing_paused and turns:
            turns -= 1
            self._serve(arrived.popleft())
        if self._task is None:
            self._deadline = self._loop.time() + self._context.timeouts.idle
            self._finishing_request = False
            if not arrived:
                self._resume_reading()
            elif not self._writing_paused:
                self._loop.call_soon(self._serve_arrived)
        if arrived and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        """Read on, or finish the connection, now that every request that arrived has its response."""
        parser = self._parser
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if parser.finished:
            if not self._writing_paused:
                self._send_rejection()
        elif parser.reading:
            if parser.expects_continue:
                parser.expects_continue = False
                self._transport.write(_CONTINUE)
            if not self._finishing_request:
                self._finishing_request = True
                self._deadline = self._loop.time() + self._context.timeouts.request

    def _send_rejection(self) -> None:
        response = self._parser.rejection
        if response is None:
            self._close()
            return
        self._parser.rejection = None
        self._deadline = None
        assert isinstance(response.body, bytes)
        self._transport.write(encode_head(response, (), len(response.body), False) + response.body)
        # If the socket were closed while bytes still arrive, the client's kernel would discard the response
        # unread.
        self._loop.call_later(self._context.timeouts.refused, self._close)

    # Responses

    def _serve(self, arrival: Arrival) -> None:
        """Serve a request synchronously if the handler can, otherwise in a task."""
        request = arrival[0]
        response: Response | None
        try:
            request.user = self._context.authenticator.authenticate(request, self._client_identity)
            response = self._context.handler.handle_nowait(request)
        except ApiError as error:
            response = error_response(error)
        except Exception:
            response = _internal_error(request)
        if (
            response is not None
            and isinstance(response.body, bytes)
            and (len(response.body) <= COMPRESS_ABOVE or request.method == "HEAD")
        ):
            self._send(arrival, response, response.body)
            return
        self._deadline, self._request = None, request
        self._task = task = self._loop.create_task(self._serve_in_task(arrival, response))
        self._context.tasks.add(task)

    async def _serve_in_task(self, arrival: Arrival, response: Response | None) -> None:
        request = arrival[0]
        try:
            response = response or await self._handle(request)
            body = response.body
            if not isinstance(body, bytes):
                await self._stream(arrival, response, body)
            else:
                if should_compress(request, body):
                    response = await compress(response, body)
                    body = cast(bytes, response.body)
                if len(body) <= _WRITE_SLICE or request.method == "HEAD":
                    self._send(arrival, response, body)
                else:
                    self._send_head(arrival, response, len(body))
                    await self._write_slices(body)
        except Exception:
            failed = _internal_error(request)
            if self._head_sent:
                self._parser.stop()
            else:
                assert isinstance(failed.body, bytes)
                self._send(arrival, failed, failed.body)
        finally:
            # No local name holds the task: it holds the exception that may end it, which holds this frame.
            self._context.tasks.discard(cast(asyncio.Task[None], self._task))
            self._task, self._request, self._head_sent = None, None, False
        self._serve_arrived()

    async def _handle(self, request: Request) -> Response:
        if "timeout=" not in request.query or is_long_running(request):
            return await self._context.handler.handle(request)
        try:
            allowed = deadline(request)
        except ApiError as error:
            return error_response(error)
        try:
            return await asyncio.wait_for(self._context.handler.handle(request), allowed)
        except TimeoutError:
            late = TimedOut("Timeout: request did not complete within the allotted timeout")
            late.shows_details = True
            return error_response(late)

    def _send(self, arrival: Arrival, response: Response, body: bytes) -> None:
        """Write a response at once."""
        if self._lost:
            return
        request, keep, http_1_1 = arrival
        head = encode_head(
            response, request.warnings, len(body), keep and not self._context.closing, http_1_1
        )
        bare = request.method == "HEAD" or response.status == 304
        self._transport.write(head if bare else head + body)

    def _send_head(self, arrival: Arrival, response: Response, length: int | None) -> None:
        """Write the head of a response whose body follows in pieces."""
        request, keep, http_1_1 = arrival
        keep = keep and not self._context.closing and (http_1_1 or length is not None)
        self._head_sent = True
        if not self._lost:
            self._transport.write(encode_head(response, request.warnings, length, keep, http_1_1))

    async def _write_slices(self, body: bytes) -> None:
        """Write a large body in slices, as fast as the client reads."""
        rest = memoryview(body)
        while rest and not self._lost:
            self._transport.write(rest[:_WRITE_SLICE])
            rest = rest[_WRITE_SLICE:]
            if self._writing_paused:
                await self._drained()
            else:
                await asyncio.sleep(0)

    async def _stream(self, arrival: Arrival, response: Response, body: AsyncIterator[bytes]) -> None:
        """Write a stream chunk by chunk; an end requested by the server is as clean as its own."""
        request, _, http_1_1 = arrival
        if not http_1_1:
            # An HTTP/1.0 client recognizes the end of a stream by the end of the connection.
            self._parser.stop()
        self._long_running = long_running = is_long_running(request)
        self._streaming = True
        bare = request.method == "HEAD"
        try:
            self._send_head(arrival, response, None)
            if not bare and not self._lost and not (self._context.closing and long_running):
                if isinstance(body, PushStream):
                    body.push_to(self._push_chunk if http_1_1 else self._push_raw)
                await self._write_stream(body, http_1_1)
        except asyncio.CancelledError:
            if self._mid_chunk or not (self._context.closing and long_running):
                raise
        except ApiError as error:
            log.warning("stream ended early", path=request.path, error=error.message)
        finally:
            self._streaming = self._long_running = False
            close = getattr(body, "aclose", None)
            if close is not None:
                await close()
        if http_1_1 and not bare and not self._lost:
            self._transport.write(_LAST_CHUNK)

    async def _write_stream(self, body: AsyncIterator[bytes], http_1_1: bool) -> None:
        write = self._transport.write
        async for chunk in body:
            if len(chunk) > _WRITE_SLICE:
                write(b"%x\r\n" % len(chunk) if http_1_1 else b"")
                self._mid_chunk = True
                await self._write_slices(chunk)
                self._mid_chunk = False
                write(b"\r\n" if http_1_1 else b"")
            elif chunk:
                write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if http_1_1 else chunk)
            if self._writing_paused:
                await self._drained()

    def _push_chunk(self, chunk: bytes) -> bool:
        """Write a pushed chunk; false if writing is paused or the chunk is too large for one write."""
        if self._writing_paused or self._lost or len(chunk) > _WRITE_SLICE:
            return False
        self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return True

    def _push_raw(self, piece: bytes) -> bool:
        """Write a pushed piece to an HTTP/1.0 client, which takes no chunked encoding."""
        if self._writing_paused or self._lost or len(piece) > _WRITE_SLICE:
            return False
        self._transport.write(piece)
        return True

    async def _drained(self) -> None:
        """Wait until the client has read most of what was sent, or is disconnected."""
        self._deadline = self._loop.time() + self._context.timeouts.unread
        self._drain_waiter = self._loop.create_future()
        try:
            await self._drain_waiter
        finally:
            self._drain_waiter = self._deadline = None

    def _wake_drain_waiter(self) -> None:
        if self._drain_waiter is not None and not self._drain_waiter.done():
            self._drain_waiter.set_result(None)

    # Closing

    def shut_down(self) -> None:
        """Close the connection when its response is sent: at once if it is idle or streams."""
        self._parser.stop()
        if self._task is None:
            self._close()
        elif self._long_running:
            self._task.cancel()
        elif self._request is not None and self._request.abandonable:
            self.abort()

    def abort(self) -> None:
        """Close the connection now and cancel its task."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def close_if_overdue(self, now: float) -> None:
        """Close the connection if its deadline has passed."""
        if self._deadline is None or now <= self._deadline:
            return
        if self._transport.get_write_buffer_size():
            # The client does not read, so a TLS close would not reach it.
            self._transport.abort()
        else:
            self._close()

    def _close(self) -> None:
        self._deadline = None
        self._parser.stop()
        if not self._lost and not self._transport.is_closing():
            self._transport.close()


def _internal_error(request: Request) -> Response:
    """Log the current exception and return a 500 response."""
    log.exception("request failed", method=request.method, path=request.path)
    return error_response(InternalError("Internal error occurred: see the server's log"))
