"""
What hooks write to standard output and error.

It goes to the standard error of this process, as it is. Where the log is JSON, each
line becomes a line of the log.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from lamina.logs import Logger

_CHUNK = 1 << 16
_LONGEST = 1 << 16


class HookLog(Logger, Protocol):
    """The part of the log that hooks files use."""

    @property
    def is_json(self) -> bool: ...

    def relay(self, text: str, event: str, level: str = "error", **keys: Any) -> None: ...

    def bind(self, **keys: Any) -> HookLog: ...


async def relay_lines(output: asyncio.StreamReader, log: HookLog) -> None:
    """Log what a process writes, line by line, until it closes its output; a very long line is cut into parts."""
    rest = b""
    while chunk := await output.read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST:
            lines, rest = [*lines, rest], b""
        _log(log, lines)
    _log(log, [rest])


def _log(log: HookLog, lines: list[bytes]) -> None:
    for line in lines:
        if text := line.decode(errors="replace").rstrip():
            log.relay(text, "hook output", "info")
