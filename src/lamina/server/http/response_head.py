"""Encodes the head of a response: status line and headers."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import formatdate
from http import HTTPStatus
from itertools import count
from random import getrandbits
from time import time
from uuid import uuid4

from lamina.server.http.request import JSON, Response

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_PLAIN = b"Cache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
_WARNINGS_LIMIT = 4096
"""Characters of all warnings together; beyond it each is truncated and some are dropped."""
_WARNING_LIMIT = 256
_AUDIT_ID = b"Audit-Id: %b-%%012x\r\n" % str(uuid4())[:23].encode()
_LAST_PART = (1 << 48) - 1
_response_numbers = count(getrandbits(48))
_date_second = 0
_date_line = b""
_cached_head = b""
"""The head of a plain 200 response with placeholders for audit id and length; rebuilt every second."""


def encode_head(
    response: Response, warnings: Sequence[str], length: int | None, keep: bool, http_1_1: bool = True
) -> bytes:
    """
    Return everything before the body.

    A length of None means a stream: chunked, or up to the end of the connection for an HTTP/1.0 client.
    """
    status = response.status
    line = _LINES[status]
    date = _date()
    plain = response.content_type == JSON and not response.headers
    if plain and status == 200 and keep and http_1_1 and length is not None and not warnings:
        return _cached_head % (next(_response_numbers) & _LAST_PART, length)
    parts = [line if http_1_1 else b"HTTP/1.0" + line[8:], _audit_id(), date]
    if plain:
        parts.append(_PLAIN)
    else:
        parts.append(_described(response.content_type, response.headers))
    if warnings:
        parts += [b'Warning: 299 - "%b"\r\n' % _quoted(sentence) for sentence in _bounded(warnings)]
    if length is not None:
        if status != 304:
            parts.append(b"Content-Length: %d\r\n" % length)
    elif http_1_1:
        parts.append(b"Transfer-Encoding: chunked\r\n")
    if not keep:
        parts.append(b"Connection: close\r\n")
    elif not http_1_1:
        parts.append(b"Connection: keep-alive\r\n")
    parts.append(b"\r\n")
    return b"".join(parts)


def _described(content_type: str, headers: Sequence[tuple[str, str]]) -> bytes:
    lines = [f"Content-Type: {_safe(content_type)}"]
    if not any(name.lower() == "cache-control" for name, _ in headers):
        lines.append("Cache-Control: no-cache, private")
    lines += [f"{_safe(name)}: {_safe(value)}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1", "replace")


def _safe(text: str) -> str:
    return text if text.isprintable() else "".join(letter for letter in text if letter.isprintable())


def _bounded(warnings: Sequence[str]) -> Sequence[str]:
    """
    Return the warnings that fit, truncated as kube-apiserver does.

    Many clients accept only a few kilobytes of headers and would fail on more.
    """
    if sum(map(len, warnings)) <= _WARNINGS_LIMIT:
        return warnings
    bounded: list[str] = []
    room = _WARNINGS_LIMIT
    for sentence in warnings:
        if room <= 0:
            break
        bounded.append(sentence[:_WARNING_LIMIT])
        room -= len(bounded[-1])
    return bounded


def _quoted(sentence: str) -> bytes:
    """Return text as a quoted header value: quotes escaped, control characters replaced by blanks."""
    bounded = "".join([letter if letter.isprintable() else " " for letter in sentence])
    return bounded.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "replace")


def _audit_id() -> bytes:
    """Return a unique Audit-Id: a UUID whose last part is a counter and whose rest is fixed per process."""
    return _AUDIT_ID % (next(_response_numbers) & _LAST_PART)


def _date() -> bytes:
    global _date_second, _date_line, _cached_head
    second = int(time())
    if second != _date_second:
        _date_second, _date_line = second, f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
        _cached_head = b"".join((_LINES[200], _AUDIT_ID, _date_line, _PLAIN, b"Content-Length: %d\r\n\r\n"))
    return _date_line
