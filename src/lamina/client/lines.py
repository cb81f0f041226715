"""
Writes, over connections that are kept.

A controller writes thousands of small objects, and most of what that costs is
what carries them. A write is one request with a body that is at hand and one
answer that is read whole, so it takes little of what HTTP can do: no redirects,
no cookies, no compression, nothing that arrives in pieces. Everything else
goes another way.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from lamina.client.leave import check_leave

_KEPT = 55.0
"""How long a line is kept that nobody needs, in seconds; servers keep theirs a little longer."""
_CONNECTING = 10.0
_NEXT_ADDRESS = 0.25
"""How long one address of a server has before the next is tried beside it, in seconds."""
_LONGEST_HEAD = 1 << 20
_AGAIN = frozenset(("PUT", "DELETE"))
"""What may be sent once more when nobody knows whether it arrived: twice is the same as once."""
_UNTIL_THE_END = -1
_IN_CHUNKS = -2


class Answer(NamedTuple):
    """What a server answered. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HungUp(ConnectionError):
    """The other side ended the connection before its answer was whole."""


class Lines:
    """Sends writes to one server."""

    def __init__(
        self, base: str, tls: ssl.SSLContext | None, timeout: float | None, *, tls_name: str = ""
    ) -> None:
        parts = urlsplit(base)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._named, self._prefix = parts.netloc.rpartition("@")[2], parts.path
        self._tls, self._timeout = tls, timeout
        self._tls_name = (tls_name or self._host) if tls is not None else None
        self._idle: list[_Line] = []
        self._closed = False

    async def send(
        self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None
    ) -> Answer:
        """
        Return the answer to a request, read to its end.

        Raises OSError where nobody answers, or what is said is no answer, and
        TimeoutError where that takes too long.
        """
        request = _request(method, self._prefix + target, self._named, headers, body)
        line = self._waiting()
        if line is not None:
            try:
                return await self._asked(line, method, request)
            except HungUp:
                # It may have ended while nobody used it.
                if line.has_heard or method not in _AGAIN:
                    raise
        # No connection is made in vain.
        check_leave(method)
        return await self._asked(await self._fresh(), method, request)

    async def close(self) -> None:
        self._closed = True
        self._let_go()
        # Hanging up takes the loop a turn.
        await asyncio.sleep(0)

    def _let_go(self) -> None:
        """Hang up wherever nobody waits for an answer."""
        while self._idle:
            self._idle.pop().end()

    def _waiting(self) -> _Line | None:
        """Return a line that nobody uses, the one that was used last, and let go of those that are too old."""
        now = asyncio.get_running_loop().time()
        while self._idle and (self._idle[0].is_over or now - self._idle[0].since > _KEPT):
            self._idle.pop(0).end()
        while self._idle:
            line = self._idle.pop()
            if not line.is_over:
                return line
        return None

    async def _fresh(self) -> _Line:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(min(_CONNECTING, self._timeout or _CONNECTING)):
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            connected = await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS, interleave=1)
            try:
                _, line = await loop.create_connection(
                    _Line, sock=connected, ssl=self._tls, server_hostname=self._tls_name
                )
            except BaseException:
                connected.close()
                raise
        return line

    async def _asked(self, line: _Line, method: str, request: bytes) -> Answer:
        loop = asyncio.get_running_loop()
        try:
            # There is nothing left to wait for.
            check_leave(method)
            late = loop.call_later(self._timeout, line.give_up) if self._timeout is not None else None
            try:
                answer = await line.ask(request)
            finally:
                if late is not None:
                    late.cancel()
        except (TimeoutError, asyncio.CancelledError):
            if not line.has_heard:
                # Whoever died without a word is at the other end of every line.
                self._let_go()
            raise
        finally:
            # One that is in the middle of something is nobody's any more.
            if line.is_free and not self._closed:
                line.since = loop.time()
                self._idle.append(line)
            else:
                line.end()
        return answer


def _request(
    method: str, target: str, host: str, headers: Iterable[tuple[str, str]], body: bytes | None
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"content-length: {len(body) if body is not None else 0}")
    if any("\n" in line or "\r" in line for line in lines):
        raise ValueError("a header has a line break in it")
    return "\r\n".join((*lines, "\r\n")).encode() + (body or b"")


