"""Server-side apply: state the fields you care about; the server keeps the rest, and knows whose is what."""

from __future__ import annotations

import orjson

from lamina.errors import BadRequest, Invalid
from lamina.merge.apply import apply as merge_apply
from lamina.merge.managed import Manager
from lamina.objects.types import Made
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import (
    admit_create,
    admit_namespace,
    admit_update,
    check_version,
    place,
    versions_of,
)
from lamina.server.kind import Findings
from lamina.server.options import WriteOptions
from lamina.server.plane import Plane, Target
from lamina.server.rendering import object_answer, shown
from lamina.server.request import Answer, Request
from lamina.server.verbs.create import put_new
from lamina.server.verbs.update import precondition_failed, put


async def apply(plane: Plane, request: Request, target: Target, options: WriteOptions) -> Answer:
    """Answer 201 with a new object, 200 with one that was there; 409 where somebody else disagrees."""
    if not request.parameter("fieldManager"):
        raise words.invalid_options(
            "PatchOptions",
            "fieldManager",
            "FieldValueRequired",
            "Required value: is required for apply patch",
        )
    applied = _read(request, target, options)
    row = plane.store.newest(target.key)
    if row is None:
        return await _create(plane, request, target, applied, options)
    kind = target.kind
    old = orjson.loads(shown(kind, row))
    given = applied["metadata"]
    if given.get("uid") and given["uid"] != old["metadata"]["uid"]:
        raise precondition_failed(target, given["uid"], old["metadata"]["uid"])
    check_version(target, given.pop("resourceVersion", ""), str(row.version))
    outcome = merge_apply(
        old,
        applied,
        kind.schema,
        manager=_manager(target, options),
        force=options.force,
        now=plane.stamp(),
        untracked=kind.shape.untracked(target.subresource),
        versions=versions_of(plane, kind),
        kind=kind.kind,
    )
    if not outcome.changed:
        await plane.store.settled(row)
        return object_answer(request, kind, shown(kind, row), plane.now())
    new = kind.shape.decode(outcome.obj, Findings())
    new = admit_update(plane, request, target, new, old, options, owned=outcome.managed_fields)
    row = await put(plane, target, new, old, row, options)
    return object_answer(request, kind, shown(kind, row), plane.now())


async def _create(
    plane: Plane, request: Request, target: Target, applied: Made, options: WriteOptions
) -> Answer:
    kind = target.kind
    if target.subresource:
        raise words.not_found(kind, target.name)
    if applied["metadata"].get("uid"):
        raise words.conflict(kind, target.name, "uid mismatch: the provided object specified uid "
                             f"{applied['metadata']['uid']}, and no existing object was found")  # fmt: skip
    applied["metadata"]["name"] = target.name
    place(target, applied)
    admit_namespace(plane, target, target.name)
    outcome = merge_apply(
        None,
        applied,
        kind.schema,
        manager=_manager(target, options),
        force=options.force,
        now=plane.stamp(),
        untracked=kind.shape.untracked(""),
        versions=versions_of(plane, kind),
        kind=kind.kind,
    )
    obj = kind.shape.decode(outcome.obj, Findings())
    obj = admit_create(plane, request, target, obj, options, owned=outcome.managed_fields)
    row = await put_new(plane, target, obj, request.user, dry_run=options.dry_run)
    return object_answer(request, kind, shown(kind, row), plane.now(), status=201)


def _manager(target: Target, options: WriteOptions) -> Manager:
    return Manager(options.manager, "Apply", target.kind.api_version, target.subresource)


def _repeated(body: bytes) -> str:
    from lamina.server.yaml import repeated_keys

    lines = [f'  line {line}: key "{key}" already set in map' for line, key in repeated_keys(body)]
    return "\n".join(["yaml: unmarshal errors:", *lines])


def _read(request: Request, target: Target, options: WriteOptions) -> Made:
    """Return the applied configuration, as it was written: defaults and normalising come after the merge."""
    findings = Findings()
    parsed = bodies.parse_yaml(request.body, findings)
    kind = target.kind
    if findings.sentences:
        if options.validation == "Strict":
            raise BadRequest(
                f"error strict decoding YAML: error converting YAML to JSON: {_repeated(request.body)}"
            )
        if options.validation == "Warn":
            for sentence in findings.sentences:
                request.warn(sentence)
    api_version, named = parsed.pop("apiVersion", ""), parsed.pop("kind", "")
    if (api_version, named) != (kind.api_version, kind.kind):
        shown_type = (
            f"{api_version}, Kind={named}" if "/" in str(api_version) else f"/{api_version}, Kind={named}"
        )
        raise BadRequest(f"invalid object type: {shown_type}")
    metadata = parsed.setdefault("metadata", {})
    if metadata is None:
        metadata = parsed["metadata"] = {}
    if not isinstance(metadata, dict):
        raise Invalid(f"{kind.kind} metadata must be an object")
    if metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if metadata.setdefault("name", target.name) != target.name:
        raise BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    if kind.namespaced and metadata.get("namespace", target.namespace) != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return parsed
