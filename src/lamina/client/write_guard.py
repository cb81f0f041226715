"""
Fencing: leadership is checked again immediately before a write is sent.

A write may wait long before it is sent: for the rate limiter, after a 429, for a
free connection. A caller that may lose the right to write meanwhile passes a
guard, and the transport calls it when nothing is left to wait for: transport/http.py,
transport/write_pool.py and transport/inprocess.py do, and the others pass it on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lamina.errors import NotLeading

WriteGuard: TypeAlias = Callable[[], bool]
"""Returns whether the write may still be sent."""


def check_guard(guard: WriteGuard | None) -> None:
    """Raise NotLeading where a write that is about to be sent is no longer allowed."""
    if guard is not None and not guard():
        raise NotLeading("not sent: this replica no longer leads the owner, or the cluster was unbound")
