"""Server-side apply: state the fields you care about; the server keeps the rest, and knows whose is what."""

from __future__ import annotations

import orjson

from lamina.errors import AlreadyExists, BadRequest, Unexplained
from lamina.merge.apply import apply as merge_apply
from lamina.merge.managed import Manager
from lamina.merge.wording import plain
from lamina.objects.types import Made
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.admission import (
    admit_create,
    admit_namespace,
    admit_update,
    place,
    versions_of,
)
from lamina.server.builtin.decode import word
from lamina.server.fields import immutable, invalid_error
from lamina.server.kind import Findings
from lamina.server.misread import Misread
from lamina.server.options import WriteOptions
from lamina.server.plane import Plane, Target
from lamina.server.preconditions import check_version
from lamina.server.rendering import object_answer, shown
from lamina.server.request import Answer, Request
from lamina.server.reviewing import Moved
from lamina.server.specials import await_account
from lamina.server.verbs.create import put_new
from lamina.server.verbs.update import put


async def apply(plane: Plane, request: Request, target: Target, options: WriteOptions) -> Answer:
    """Answer 201 with a new object, 200 with one that was there; 409 where somebody else disagrees."""
    if not request.parameter("fieldManager"):
        raise words.invalid_options(
            "PatchOptions",
            "fieldManager",
            "FieldValueRequired",
            "Required value: is required for apply patch",
        )
    applied = read_applied(request, target, options, (target.kind.api_version, target.kind.kind))
    row = plane.store.newest(target.key)
    if row is None:
        return await _create(plane, request, target, applied, options)
    kind = target.kind
    old = orjson.loads(shown(kind, row))
    given = applied["metadata"]
    if causes := immutable(
        "metadata.uid", given.get("uid") or old["metadata"]["uid"], old["metadata"]["uid"]
    ):
        raise invalid_error(kind, target.name, causes)
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
    findings = Findings()
    new = kind.shape.decode(outcome.obj, findings)
    request.empties = findings.empties
    new = await admit_update(plane, request, target, new, old, options, owned=outcome.managed_fields)
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
    if not applied["metadata"].get("name"):
        raise words.nameless(target.name)
    applied["metadata"].pop("resourceVersion", None)
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
    findings = Findings()
    obj = kind.shape.decode(outcome.obj, findings)
    request.empties = findings.empties
    place(target, obj)
    await await_account(plane, target, obj)
    obj = await admit_create(plane, request, target, obj, options, owned=outcome.managed_fields)
    try:
        row = await put_new(plane, target, obj, request.user, dry_run=options.dry_run)
    except AlreadyExists:
        # Made by somebody else while webhooks were asked: then this is a change to it.
        raise Moved from None
    return object_answer(request, kind, shown(kind, row), plane.now(), status=201)


def _manager(target: Target, options: WriteOptions) -> Manager:
    return Manager(options.manager, "Apply", target.kind.api_version, target.subresource)


def read_applied(request: Request, target: Target, options: WriteOptions, expected: tuple[str, str]) -> Made:
    """Return the applied configuration, as it was written: defaults and normalising come after the merge."""
    findings = Findings()
    try:
        parsed = bodies.load_yaml_body(request.body, findings)
    except Misread as problem:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {problem.why}") from None
    if parsed is None:
        parsed = {}
    if not isinstance(parsed, dict):
        why = f"json: cannot unmarshal {word(parsed)} into Go value of type map[string]interface {{}}"
        raise BadRequest(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    kind = target.kind
    if findings.sentences:
        if options.validation == "Strict":
            raise BadRequest(
                f"error strict decoding YAML: error converting YAML to JSON: {findings.sentences[0]}"
            )
        if options.validation == "Warn":
            for sentence in findings.warnings:
                request.warn(sentence)
    api_version, named = parsed.pop("apiVersion", ""), parsed.pop("kind", "")
    if (api_version, named) != expected:
        raise BadRequest(f"invalid object type: {_gvk(str(api_version))}, Kind={named}")
    metadata = parsed.setdefault("metadata", {})
    if metadata is None:
        metadata = parsed["metadata"] = {}
    if not isinstance(metadata, dict):
        where = f"/; {_gvk(expected[0])}, Kind={expected[1]}"
        raise Unexplained(
            f"failed to create typed patch object ({where}): .metadata: expected map, got &{{{plain(metadata)}}}"
        )
    if metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if metadata.get("name", target.name) != target.name:
        raise words.misnamed(metadata["name"], target.name)
    if kind.namespaced and metadata.get("namespace", target.namespace) != target.namespace:
        raise words.misplaced()
    return parsed


def _gvk(api_version: str) -> str:
    return api_version if "/" in api_version else f"/{api_version}"
