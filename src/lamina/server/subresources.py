"""
What is served below an object.

`status`, `finalize` and the like are the object again, seen from an endpoint
that may change only its part. `scale` is another kind's body for the same
object. The rest are actions: a review, a binding, an eviction.
"""

from __future__ import annotations

from typing import Any

import orjson

from lamina.errors import BadRequest, NotFound
from lamina.merge.patches import json_patch, merge_patch
from lamina.objects.types import Made
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import admit_update, check_version
from lamina.server.custom.scale import paths_of, scale_of, with_scale
from lamina.server.fields import invalid_named
from lamina.server.kind import Findings
from lamina.server.options import write_options
from lamina.server.plane import Plane, Target
from lamina.server.pods import bind, evict, log_of
from lamina.server.rendering import decoded, shown
from lamina.server.request import Answer, Request, json_answer
from lamina.server.verbs.get import get
from lamina.server.verbs.patch import JSON_PATCH, parse_patch, patch, patch_type
from lamina.server.verbs.update import put, update

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
    if below is None or _VERBS.get(request.method) not in below.verbs:
        raise words.not_allowed()
    if target.subresource == "scale":
        return await _scale(plane, request, target)
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
    raise NotFound("the server could not find the requested resource")


async def _scale(plane: Plane, request: Request, target: Target) -> Answer:
    row = plane.store.get(target.key) if request.method == "GET" else plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    paths = paths_of(target.kind)
    old = decoded(target.kind, row)
    current = scale_of(old, paths, whole=request.method in ("GET", "HEAD"))
    if request.method == "GET":
        return json_answer(current)
    options = write_options(request, "UpdateOptions" if request.method == "PUT" else "PatchOptions")
    wanted = _wanted_scale(request, target, current)
    metadata = wanted.get("metadata") or {}
    if metadata.get("name", target.name) != target.name:
        raise BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    check_version(target, metadata.get("resourceVersion") or "", str(row.version))
    new, causes = with_scale(old, wanted, paths)
    if causes:
        raise invalid_named("Scale", "autoscaling", target.name, causes)
    before = orjson.loads(shown(target.kind, row))
    new.pop("kind", None)
    new.pop("apiVersion", None)
    admitted = admit_update(plane, request, target, new, before, options)
    row = await put(plane, target, admitted, before, row, options)
    return json_answer(scale_of(decoded(target.kind, row), paths))


def _wanted_scale(request: Request, target: Target, current: Made) -> Made:
    findings = Findings()
    if request.method == "PUT":
        return bodies.parse(request.body, request.headers.get("content-type", ""), findings)
    media = patch_type(request, target.kind)
    change: Any = parse_patch(request.body, media, findings)
    if media == JSON_PATCH:
        result = json_patch(current, change)
    else:
        result = merge_patch(current, change)
    if not isinstance(result, dict):
        raise BadRequest("the patch does not leave an object")
    return result