class _Line(asyncio.Protocol):
    """One connection, and one request on it at a time."""

    def __init__(self) -> None:
        self.since = 0.0
        self.is_over = False
        self.has_heard = False
        self._answer: asyncio.Future[Answer] | None = None
        self._came: list[bytes] = []
        self._missing = 1
        """How many bytes have to come before it is worth looking at them."""
        self._said = b""
        self._status, self._headers = 0, dict[str, str]()
        self._length: int | None = None
        self._chunks: list[bytes] = []
        self._transport: asyncio.Transport

    @property
    def is_free(self) -> bool:
        return self._answer is None and not self.is_over

    async def ask(self, request: bytes) -> Answer:
        """Send a request, and return its answer."""
        if self.is_over:
            raise HungUp("the server hung up")
        self._answer = asyncio.get_running_loop().create_future()
        self._length, self.has_heard = None, False
        self._transport.write(request)
        return await self._answer

    def give_up(self) -> None:
        """Wait no longer."""
        self._fail(TimeoutError("no answer in time"))

    def end(self) -> None:
        """Hang up, without the leave that is taken in secret: the other side would have to take it, too."""
        self.is_over = True
        self._transport.abort()

    # ── what the connection says ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_over = True
        if self._length == _UNTIL_THE_END and error is None:
            self._finish(b"".join(self._came))
        else:
            self._fail(HungUp(str(error) if error is not None else "the server hung up"))

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            # Nobody asked.
            self.end()
            return
        self.has_heard = True
        self._came.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        self._said, self._came, self._missing = b"".join(self._came), [], 1
        try:
            self._read()
        except ValueError as wrong:
            self._fail(ConnectionError(f"the answer makes no sense: {wrong}"))

    def _read(self) -> None:
        while self._length is None:
            head, found, rest = self._said.partition(b"\r\n\r\n")
            if not found:
                self._wait_for_an_end(0)
                return
            self._said = rest
            self._status, self._headers = _head(head)
            if self._status >= 200:
                self._length = _length(self._status, self._headers)
        if self._length == _IN_CHUNKS:
            self._read_chunks()
        elif self._length == _UNTIL_THE_END:
            self._wait_for(sys.maxsize)
        elif len(self._said) < self._length:
            self._wait_for(self._length - len(self._said))
        else:
            self._finish(self._said[: self._length], more=len(self._said) > self._length)

    def _read_chunks(self) -> None:
        said, at = self._said, 0
        while (line := said.find(b"\r\n", at)) >= 0:
            size = int(said[at:line].partition(b";")[0], 16)
            if size < 0:
                raise ValueError("a piece of it is shorter than nothing")
            if size == 0:
                # Whatever is said after the last piece ends with an empty line.
                end = said.find(b"\r\n\r\n", line)
                if end < 0:
                    break
                self._finish(b"".join(self._chunks), more=len(said) > end + 4)
                return
            begins, ends = line + 2, line + 2 + size
            if len(said) < ends + 2:
                self._wait_for(ends + 2 - len(said), since=at)
                return
            if said[ends : ends + 2] != b"\r\n":
                raise ValueError("a piece of it is longer than it says")
            self._chunks.append(said[begins:ends])
            at = ends + 2
        self._wait_for_an_end(at)

    def _wait_for_an_end(self, since: int) -> None:
        if len(self._said) - since > _LONGEST_HEAD:
            raise ValueError("a line of it has no end")
        self._wait_for(1, since=since)

    def _wait_for(self, missing: int, *, since: int = 0) -> None:
        """Go on once so many bytes more have come."""
        self._came, self._said, self._missing = [self._said[since:]], b"", missing

    def _finish(self, body: bytes, *, more: bool = False) -> None:
        answer, self._answer = self._answer, None
        self._said, self._came, self._chunks, self._missing = b"", [], [], 1
        # What comes after an answer is of no use, and neither is who says it.
        if more or "close" in _words(self._headers.get("connection", "")):
            self.is_over = True
        if answer is not None and not answer.done():
            answer.set_result(Answer(self._status, self._headers, body))

    def _fail(self, error: Exception) -> None:
        answer, self._answer = self._answer, None
        self.is_over = True
        if answer is not None and not answer.done():
            answer.set_exception(error)


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(f"it begins with {first[:40]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, found, value = line.partition(":")
        if not found or name != name.strip():
            raise ValueError(f"{line[:40]!r} is no header")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if version == "HTTP/1.0" and "keep-alive" not in _words(headers.get("connection", "")):
        headers["connection"] = "close"
    return int(status[:3]), headers


def _length(status: int, headers: Mapping[str, str]) -> int:
    if status in (204, 304):
        return 0
    encoded = headers.get("transfer-encoding")
    if encoded is not None:
        if encoded.lower() != "chunked":
            raise ValueError(f"it is encoded as {encoded!r}")
        return _IN_CHUNKS
    said = headers.get("content-length")
    if said is None:
        return _UNTIL_THE_END
    length, *others = _words(said)
    if others or not length.isdigit():
        raise ValueError(f"it is {said!r} bytes long")
    return int(length)


def _words(value: str) -> set[str]:
    """Return what a header lists, in lower case."""
    return {word.strip().lower() for word in value.split(",")}
