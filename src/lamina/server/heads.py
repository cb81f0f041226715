"""The head of an answer: its status line and headers, as bytes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from email.utils import formatdate
from http import HTTPStatus
from random import getrandbits

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_PLAIN = b"Cache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
_CLOSE = b"Connection: close\r\n"
_date_second = 0
_date_line = b""


def head_of(
    status: int,
    content_type: str,
    headers: Sequence[tuple[str, str]],
    warnings: Sequence[str],
    length: int | None,
    keep: bool,
) -> bytes:
    """Return everything before the body; a length of None means a stream in chunks."""
    parts = [_LINES[status], _audit_id(), _date()]
    if content_type == "application/json" and not headers:
        parts.append(_PLAIN)
    else:
        parts.append(_described(content_type, headers))
    for sentence in warnings:
        parts.append(b"Warning: " + _warning(sentence) + b"\r\n")
    if not keep:
        parts.append(_CLOSE)
    if length is None:
        parts.append(b"Transfer-Encoding: chunked\r\n\r\n")
    else:
        parts.append(b"Content-Length: %d\r\n\r\n" % length)
    return b"".join(parts)


def _described(content_type: str, headers: Sequence[tuple[str, str]]) -> bytes:
    lines = [f"Content-Type: {content_type}"]
    if not any(name.lower() == "cache-control" for name, _ in headers):
        lines.append("Cache-Control: no-cache, private")
    lines += [f"{_safe(name)}: {_safe(value)}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1", "replace")


def _safe(text: str) -> str:
    return text if text.isprintable() else "".join(letter for letter in text if letter.isprintable())


def _warning(sentence: str) -> bytes:
    """Return a Warning header: quotes and backslashes escaped, control characters gone."""
    kept = "".join(letter if letter >= " " else " " for letter in sentence)
    escaped = kept.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode("utf-8", "replace")


def _audit_id() -> bytes:
    """Return an Audit-Id: a random UUID, as every answer carries one."""
    digits = "%032x" % (
        (getrandbits(128) & ~(0xF000 << 64) & ~(0xC000 << 48)) | (0x4000 << 64) | (0x8000 << 48)
    )
    return f"Audit-Id: {digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}\r\n".encode()


def _date() -> bytes:
    global _date_second, _date_line
    second = int(time.time())
    if second != _date_second:
        _date_second, _date_line = second, f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
    return _date_line
