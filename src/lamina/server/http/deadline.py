"""The deadline of a request: its `timeout` parameter, bounded by the server's limit."""

from __future__ import annotations

from lamina.errors import BadRequest
from lamina.objects.durations import SECOND, nanoseconds
from lamina.server.http.request import Request

_DEFAULT_DEADLINE = 60.0
_LONG_RUNNING_PATHS = ("/log", "/exec", "/attach", "/portforward", "/proxy")


def deadline(request: Request) -> float:
    """Return the deadline of a request in seconds; raises BadRequest for an invalid duration."""
    text = request.parameter("timeout")
    if not text:
        return _DEFAULT_DEADLINE
    try:
        seconds = nanoseconds(text) / SECOND
    except ValueError as nonsense:
        raise BadRequest(f"invalid timeout specified in the request URL - {nonsense}") from None
    return min(seconds, _DEFAULT_DEADLINE) if seconds > 0 else _DEFAULT_DEADLINE


def is_long_running(request: Request) -> bool:
    """Return whether a request is long-running (watch, log, exec), so that no deadline applies."""
    return request.flag("watch") or "/watch/" in request.path or request.path.endswith(_LONG_RUNNING_PATHS)
