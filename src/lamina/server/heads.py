"""The head of an answer: its status line and headers, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import formatdate
from http import HTTPStatus
from itertools import count
from random import getrandbits
from time import time
from uuid import uuid4

from lamina.server.request import JSON, Answer

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_PLAIN = b"Cache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
_WARNINGS_LIMIT = 4096
"""How many characters all warnings may have together; beyond that each is cut, and some are left out."""
_WARNING_LIMIT = 256
_AUDIT_ID = b"Audit-Id: %b-%%012x\r\n" % str(uuid4())[:23].encode()
_LAST_PART = (1 << 48) - 1
_answers = count(getrandbits(48))
_date_second = 0
_date_line = b""
_usual = b""
"""The head of nearly every answer, but for its id and its length; made again every second."""


def head_of(
    answer: Answer, warnings: Sequence[str], length: int | None, keep: bool, modern: bool = True
) -> bytes:
    """
    Return everything before the body.

    A length of None means a stream, in chunks or, for a client that does not
    speak HTTP/1.1, up to the end of the connection.
    """
    status = answer.status
    line = _LINES[status]
    date = _date()
    plain = answer.content_type == JSON and not answer.headers
    if plain and status == 200 and keep and modern and length is not None and not warnings:
        return _usual % (next(_answers) & _LAST_PART, length)
    parts = [line if modern else b"HTTP/1.0" + line[8:], _audit_id(), date]
    if plain:
        parts.append(_PLAIN)
    else:
        parts.append(_described(answer.content_type, answer.headers))
    if warnings:
        parts += [b'Warning: 299 - "%b"\r\n' % _quoted(sentence) for sentence in _bounded(warnings)]
    if length is not None:
        if status != 304:
            parts.append(b"Content-Length: %d\r\n" % length)
    elif modern:
        parts.append(b"Transfer-Encoding: chunked\r\n")
    if not keep:
        parts.append(b"Connection: close\r\n")
    elif not modern:
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
    Return as many warnings as a head has room for, as a real server does.

    Many clients take no more than a few kilobytes of headers, and would find
    an answer with more of them worse than one that does not tell everything.
    """
    if sum(map(len, warnings)) <= _WARNINGS_LIMIT:
        return warnings
    told: list[str] = []
    room = _WARNINGS_LIMIT
    for sentence in warnings:
        if room <= 0:
            break
        told.append(sentence[:_WARNING_LIMIT])
        room -= len(told[-1])
    return told


def _quoted(sentence: str) -> bytes:
    """Return text as it stands between quotes in a header: those escaped, control characters blank."""
    kept = "".join([letter if letter.isprintable() else " " for letter in sentence])
    return kept.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "replace")


def _audit_id() -> bytes:
    """Return an Audit-Id, a UUID that no other answer has: its last part counts, the rest is this process's own."""
    return _AUDIT_ID % (next(_answers) & _LAST_PART)


def _date() -> bytes:
    global _date_second, _date_line, _usual
    second = int(time())
    if second != _date_second:
        _date_second, _date_line = second, f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
        _usual = b"".join((_LINES[200], _AUDIT_ID, _date_line, _PLAIN, b"Content-Length: %d\r\n\r\n"))
    return _date_line
