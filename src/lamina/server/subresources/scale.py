"""
The scale subresource: get, update, patch and apply.

A Scale is an object of another kind. Writing it writes the replicas of the object, under the object's
rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from lamina.errors import BadRequest, Invalid
from lamina.merge.apply import apply as merge_apply
from lamina.merge.apply import track_update
from lamina.merge.managed import Manager
from lamina.merge.patches import json_patch, merge_patch
from lamina.merge.scale_ownership import SCALE, object_owners, scale_owners
from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.options import WriteOptions, write_options
from lamina.server.admission.pipeline import admit_update
from lamina.server.admission.preconditions import check_version
from lamina.server.codec import body as bodies
from lamina.server.codec.negotiate import negotiate
from lamina.server.codec.response import decode_row, encode, include_object, versioned_json
from lamina.server.codec.tables import build_table
from lamina.server.codec.typemeta import check_scale
from lamina.server.context import ServerContext
from lamina.server.decode_errors import DecodeError
from lamina.server.field_errors import invalid_named
from lamina.server.http.request import Request, Response, json_response
from lamina.server.kinds.builtin.kinds import LazySchema
from lamina.server.kinds.columns import CREATED_DESCRIPTION, NAME, since
from lamina.server.kinds.custom.scale import ScalePaths, paths_of, scale_of, with_scale
from lamina.server.kinds.kind import Column, Findings, Kind
from lamina.server.kinds.target import Target
from lamina.server.verbs.apply import read_applied
from lamina.server.verbs.patch import APPLY, JSON_PATCH, parse_patch, patch_error, patch_type
from lamina.server.verbs.update import store_update

_SCHEMA: Final = LazySchema("io.k8s.api.autoscaling.v1.Scale")


_COLUMNS: Final = (
    NAME,
    Column(
        name="Desired",
        type="integer",
        description="replicas is the desired number of instances for the scaled object.",
    ),
    Column(
        name="Available",
        type="integer",
        description="replicas is the actual number of observed instances of the scaled object.",
    ),
    Column(name="Age", description=CREATED_DESCRIPTION),
)


async def scale(context: ServerContext, request: Request, target: Target) -> Response:
    """Return the Scale of an object, after writing it if requested."""
    reads = request.method == "GET"
    row = context.store.get(target.key) if reads else context.store.newest(target.key)
    if row is None:
        raise status_errors.not_found(target.kind, target.name)
    paths = paths_of(target.kind)
    old = decode_row(target.kind, row)
    current = scale_of(old, paths, whole=reads)
    if reads:
        return _scale_response(request, current, context.now())
    options = write_options(request, "UpdateOptions" if request.method == "PUT" else "PatchOptions")
    stored = old["metadata"].get("managedFields") or []
    replica_paths = _replica_paths(context, target.kind)
    current["metadata"]["managedFields"] = scale_owners(stored, replica_paths)
    requested, scale_managed = _requested_scale(request, target, current, options)
    metadata = requested.get("metadata") or {}
    if metadata.get("name", target.name) != target.name:
        raise status_errors.name_mismatch(metadata["name"], target.name)
    check_version(target, metadata.get("resourceVersion") or "", str(row.version))
    new = _with_scale(request, target, old, requested, paths)
    if scale_managed is None:
        scale_managed = _track(current, new, paths, options)
    before = orjson.loads(versioned_json(target.kind, row))
    new.pop("kind", None)
    new.pop("apiVersion", None)
    owned = object_owners(stored, scale_managed, replica_paths, target.kind.api_version)
    admitted = await admit_update(context, request, target, new, before, options, owned=owned)
    row = await store_update(context, target, admitted, before, row, options)
    return json_response(scale_of(decode_row(target.kind, row), paths))


def _scale_response(request: Request, current: Obj, now: datetime) -> Response:
    """Return a Scale in the negotiated representation."""
    requested = negotiate(request.headers.get("accept", ""), ("Table",))
    if requested.form != "Table":
        return encode(current, requested)
    rows = build_table(_COLUMNS, _cells, [current], now, include_object(request))
    rows["metadata"] = {"resourceVersion": current["metadata"].get("resourceVersion", "")}
    return encode(rows, requested)


def _cells(current: Obj, now: datetime) -> list[Any]:
    metadata, spec, status = current["metadata"], current.get("spec") or {}, current.get("status") or {}
    return [
        metadata["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        since(metadata.get("creationTimestamp"), now),
    ]


def _replica_paths(context: ServerContext, kind: Kind) -> Mapping[str, Sequence[str]]:
    """Return the path of the replicas field in each version of a kind, as in managedFields."""
    return {
        one.api_version: [f"f:{step}" for step in paths_of(one).spec.removeprefix(".").split(".")]
        for one in context.registry.versions(kind)
    }


def _requested_scale(
    request: Request, target: Target, current: Made, options: WriteOptions
) -> tuple[Made, list[Made] | None]:
    """Return the requested Scale and, for an apply, its managedFields."""
    findings = Findings()
    if request.method == "PUT":
        body = bodies.parse(request.body, request.headers.get("content-type", ""), findings)
        check_scale(body)
        return body, None
    media = patch_type(request, target.kind)
    if media == APPLY:
        return _applied(request, target, current, options)
    change = parse_patch(request.body, media, findings)
    patchable = {**current, "metadata": {**current["metadata"]}}
    patchable["metadata"].pop("managedFields")
    result = json_patch(patchable, change) if media == JSON_PATCH else merge_patch(patchable, change)
    if not isinstance(result, dict):
        raise BadRequest("the patch does not leave an object")
    return result, None


def _applied(
    request: Request, target: Target, current: Made, options: WriteOptions
) -> tuple[Made, list[Made]]:
    applied = read_applied(request, target, options, (SCALE, "Scale"))
    outcome = merge_apply(
        current,
        applied,
        _SCHEMA,
        manager=Manager(options.manager, "Apply", SCALE, "scale"),
        force=options.force,
        now="",
        kind="Scale",
    )
    return outcome.obj, outcome.managed_fields


def _with_scale(request: Request, target: Target, old: Obj, requested: Made, paths: ScalePaths) -> Made:
    """Return the object with the replicas of a Scale; raises for an invalid one."""
    try:
        new, causes = with_scale(old, requested, paths)
    except DecodeError as problem:
        if request.method == "PUT":
            raise
        raise _scale_error(requested, problem.why) from None
    if causes:
        raise invalid_named("Scale", "autoscaling", target.name, causes)
    return new


def _scale_error(requested: Made, why: str) -> Invalid:
    return patch_error(orjson.dumps(requested).decode(), why)


def _track(current: Made, new: Made, paths: ScalePaths, options: WriteOptions) -> list[Made]:
    """Return the managedFields of a Scale after an update or patch; they carry no time."""
    after = scale_of(new, paths)
    if "replicas" in current["spec"] and "replicas" not in after["spec"]:
        # Zero replicas are omitted, and an omitted field has no owner.
        return []
    after["metadata"]["managedFields"] = current["metadata"]["managedFields"]
    return track_update(
        current, after, _SCHEMA, manager=Manager(options.manager, "Update", SCALE, "scale"), now=""
    )
