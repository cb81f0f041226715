"""Words between a process and the child that runs its hooks: a length, a line of JSON, and a body as it is."""

from __future__ import annotations

from typing import Any

import orjson

SIZE = 4


def frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    """Return a message as it goes over a pipe."""
    line = orjson.dumps(head)
    return (len(line) + 1 + len(body)).to_bytes(SIZE, "big") + line + b"\n" + body


def opened(message: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the head and the body of a message whose length has been read."""
    line, _, body = message.partition(b"\n")
    return orjson.loads(line), body
