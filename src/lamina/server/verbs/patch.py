"""
Change an object by a patch: JSON patch, merge patch, strategic merge patch.

A patch is worked out against the newest accepted version and judged like an
update. Only one that names a version itself can lose a race.
"""

from __future__ import annotations

from typing import Any

import orjson

from lamina.errors import BadRequest, Cause, Invalid
from lamina.merge.patches import json_patch, merge_patch, strategic_merge
from lamina.objects.types import Made
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import admit_update, check_version
from lamina.server.kind import Findings, Kind
from lamina.server.options import WriteOptions, write_options
from lamina.server.plane import Plane, Target
from lamina.server.rendering import object_answer, shown, typed
from lamina.server.request import Answer, Request
from lamina.server.verbs.apply import apply
from lamina.server.verbs.update import put

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


async def patch(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer 200 with the object as it now is, 201 where an apply made it."""
    media = patch_type(request, target.kind)
    options = write_options(request, "PatchOptions")
    if media == APPLY:
        return await apply(plane, request, target, options)
    if "force" in request.parameters:
        raise words.invalid_options(
            "PatchOptions",
            "force",
            "FieldValueForbidden",
            "Forbidden: may not be specified for non-apply patch",
        )
    findings = Findings()
    change = parse_patch(request.body, media, findings)
    row = plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    old = orjson.loads(shown(target.kind, row))
    patched = patched_object(target.kind, typed(target.kind, old), change, media)
    new = _decoded(request, target, patched, change, findings, options)
    check_version(target, new["metadata"].get("resourceVersion", ""), str(row.version))
    new = admit_update(plane, request, target, new, old, options)
    row = await put(plane, target, new, old, row, options)
    return object_answer(request, target.kind, shown(target.kind, row), plane.now())


def patch_type(request: Request, kind: Kind) -> str:
    """Return which of the patch formats the body is in; raises for any the kind does not take."""
    accepted = (
        (JSON_PATCH, MERGE_PATCH, APPLY) if kind.custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY)
    )
    media = bodies.media_type(request.headers.get("content-type", ""))
    if media not in accepted:
        raise bodies.unsupported(", ".join(accepted))
    return media


def parse_patch(data: bytes, media: str, findings: Findings) -> Any:
    """Return the patch in a body: a list of operations, or a partial object."""
    if media == JSON_PATCH:
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            raise BadRequest(
                "error decoding patch: invalid character looking for beginning of value"
            ) from None
    return bodies.parse_json(data, findings)


def patched_object(kind: Kind, current: Made, change: Any, media: str) -> Made:
    """Return what the patch makes of an object; raises for a patch that does not fit."""
    result: Any
    if media == JSON_PATCH:
        result = json_patch(current, change)
    elif media == MERGE_PATCH:
        result = merge_patch(current, change)
    else:
        result = strategic_merge(current, change, kind.schema)
    if not isinstance(result, dict):
        raise BadRequest("the patch does not leave an object")
    return result


def _decoded(
    request: Request, target: Target, patched: Made, change: Any, findings: Findings, options: WriteOptions
) -> Made:
    kind = target.kind
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if patched.pop(field, expected) != expected:
            raise BadRequest(f"{field} may not be changed: it is {expected}")
    new = kind.shape.decode(patched, findings)
    metadata = new.setdefault("metadata", {})
    if metadata.get("name") != target.name:
        raise BadRequest(
            f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL ({target.name})"
        )
    if target.kind.namespaced and metadata.get("namespace") != target.namespace:
        raise BadRequest("the namespace of the object does not match the namespace on the request")
    if findings.sentences:
        _judge(request, change, findings, options.validation)
    return new


def _judge(request: Request, change: Any, findings: Findings, validation: str) -> None:
    if validation == "Warn":
        for sentence in findings.sentences:
            request.warn(sentence)
    elif validation == "Strict":
        shown_patch = orjson.dumps(change).decode()
        why = f"strict decoding error: {', '.join(findings.sentences)}"
        cause = Cause(
            "FieldValueInvalid", f"Invalid value: {orjson.dumps(shown_patch).decode()}: {why}", "patch"
        )
        raise Invalid(f' "" is invalid: patch: {cause.message}', causes=[cause])
