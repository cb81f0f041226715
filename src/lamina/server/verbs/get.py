"""The get verb."""

from __future__ import annotations

from lamina.server import status_errors
from lamina.server.codec.response import object_response, versioned_json
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response
from lamina.server.kinds.target import Target
from lamina.server.verbs.resource_version import wait_for_request


async def get(context: ServerContext, request: Request, target: Target) -> Response:
    """Return the newest committed version, which is at least the one the request names."""
    if request.query:
        await wait_for_request(context, request)
    row = context.store.get(target.key)
    if row is None:
        raise status_errors.not_found(target.kind, target.name)
    return object_response(request, target.kind, versioned_json(target.kind, row), context.now())
