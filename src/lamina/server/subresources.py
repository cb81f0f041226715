"""
What is served below an object.

`status`, `finalize` and the like are the object again, seen from an endpoint
that may change only its part. `scale` is another kind's body for the same
object. The rest are actions: a review, a binding, an eviction.
"""

from __future__ import annotations

from lamina.errors import NotFound
from lamina.server import words
from lamina.server.eviction import evict
from lamina.server.plane import Plane, Target
from lamina.server.pods import bind, log_of
from lamina.server.request import Answer, Request
from lamina.server.scaling import scale
from lamina.server.verbs.get import get
from lamina.server.verbs.patch import patch
from lamina.server.verbs.update import update

_VIEWS = ("status", "finalize", "approval", "ephemeralcontainers", "resize")
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "POST": "create",
    "DELETE": "delete",
}


async def serve_below(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer a request to a subresource; those a kind lists but nobody can act on here say so."""
    below = target.below
    verb = _VERBS.get(request.method, "")
    if below is None or verb not in below.verbs:
        raise words.not_supported(target.kind, verb) if target.kind.custom and verb else words.not_allowed()
    if target.subresource == "scale":
        return await scale(plane, request, target)
    if target.subresource in _VIEWS:
        match request.method:
            case "GET" | "HEAD":
                return await get(plane, request, target)
            case "PUT":
                return await update(plane, request, target)
            case "PATCH":
                return await patch(plane, request, target)
    match target.subresource:
        case "binding":
            return await bind(plane, request, target)
        case "eviction":
            return await evict(plane, request, target)
        case "log":
            return await log_of(plane, request, target)
    if plane.store.get(target.key) is None:
        raise words.not_found(target.kind, target.name)
    raise NotFound("the server could not find the requested resource")
