"""
One connection: requests in, answers out.

- Requests are answered one at a time in the order they came. One for which
  nothing has to be waited for is answered on the spot, any other in a task.
- What arrives meanwhile waits, and while something waits nothing more is read.
- An answer is one write. A client that does not read its answers gets no
  further ones, and one that does not read a stream is not followed for ever.
- What cannot be read as a request is refused in its turn, and is the end.
- Whoever is silent for too long is sent away by a sweep that looks at every
  connection now and then, which is cheaper than a timer a request.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import cast

from lamina.errors import ApiError, InternalError, TimedOut
from lamina.logs import log
from lamina.server.desk import Desk
from lamina.server.heads import head_of
from lamina.server.incoming import Arrival, Incoming
from lamina.server.options import deadline
from lamina.server.request import Answer, Feed, Identity, Request, error_answer

_UNSENT_LIMIT = 128 * 1024
"""How many bytes wait for a client to read them before it is given no more."""
_COMPRESS_ABOVE = 128 * 1024
_SLICE = 256 * 1024
"""What is longer is written a slice at a time, and others have their turn in between."""
_TURN = 16
"""How many requests of one client are answered before others have their turn."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_LASTING = ("/log", "/exec", "/attach", "/portforward", "/proxy")
_PACKED = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))


class Connection(asyncio.Protocol):
    """One client, from its arrival to its going."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self._incoming = Incoming()
        self._transport: asyncio.Transport
        self._certified: Identity | None = None
        # When the client should have been heard of; None while it waits for us.
        self._due: float | None = None
        self._hurried = True  # whether it is due to finish a request, which hearing of it does not put off
        self._task: asyncio.Task[None] | None = None
        self._served: Request | None = None  # what it answers
        self._began = False  # whether the head of the answer in progress has been written
        self._streaming = False
        self._endless = False  # whether it is a stream that ends when somebody says so, not when it is whole
        self._inside = False  # whether a chunk of it is only half written
        self._lost = False
        self._paused = False
        self._full = False
        self._room: asyncio.Future[None] | None = None

    # What the transport says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are transports in all but their base class.
        self._transport = cast(asyncio.Transport, transport)
        desk = self._desk
        if desk.closing:
            self._lost = True
            self._transport.abort()
            return
        desk.connections.add(self)
        desk.deserted.clear()
        self._transport.set_write_buffer_limits(high=_UNSENT_LIMIT)
        self._due = self._loop.time() + desk.patience.request
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        if certificate:
            self._certify(certificate)

    def _certify(self, certificate: bytes) -> None:
        from lamina.server.certificates import identity_in

        try:
            self._certified = identity_in(certificate)
        except Exception as error:
            # There is no end of what may be wrong with a certificate, even one that is signed.
            log.warning("client certificate not understood", because=str(error))
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        desk = self._desk
        desk.connections.discard(self)
        if not desk.connections:
            desk.deserted.set()
        self._incoming.close()
        # What stays is what the task needs: TLS keeps tens of kilobytes a connection.
        del self._transport
        self._make_room()
        if self._task is not None and (self._streaming or (self._served is not None and self._served.held)):
            # A write that was accepted goes on without its client; a stream has nobody left.
            self._task.cancel()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._task is not None:
            self._make_room()
        else:
            self._go_on()

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming.over:
            return
        try:
            incoming.feed(data)
        except Exception:
            log.exception("request not understood")
            incoming.refuse(error_answer(InternalError("Internal error occurred: see the server's log")))
        if incoming.arrived:
            self._go_on()
        elif self._task is None:
            self._heed()

    # Turns

    def _go_on(self) -> None:
        """Answer what has arrived, in order, as far as nothing has to be waited for."""
        if self._lost:
            return
        arrived = self._incoming.arrived
        turns = _TURN
        while arrived and self._task is None and not self._full and turns:
            turns -= 1
            self._serve(arrived.popleft())
        if self._task is None:
            self._due = self._loop.time() + self._desk.patience.idle
            self._hurried = False
            if not arrived:
                self._heed()
            elif not self._full:
                self._loop.call_soon(self._go_on)
        if arrived and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _heed(self) -> None:
        """Hear more, or end what was ended, now that everything that arrived has its answer."""
        incoming = self._incoming
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if incoming.over:
            if not self._full:
                self._end()
        elif incoming.reading:
            if incoming.asks_leave:
                incoming.asks_leave = False
                self._transport.write(_CONTINUE)
            if not self._hurried:
                self._hurried = True
                self._due = self._loop.time() + self._desk.patience.request

    def _end(self) -> None:
        answer = self._incoming.refusal
        if answer is None:
            self._leave()
            return
        self._incoming.refusal = None
        self._due = None
        assert isinstance(answer.body, bytes)
        self._transport.write(head_of(answer, (), len(answer.body), False) + answer.body)
        # Closed at once, with something still coming in, the client's system
        # would throw away the answer that it has not read yet.
        self._loop.call_later(self._desk.patience.refused, self._leave)

    # Answering

    def _serve(self, arrival: Arrival) -> None:
        """Answer a request at once where that is possible, and otherwise in a task."""
        request = arrival[0]
        answer: Answer | None
        try:
            request.user = self._desk.authenticator.identify(request, self._certified)
            answer = self._desk.handler.answer_now(request)
        except ApiError as error:
            answer = error_answer(error)
        except Exception:
            answer = _failed(request)
        if (
            answer is not None
            and isinstance(answer.body, bytes)
            and (len(answer.body) <= _COMPRESS_ABOVE or request.method == "HEAD")
        ):
            self._send(arrival, answer, answer.body)
            return
        self._due, self._served = None, request
        self._task = task = self._loop.create_task(self._work(arrival, answer))
        self._desk.tasks.add(task)

    async def _work(self, arrival: Arrival, answer: Answer | None) -> None:
        request = arrival[0]
        try:
            answer = answer or await self._answer(request)
            body = answer.body
            if not isinstance(body, bytes):
                await self._stream(arrival, answer, body)
            else:
                if _to_pack(request, body):
                    body = await asyncio.to_thread(gzip.compress, body, 1)
                    answer = Answer(answer.status, body, answer.content_type, [*answer.headers, *_PACKED])
                if len(body) <= _SLICE or request.method == "HEAD":
                    self._send(arrival, answer, body)
                else:
                    self._begin(arrival, answer, len(body))
                    await self._pour(body)
        except Exception:
            failed = _failed(request)
            if self._began:
                self._incoming.stop()
            else:
                assert isinstance(failed.body, bytes)
                self._send(arrival, failed, failed.body)
        finally:
            # No name here holds the task: it holds the exception that may end it, which holds this frame.
            self._desk.tasks.discard(cast(asyncio.Task[None], self._task))
            self._task, self._served, self._began = None, None, False
        self._go_on()

    async def _answer(self, request: Request) -> Answer:
        if "timeout=" not in request.query or _runs_long(request):
            return await self._desk.handler.handle(request)
        try:
            allowed = deadline(request)
        except ApiError as error:
            return error_answer(error)
        try:
            return await asyncio.wait_for(self._desk.handler.handle(request), allowed)
        except TimeoutError:
            late = TimedOut("Timeout: request did not complete within the allotted timeout")
            late.shows_details = True
            return error_answer(late)

    def _send(self, arrival: Arrival, answer: Answer, body: bytes) -> None:
        """Write an answer, all of it at once."""
        if self._lost:
            return
        request, keep, modern = arrival
        head = head_of(answer, request.warnings, len(body), keep and not self._desk.closing, modern)
        bare = request.method == "HEAD" or answer.status == 304
        self._transport.write(head if bare else head + body)

    def _begin(self, arrival: Arrival, answer: Answer, length: int | None) -> None:
        """Write the head of an answer that follows as it can."""
        request, keep, modern = arrival
        keep = keep and not self._desk.closing and (modern or length is not None)
        self._began = True
        if not self._lost:
            self._transport.write(head_of(answer, request.warnings, length, keep, modern))

    async def _pour(self, body: bytes) -> None:
        """Write something long, as fast as it is read."""
        rest = memoryview(body)
        while rest and not self._lost:
            self._transport.write(rest[:_SLICE])
            rest = rest[_SLICE:]
            if self._full:
                await self._drained()
            else:
                await asyncio.sleep(0)

    async def _stream(self, arrival: Arrival, answer: Answer, body: AsyncIterator[bytes]) -> None:
        """Write a stream as it comes; an end that somebody asked for is as clean as its own."""
        request, _, modern = arrival
        if not modern:
            # Such a client knows the end of a stream by the end of the connection.
            self._incoming.stop()
        self._endless = endless = _runs_long(request)
        self._streaming = True
        bare = request.method == "HEAD"
        try:
            self._begin(arrival, answer, None)
            if not bare and not self._lost and not (self._desk.closing and endless):
                if isinstance(body, Feed):
                    body.push_to(self._take_chunk if modern else self._take_piece)
                await self._write_out(body, modern)
        except asyncio.CancelledError:
            if self._inside or not (self._desk.closing and endless):
                raise
        except ApiError as error:
            log.warning("stream ended early", path=request.path, because=error.message)
        finally:
            self._streaming = self._endless = False
            close = getattr(body, "aclose", None)
            if close is not None:
                await close()
        if modern and not bare and not self._lost:
            self._transport.write(_LAST_CHUNK)

    async def _write_out(self, body: AsyncIterator[bytes], modern: bool) -> None:
        write = self._transport.write
        async for chunk in body:
            if len(chunk) > _SLICE:
                write(b"%x\r\n" % len(chunk) if modern else b"")
                self._inside = True
                await self._pour(chunk)
                self._inside = False
                write(b"\r\n" if modern else b"")
            elif chunk:
                write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if modern else chunk)
            if self._full:
                await self._drained()

    def _take_chunk(self, chunk: bytes) -> bool:
        """Write what a stream pushes, unless it should wait for the client to read, or for others' turns."""
        if self._full or self._lost or len(chunk) > _SLICE:
            return False
        self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return True

    def _take_piece(self, piece: bytes) -> bool:
        """Write what a stream pushes to a client that knows no chunks."""
        if self._full or self._lost or len(piece) > _SLICE:
            return False
        self._transport.write(piece)
        return True

    async def _drained(self) -> None:
        """Wait until the client has read most of what it was sent, or until it is lost."""
        self._due = self._loop.time() + self._desk.patience.unread
        self._room = self._loop.create_future()
        try:
            await self._room
        finally:
            self._room = self._due = None

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # Ending

    def shut(self) -> None:
        """End the connection soon: now if it is idle, after its answer if it is not; streams end here."""
        self._incoming.stop()
        if self._task is None:
            self._leave()
        elif self._endless:
            self._task.cancel()
        elif self._served is not None and self._served.held:
            self.drop()

    def drop(self) -> None:
        """End the connection now, whatever it is doing."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def close_if_late(self, now: float) -> None:
        """Close the connection if it should have been heard of by now."""
        if self._due is None or now <= self._due:
            return
        if self._transport.get_write_buffer_size():
            # It does not read either, so there is no use in saying goodbye.
            self._transport.abort()
        else:
            self._leave()

    def _leave(self) -> None:
        self._due = None
        self._incoming.stop()
        if not self._lost and not self._transport.is_closing():
            self._transport.close()


def _failed(request: Request) -> Answer:
    """Return what is said when we are at fault, and say the rest to the log."""
    log.exception("request failed", method=request.method, path=request.path)
    return error_answer(InternalError("Internal error occurred: see the server's log"))


def _to_pack(request: Request, body: bytes) -> bool:
    """Say whether a body is large enough to be worth compressing, for a client that asks for it."""
    return len(body) > _COMPRESS_ABOVE and any(
        coding.strip() == "gzip" for coding in request.headers.get("accept-encoding", "").split(",")
    )


def _runs_long(request: Request) -> bool:
    """Say whether a request is meant to last, so that no deadline applies to it."""
    return request.flag("watch") or "/watch/" in request.path or request.path.endswith(_LASTING)
