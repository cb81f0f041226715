"""
Parses bytes into requests.

httptools finds the parts of a request; this module bounds and assembles them, without I/O. The connection
takes the requests in order, and after the last of them the rejection of a malformed one.

Most clients repeat the same headers. A short GET whose bytes after the target equal those of the previous
one is recognized by comparison and not parsed.

Nothing is read after a rejected request, since its end is unknown, nor after one that closes the
connection.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import httptools

from lamina.errors import ApiError, BadRequest, TooLarge
from lamina.server.http.request import Request, Response, error_response

BODY_LIMIT = 3 * 1024 * 1024
HEADERS_LIMIT = 100
HEADER_BYTES_LIMIT = 64 * 1024
"""Bytes of a request outside its body: request line, headers, chunk framing and trailers."""
_FRAMING_PER_BYTE = 8
"""Framing bytes allowed per byte of body beyond that limit: chunks of one byte need six."""
_DIGITS = 20
"""Digits of a Content-Length: the parser bounds its value, not its leading zeros."""
_TEXT = "text/plain; charset=utf-8"
_SHORT_REQUEST = 4096
"""Length below which a request is recognized by its bytes."""
_GET = b"GET /"
_PLAIN_TARGET = (
    bytes(range(ord("a"), ord("z") + 1)) + bytes(range(ord("A"), ord("Z") + 1)) + b"0123456789/-._~%?&=,"
)
"""Characters of a request target that needs no parser."""
_CONNECTION_HEADERS = frozenset(("content-length", "transfer-encoding", "expect", "upgrade", "connection"))
"""Headers about the connection's framing: a request with one of these is always parsed."""
_NAMES = {
    name.encode(): name.lower()
    for name in (
        "Accept", "Accept-Encoding", "Authorization", "Connection", "Content-Length", "Content-Type",
        "Host", "Kubectl-Command", "Kubectl-Session", "User-Agent",
    )
}  # fmt: skip
"""Common header names in lower case: a lookup is faster than decoding."""


Arrival: TypeAlias = tuple[Request, bool, bool]
"""A complete request, whether the connection stays open after it, and whether it is HTTP/1.1."""


class _Rejected(Exception):
    """A request that is not read to its end, with its response."""

    def __init__(self, response: Response) -> None:
        self.response = response


