"""
Bytes to requests.

httptools finds the parts of a request; here they are bounded and put together.
Nothing here writes or waits. Whoever feeds the bytes takes the requests in the
order they came, and after the last of them, what was wrong with the rest.

Most clients say the same headers again and again. A plain read that differs
from one before it in what it asks for, and in nothing else, is not parsed.

Nothing is read after a request that is refused, nor after one that says it is
the last: where it ends cannot be told, or is nobody's business.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import httptools

from lamina.errors import ApiError, BadRequest, TooLarge
from lamina.server.request import Answer, Request, error_answer

BODY_LIMIT = 3 * 1024 * 1024
HEADERS_LIMIT = 100
HEADER_BYTES_LIMIT = 64 * 1024
"""How much of a request may be no body: its line, its headers, what is between chunks and after them."""
_FRAMING = 8
"""How many bytes a client may send to bring one byte of the body, beyond that limit: chunks of one byte need six."""
_DIGITS = 20
"""How long the number of a length may be: the parser minds its value, and not how many zeros stand before it."""
_TEXT = "text/plain; charset=utf-8"
_BRIEF = 4096
"""How long a request may be that is known again by its bytes."""
_ASKED = b"GET /"
_PLAIN = bytes(range(ord("a"), ord("z") + 1)) + bytes(range(ord("A"), ord("Z") + 1)) + b"0123456789/-._~%?&=,"
"""What a target may consist of that needs no parser."""
_FRAMED = frozenset(("content-length", "transfer-encoding", "expect", "upgrade", "connection"))
"""Headers that say more about the bytes on the connection than about what is asked."""
_NAMES = {
    name.encode(): name.lower()
    for name in (
        "Accept", "Accept-Encoding", "Authorization", "Connection", "Content-Length", "Content-Type",
        "Host", "Kubectl-Command", "Kubectl-Session", "User-Agent",
    )
}  # fmt: skip
"""What most headers are called: finding that is quicker than making it."""


Arrival: TypeAlias = tuple[Request, bool, bool]
"""A request that is whole; whether another may follow it, and whether it speaks HTTP/1.1."""


class _Refused(Exception):
    """A request that is not read to its end, and what is said to it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class Incoming:
    """What comes in on one connection."""

    __slots__ = (
        "_body",
        "_body_size",
        "_ending",
        "_framing",
        "_fresh",
        "_headers",
        "_heard",
        "_in_head",
        "_keep",
        "_modern",
        "_parser",
        "_size",
        "_url",
        "arrived",
        "asks_leave",
        "over",
        "reading",
        "refusal",
    )

    def __init__(self) -> None:
        self.arrived: deque[Arrival] = deque()
        self.reading = False
        """Whether a request has begun and is not whole yet."""
        self.asks_leave = False
        """Whether the client holds the body back until it is told to go on."""
        self.over = False
        """Whether nothing more is read."""
        self.refusal: Answer | None = None
        """What is to be said after everything that arrived has been answered."""
        self._parser = httptools.HttpRequestParser(self)
        self._keep = self._modern = True
        self._fresh = self._in_head = False
        self._url = b""
        self._headers: dict[str, str] = {}
        self._size = self._framing = self._body_size = 0
        self._body: bytes | bytearray = b""
        # What followed the target of a plain read, to the byte, and the headers found in that.
        self._ending = b" "
        self._heard: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Read some bytes. Raises what is our own mistake, and nothing for theirs."""
        if self.over:
            return
        begins = not self.reading
        if begins and data.endswith(self._ending) and data.startswith(_ASKED):
            url = data[4 : -len(self._ending)]
            if len(data) < _BRIEF and not url.translate(None, _PLAIN):
                path, _, query = url.decode("latin-1").partition("?")
                self.arrived.append((Request("GET", path, query, self._heard), True, True))
                return
        try:
            self._parser.feed_data(data)
            if begins and not self.reading and data.startswith(_ASKED):
                self._learn(data)
            if self.reading:
                self._measure(len(data))
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _Refused):
                raise
            self.refuse(error.__context__.answer)
        except _Refused as refused:
            self.refuse(refused.answer)
        except httptools.HttpParserUpgrade:
            self.refuse(_no_upgrade().answer)
        except httptools.HttpParserError as error:
            if not self.over:
                self.refuse(_bad(f"malformed HTTP request: {error}").answer)

    def _learn(self, data: bytes) -> None:
        """Note what a plain read looks like, if that is what came, alone, and nothing of another."""
        if len(data) >= _BRIEF or len(self.arrived) != 1:
            return
        request, keep, modern = self.arrived[0]
        ending = data[data.index(b" ", len(_ASKED)) :]
        if (
            request.method == "GET"
            and keep
            and modern
            and _FRAMED.isdisjoint(request.headers)
            and ending.startswith(b" HTTP/1.1\r\n")
            and ending.find(b"\r\n\r\n") == len(ending) - 4
        ):
            self._ending, self._heard = ending, self._headers

    def stop(self) -> None:
        """Read nothing more, and forget what has arrived."""
        self.over = True
        self.reading = self.asks_leave = False
        self.arrived.clear()
        self.refusal = None

    def refuse(self, answer: Answer) -> None:
        """Read nothing more, and have this said at the end."""
        self.over = True
        self.reading = self.asks_leave = False
        self.refusal = answer

    def close(self) -> None:
        """Let go of the parser, which knows us as we know it: nobody else would end that soon."""
        self.stop()
        del self._parser

    def _measure(self, size: int) -> None:
        """
        Bound what belongs to no part that the parser has told us of.

        It tells of a header when the header is whole, and of what is between
        chunks not at all. The packet a request begins in is not counted: it
        may hold others before it.
        """
        if self._fresh:
            self._fresh = False
            return
        self._framing += size
        if self._framing > HEADER_BYTES_LIMIT + _FRAMING * self._body_size:
            raise _too_long()

    # What the parser finds

    def on_message_begin(self) -> None:
        self.reading = self._fresh = self._in_head = True
        self._url = self._body = b""
        self._headers = {}
        self._size = self._framing = self._body_size = 0

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        self._size += len(url)
        if self._size > HEADER_BYTES_LIMIT:
            raise _too_long()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value) + 4
        if self._size > HEADER_BYTES_LIMIT:
            raise _too_long()
        if not self._in_head:
            # A trailer comes too late to say anything about the request.
            return
        key = _NAMES.get(name) or name.decode("latin-1").lower()
        if key not in self._headers:
            self._headers[key] = value.decode("latin-1")
        elif key == "host":
            raise _bad("too many Host headers")
        # Of others that are said twice the first one counts, as it does for Go.

    def on_headers_complete(self) -> None:
        if self.over:
            return
        self._in_head = False
        headers, parser = self._headers, self._parser
        if len(headers) > HEADERS_LIMIT:
            raise _too_long()
        self._keep = parser.should_keep_alive()
        self._modern = True
        if not self._keep or "connection" in headers:
            self._modern = _speaks_1_1(parser.get_http_version())
        if "host" not in headers and self._modern:
            raise _bad("missing required Host header")
        if "upgrade" in headers and parser.should_upgrade():
            raise _no_upgrade()
        length = headers.get("content-length")
        if length is not None:
            if len(length) > _DIGITS:
                raise _bad("bad Content-Length")
            if int(length) > BODY_LIMIT:
                raise _too_large()
        coding = headers.get("transfer-encoding")
        if coding is not None and (coding.strip().lower() != "chunked" or not self._modern):
            raise _Refused(Answer(501, b"Unsupported transfer encoding", _TEXT))
        expected = headers.get("expect")
        if expected is not None and self._modern:
            if expected.strip().lower() != "100-continue":
                raise _Refused(Answer(417, b"", _TEXT))
            self.asks_leave = coding is not None or length not in (None, "0")

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        if self._body_size > BODY_LIMIT:
            raise _too_large()
        if not self._body:
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:
            # One growing piece: millions of chunks of a byte are no reason to keep millions of pieces.
            self._body = bytearray(self._body)
            self._body += body

    def on_message_complete(self) -> None:
        self.reading = self.asks_leave = False
        if self.over:
            return
        path, query = _taken_apart(self._url)
        body = self._body
        request = Request(
            self._parser.get_method().decode("latin-1"),
            path,
            query,
            self._headers,
            bytes(body) if isinstance(body, bytearray) else body,
        )
        if not self._keep:
            self.over = True
        self.arrived.append((request, self._keep, self._modern))


def _taken_apart(url: bytes) -> tuple[str, str]:
    """Return the path and the query of what was asked for; raises for what is neither."""
    text = url.decode("latin-1")
    if not text.startswith("/"):
        try:
            parsed = httptools.parse_url(url)
        except httptools.HttpParserInvalidURLError:
            raise _bad("invalid URI for request") from None
        if parsed.host is None:
            raise _bad("invalid URI for request")
        path, query = parsed.path or b"/", parsed.query or b""
        return path.decode("latin-1"), query.decode("latin-1")
    if "#" in text:
        text = text.partition("#")[0]
    path_text, _, query_text = text.partition("?")
    return path_text, query_text


def _speaks_1_1(version: str) -> bool:
    """Say which of the two versions a request speaks; raises for any other."""
    if version not in ("1.0", "1.1"):
        raise _Refused(Answer(505, b"505 HTTP Version Not Supported: unsupported protocol version", _TEXT))
    return version == "1.1"


def _status(error: ApiError) -> _Refused:
    return _Refused(error_answer(error))


def _bad(what: str) -> _Refused:
    return _status(BadRequest(what))


def _no_upgrade() -> _Refused:
    return _bad("this server does not upgrade connections")


def _too_large() -> _Refused:
    return _status(TooLarge(f"Request entity too large: limit is {BODY_LIMIT}"))


def _too_long() -> _Refused:
    return _Refused(Answer(431, b"431 Request Header Fields Too Large", _TEXT))
