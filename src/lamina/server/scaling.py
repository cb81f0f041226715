"""
The scale of an object: read, replaced, patched, applied.

A Scale is another kind's body for the same object. Writing one writes a single
number of it, under the rules of the object.
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
from lamina.merge.scaled import SCALE, object_owners, scale_owners
from lamina.objects.types import Made, Obj
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import admit_update
from lamina.server.builtin.kinds import LazySchema
from lamina.server.custom.scale import ScalePaths, paths_of, scale_of, with_scale
from lamina.server.declared import check_scale
from lamina.server.fields import invalid_named
from lamina.server.kind import Column, Findings, Kind
from lamina.server.misread import Misread
from lamina.server.negotiate import negotiate
from lamina.server.options import WriteOptions, write_options
from lamina.server.plane import Plane, Target
from lamina.server.preconditions import check_version
from lamina.server.rendering import decoded, encode, included, shown
from lamina.server.request import Answer, Request, json_answer
from lamina.server.tables import CREATED_TOLD, NAME, since, tabulated
from lamina.server.verbs.apply import read_applied
from lamina.server.verbs.patch import APPLY, JSON_PATCH, parse_patch, patch_refused, patch_type
from lamina.server.verbs.update import put

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
    Column(name="Age", description=CREATED_TOLD),
)


async def scale(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with the Scale of an object, as it is or as it has become."""
    reads = request.method == "GET"
    row = plane.store.get(target.key) if reads else plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    paths = paths_of(target.kind)
    old = decoded(target.kind, row)
    current = scale_of(old, paths, whole=reads)
    if reads:
        return _shown(request, current, plane.now())
    options = write_options(request, "UpdateOptions" if request.method == "PUT" else "PatchOptions")
    stored = old["metadata"].get("managedFields") or []
    places = _places(plane, target.kind)
    current["metadata"]["managedFields"] = scale_owners(stored, places)
    wanted, scaled = _wanted(request, target, current, options)
    metadata = wanted.get("metadata") or {}
    if metadata.get("name", target.name) != target.name:
        raise words.misnamed(metadata["name"], target.name)
    check_version(target, metadata.get("resourceVersion") or "", str(row.version))
    new = _scaled(request, target, old, wanted, paths)
    if scaled is None:
        scaled = _tracked(current, new, paths, options)
    before = orjson.loads(shown(target.kind, row))
    new.pop("kind", None)
    new.pop("apiVersion", None)
    owned = object_owners(stored, scaled, places, target.kind.api_version)
    admitted = await admit_update(plane, request, target, new, before, options, owned=owned)
    row = await put(plane, target, admitted, before, row, options)
    return json_answer(scale_of(decoded(target.kind, row), paths))


def _shown(request: Request, current: Obj, now: datetime) -> Answer:
    """Return a Scale in the representation that was asked for."""
    wanted = negotiate(request.headers.get("accept", ""), ("Table",))
    if wanted.form != "Table":
        return encode(current, wanted)
    rows = tabulated(_COLUMNS, _cells, [current], now, included(request))
    rows["metadata"] = {"resourceVersion": current["metadata"].get("resourceVersion", "")}
    return encode(rows, wanted)


def _cells(current: Obj, now: datetime) -> list[Any]:
    metadata, spec, status = current["metadata"], current.get("spec") or {}, current.get("status") or {}
    return [
        metadata["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        since(metadata.get("creationTimestamp"), now),
    ]


def _places(plane: Plane, kind: Kind) -> Mapping[str, Sequence[str]]:
    """Return where each version of a kind keeps its replicas, as owners write it."""
    return {
        one.api_version: [f"f:{step}" for step in paths_of(one).spec.removeprefix(".").split(".")]
        for one in plane.registry.versions(kind)
    }


def _wanted(
    request: Request, target: Target, current: Made, options: WriteOptions
) -> tuple[Made, list[Made] | None]:
    """Return the Scale that a request asks for and, after an apply, who owns what of it."""
    findings = Findings()
    if request.method == "PUT":
        body = bodies.parse(request.body, request.headers.get("content-type", ""), findings)
        check_scale(body)
        return body, None
    media = patch_type(request, target.kind)
    if media == APPLY:
        return _applied(request, target, current, options)
    change = parse_patch(request.body, media, findings)
    shown_scale = {**current, "metadata": {**current["metadata"]}}
    shown_scale["metadata"].pop("managedFields")
    result = json_patch(shown_scale, change) if media == JSON_PATCH else merge_patch(shown_scale, change)
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


def _scaled(request: Request, target: Target, old: Obj, wanted: Made, paths: ScalePaths) -> Made:
    """Return the object with the number a Scale says; raises where it is none."""
    try:
        new, causes = with_scale(old, wanted, paths)
    except Misread as problem:
        if request.method == "PUT":
            raise
        raise _blamed(wanted, problem.why) from None
    if causes:
        raise invalid_named("Scale", "autoscaling", target.name, causes)
    return new


def _blamed(wanted: Made, why: str) -> Invalid:
    return patch_refused(orjson.dumps(wanted).decode(), why)


def _tracked(current: Made, new: Made, paths: ScalePaths, options: WriteOptions) -> list[Made]:
    """Return who owns what of a Scale that was written in any way but apply; there is never a time."""
    after = scale_of(new, paths)
    if "replicas" in current["spec"] and "replicas" not in after["spec"]:
        # None at all is written as nothing, and nothing has no owner.
        return []
    after["metadata"]["managedFields"] = current["metadata"]["managedFields"]
    return track_update(
        current, after, _SCHEMA, manager=Manager(options.manager, "Update", SCALE, "scale"), now=""
    )
