"""Messages between a process and its hooks child: a length, a line of JSON, and a raw body."""

from __future__ import annotations

from typing import Any

import orjson

SIZE = 4


def frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    """Return a message, encoded for a pipe."""
    line = orjson.dumps(head)
    return (len(line) + 1 + len(body)).to_bytes(SIZE, "big") + line + b"\n" + body


def parse_frame(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the head and body of a message, without its length prefix."""
    line, _, body = message.partition(b"\n")
    return orjson.loads(line), body
