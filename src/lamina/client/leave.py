"""
Leave to write, asked for once more at the last moment.

A write may wait long before it is sent: for its turn under a limit, because a
server asked to come back later, for a connection. Whoever may lose the right to
write meanwhile says so around the call, and what carries requests asks when
there is nothing left to wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lamina.errors import NotLeading

_allowed: ContextVar[Callable[[], bool] | None] = ContextVar("allowed", default=None)
_READS = frozenset(("GET", "HEAD", "OPTIONS"))


@contextmanager
def only_while(allowed: Callable[[], bool]) -> Iterator[None]:
    """Have nothing written within this block, by the same task, unless that is allowed when it is sent."""
    before = _allowed.set(allowed)
    try:
        yield
    finally:
        _allowed.reset(before)


def check_leave(method: str) -> None:
    """Raise NotLeading where a request about to be sent is a write that is not allowed any more."""
    allowed = _allowed.get()
    if allowed is not None and method not in _READS and not allowed():
        raise NotLeading("this is somebody else's to write by now")
