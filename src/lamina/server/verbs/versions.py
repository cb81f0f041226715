"""What a request says about resource versions, and waiting for one that is still to come."""

from __future__ import annotations

from lamina.errors import Unexplained
from lamina.server import words
from lamina.server.plane import Plane
from lamina.server.request import Request

_PATIENCE = 3.0
"""Seconds to wait for a version that another server may have promised; as long as the real one waits."""


def version_of(request: Request, *, listing: bool = False) -> int | None:
    """Return the resourceVersion asked for; None where there is none, 0 for any. Only a list says what is wrong with it."""
    text = request.parameter("resourceVersion")
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise words.bad_version(text) if listing else Unexplained(words.unparsed_version(text))
    return int(text)


async def at_least(plane: Plane, request: Request) -> int | None:
    """Wait until the store has reached the version the request names, and return that version."""
    version = version_of(request)
    if version is not None:
        await reach(plane, version)
    return version


async def reach(plane: Plane, version: int, opening: str = "") -> None:
    """Wait a moment for a version that is still to come; raises what a real server says, beginning with `opening`."""
    if version > plane.store.version and not await plane.store.wait_for(version, _PATIENCE):
        raise words.too_large_version(version, plane.store.version, opening)