class RequestParser:
    """Parses the bytes of one connection."""

    __slots__ = (
        "_body",
        "_body_size",
        "_first_packet",
        "_framing_bytes",
        "_headers",
        "_http_1_1",
        "_in_head",
        "_keep",
        "_known_headers",
        "_known_tail",
        "_parser",
        "_size",
        "_url",
        "arrived",
        "expects_continue",
        "finished",
        "reading",
        "rejection",
    )

    def __init__(self) -> None:
        self.arrived: deque[Arrival] = deque()
        self.reading = False
        """Whether a request has begun and is incomplete."""
        self.expects_continue = False
        """Whether the client waits for `100 Continue` before it sends the body."""
        self.finished = False
        """Whether nothing more is read."""
        self.rejection: Response | None = None
        """The response to send after those of all requests that arrived."""
        self._parser = httptools.HttpRequestParser(self)
        self._keep = self._http_1_1 = True
        self._first_packet = self._in_head = False
        self._url = b""
        self._headers: dict[str, str] = {}
        self._size = self._framing_bytes = self._body_size = 0
        self._body: bytes | bytearray = b""
        # The bytes after the target of the last plain GET, and the headers parsed from them.
        self._known_tail = b" "
        self._known_headers: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Parse some bytes. Raises for errors of the server only."""
        if self.finished:
            return
        is_start = not self.reading
        if is_start and data.endswith(self._known_tail) and data.startswith(_GET):
            url = data[4 : -len(self._known_tail)]
            if len(data) < _SHORT_REQUEST and not url.translate(None, _PLAIN_TARGET):
                path, _, query = url.decode("latin-1").partition("?")
                self.arrived.append((Request("GET", path, query, self._known_headers), True, True))
                return
        try:
            self._parser.feed_data(data)
            if is_start and not self.reading and data.startswith(_GET):
                self._remember_tail(data)
            if self.reading:
                self._check_framing(len(data))
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _Rejected):
                raise
            self.reject(error.__context__.response)
        except _Rejected as rejected:
            self.reject(rejected.response)
        except httptools.HttpParserUpgrade:
            self.reject(_no_upgrade().response)
        except httptools.HttpParserError as error:
            if not self.finished:
                self.reject(_bad(f"malformed HTTP request: {error}").response)

    def _remember_tail(self, data: bytes) -> None:
        """Remember the bytes after the target, if the packet was exactly one plain GET."""
        if len(data) >= _SHORT_REQUEST or len(self.arrived) != 1:
            return
        request, keep, http_1_1 = self.arrived[0]
        tail = data[data.index(b" ", len(_GET)) :]
        if (
            request.method == "GET"
            and keep
            and http_1_1
            and _CONNECTION_HEADERS.isdisjoint(request.headers)
            and tail.startswith(b" HTTP/1.1\r\n")
            and tail.find(b"\r\n\r\n") == len(tail) - 4
        ):
            self._known_tail, self._known_headers = tail, self._headers

    def stop(self) -> None:
        """Read nothing more and discard the requests that arrived."""
        self.finished = True
        self.reading = self.expects_continue = False
        self.arrived.clear()
        self.rejection = None

    def reject(self, response: Response) -> None:
        """Read nothing more and send a response after those of the requests that arrived."""
        self.finished = True
        self.reading = self.expects_continue = False
        self.rejection = response

    def close(self) -> None:
        """Drop the parser: it refers back to this object, and reference counting would not free the cycle."""
        self.stop()
        del self._parser

    def _check_framing(self, size: int) -> None:
        """
        Bound the bytes that the parser does not report.

        Headers are reported when they are complete, and chunk framing is not reported. The packet a request
        begins in is not counted, since it may hold earlier requests.
        """
        if self._first_packet:
            self._first_packet = False
            return
        self._framing_bytes += size
        if self._framing_bytes > HEADER_BYTES_LIMIT + _FRAMING_PER_BYTE * self._body_size:
            raise _too_long()

    # Parser callbacks

    def on_message_begin(self) -> None:
        self.reading = self._first_packet = self._in_head = True
        self._url = self._body = b""
        self._headers = {}
        self._size = self._framing_bytes = self._body_size = 0

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
            # Trailers are ignored.
            return
        key = _NAMES.get(name) or name.decode("latin-1").lower()
        if key not in self._headers:
            self._headers[key] = value.decode("latin-1")
        elif key == "host":
            raise _bad("too many Host headers")
        # Of any other repeated header the first counts, as in Go.

    def on_headers_complete(self) -> None:
        if self.finished:
            return
        self._in_head = False
        headers, parser = self._headers, self._parser
        if len(headers) > HEADERS_LIMIT:
            raise _too_long()
        self._keep = parser.should_keep_alive()
        self._http_1_1 = True
        if not self._keep or "connection" in headers:
            self._http_1_1 = _is_http_1_1(parser.get_http_version())
        if "host" not in headers and self._http_1_1:
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
        if coding is not None and (coding.strip().lower() != "chunked" or not self._http_1_1):
            raise _Rejected(Response(501, b"Unsupported transfer encoding", _TEXT))
        expected = headers.get("expect")
        if expected is not None and self._http_1_1:
            if expected.strip().lower() != "100-continue":
                raise _Rejected(Response(417, b"", _TEXT))
            self.expects_continue = coding is not None or length not in (None, "0")

    def on_body(self, body: bytes) -> None:
        self._body_size += len(body)
        if self._body_size > BODY_LIMIT:
            raise _too_large()
        if not self._body:
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:
            # One growing buffer, so that a body in millions of one-byte chunks stays small.
            self._body = bytearray(self._body)
            self._body += body

    def on_message_complete(self) -> None:
        self.reading = self.expects_continue = False
        if self.finished:
            return
        path, query = _split_url(self._url)
        body = self._body
        request = Request(
            self._parser.get_method().decode("latin-1"),
            path,
            query,
            self._headers,
            bytes(body) if isinstance(body, bytearray) else body,
        )
        if not self._keep:
            self.finished = True
        self.arrived.append((request, self._keep, self._http_1_1))


def _split_url(url: bytes) -> tuple[str, str]:
    """Return the path and the query of a request target; raises for an invalid one."""
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


def _is_http_1_1(version: str) -> bool:
    """Return whether the version is 1.1, false for 1.0; raises for any other."""
    if version not in ("1.0", "1.1"):
        raise _Rejected(Response(505, b"505 HTTP Version Not Supported: unsupported protocol version", _TEXT))
    return version == "1.1"


def _status(error: ApiError) -> _Rejected:
    return _Rejected(error_response(error))


def _bad(what: str) -> _Rejected:
    return _status(BadRequest(what))


def _no_upgrade() -> _Rejected:
    return _bad("this server does not upgrade connections")


def _too_large() -> _Rejected:
    return _status(TooLarge(f"Request entity too large: limit is {BODY_LIMIT}"))


def _too_long() -> _Rejected:
    return _Rejected(Response(431, b"431 Request Header Fields Too Large", _TEXT))
