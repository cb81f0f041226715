"""
Dispatches requests to subresources.

`status`, `finalize` and the like are views of the object that write only their part. `scale` is an object
of another kind. The rest are actions: binding, eviction, log.
"""

from __future__ import annotations

from lamina.errors import NotFound
from lamina.server import status_errors
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response
from lamina.server.kinds.target import Target
from lamina.server.subresources.eviction import evict
from lamina.server.subresources.pods import bind, read_log
from lamina.server.subresources.scale import scale
from lamina.server.verbs.get import get
from lamina.server.verbs.patch import patch
from lamina.server.verbs.update import update

_OBJECT_SUBRESOURCES = ("status", "finalize", "approval", "ephemeralcontainers", "resize")
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "POST": "create",
    "DELETE": "delete",
}


async def serve_subresource(context: ServerContext, request: Request, target: Target) -> Response:
    """Serve a request to a subresource; those that are listed but not implemented return 404."""
    below = target.below
    verb = _VERBS.get(request.method, "")
    if below is None or verb not in below.verbs:
        raise (
            status_errors.not_supported(target.kind, verb)
            if target.kind.custom and verb
            else status_errors.not_allowed()
        )
    if target.subresource == "scale":
        return await scale(context, request, target)
    if target.subresource in _OBJECT_SUBRESOURCES:
        match request.method:
            case "GET" | "HEAD":
                return await get(context, request, target)
            case "PUT":
                return await update(context, request, target)
            case "PATCH":
                return await patch(context, request, target)
    match target.subresource:
        case "binding":
            return await bind(context, request, target)
        case "eviction":
            return await evict(context, request, target)
        case "log":
            return await read_log(context, request, target)
    if context.store.get(target.key) is None:
        raise status_errors.not_found(target.kind, target.name)
    raise NotFound("the server could not find the requested resource")
