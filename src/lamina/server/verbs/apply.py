"""Server-side apply: merges the applied fields into the object and tracks which manager owns each field."""

from __future__ import annotations

import orjson

from lamina.errors import AlreadyExists, BadRequest, Unclassified
from lamina.merge.apply import apply as merge_apply
from lamina.merge.go_format import plain
from lamina.merge.managed import Manager
from lamina.objects.types import Made
from lamina.server import status_errors
from lamina.server.admission.chain import ObjectChanged
from lamina.server.admission.kind_hooks import wait_for_service_account
from lamina.server.admission.options import WriteOptions
from lamina.server.admission.pipeline import (
    admit_create,
    admit_update,
    check_namespace,
    set_namespace,
    versions_of,
)
from lamina.server.admission.preconditions import check_version
from lamina.server.codec import body as bodies
from lamina.server.codec.response import object_response, versioned_json
from lamina.server.context import ServerContext
from lamina.server.decode_errors import DecodeError
from lamina.server.field_errors import immutable
from lamina.server.http.request import Request, Response
from lamina.server.kinds.builtin.decode_scalars import json_type
from lamina.server.kinds.kind import Findings, invalid_error
from lamina.server.kinds.target import Target
from lamina.server.verbs.create import store_row
from lamina.server.verbs.update import store_update


async def apply(context: ServerContext, request: Request, target: Target, options: WriteOptions) -> Response:
    """Return 201 with a new object, 200 with a changed one; raises Conflict for fields of other managers."""
    if not request.parameter("fieldManager"):
        raise status_errors.invalid_options(
            "PatchOptions",
            "fieldManager",
            "FieldValueRequired",
            "Required value: is required for apply patch",
        )
    applied = read_applied(request, target, options, (target.kind.api_version, target.kind.kind))
    row = context.store.newest(target.key)
    if row is None:
        return await _create(context, request, target, applied, options)
    kind = target.kind
    old = orjson.loads(versioned_json(kind, row))
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
        now=context.stamp(),
        reset_fields=kind.shape.reset_fields(target.subresource),
        versions=versions_of(context, kind),
        kind=kind.kind,
    )
    if not outcome.changed:
        await context.store.wait_committed(row)
        return object_response(request, kind, versioned_json(kind, row), context.now())
    findings = Findings()
    new = kind.shape.decode(outcome.obj, findings)
    request.empties = findings.empties
    new = await admit_update(context, request, target, new, old, options, owned=outcome.managed_fields)
    row = await store_update(context, target, new, old, row, options)
    return object_response(request, kind, versioned_json(kind, row), context.now())


async def _create(
    context: ServerContext, request: Request, target: Target, applied: Made, options: WriteOptions
) -> Response:
    kind = target.kind
    if target.subresource:
        raise status_errors.not_found(kind, target.name)
    if applied["metadata"].get("uid"):
        raise status_errors.conflict(kind, target.name, "uid mismatch: the provided object specified uid "
                             f"{applied['metadata']['uid']}, and no existing object was found")  # fmt: skip
    if not applied["metadata"].get("name"):
        raise status_errors.missing_name(target.name)
    applied["metadata"].pop("resourceVersion", None)
    check_namespace(context, target, target.name)
    outcome = merge_apply(
        None,
        applied,
        kind.schema,
        manager=_manager(target, options),
        force=options.force,
        now=context.stamp(),
        reset_fields=kind.shape.reset_fields(""),
        versions=versions_of(context, kind),
        kind=kind.kind,
    )
    findings = Findings()
    obj = kind.shape.decode(outcome.obj, findings)
    request.empties = findings.empties
    set_namespace(target, obj)
    await wait_for_service_account(context, target, obj)
    obj = await admit_create(context, request, target, obj, options, owned=outcome.managed_fields)
    try:
        row = await store_row(context, target, obj, request.user, dry_run=options.dry_run)
    except AlreadyExists:
        # Created by another client while webhooks were called: retried as an update.
        raise ObjectChanged from None
    return object_response(request, kind, versioned_json(kind, row), context.now(), status=201)


def _manager(target: Target, options: WriteOptions) -> Manager:
    return Manager(options.manager, "Apply", target.kind.api_version, target.subresource)


def read_applied(request: Request, target: Target, options: WriteOptions, expected: tuple[str, str]) -> Made:
    """Return the applied configuration as written; it is defaulted and normalized after the merge."""
    findings = Findings()
    try:
        parsed = bodies.load_yaml_body(request.body, findings)
    except DecodeError as problem:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {problem.why}") from None
    if parsed is None:
        parsed = {}
    if not isinstance(parsed, dict):
        why = f"json: cannot unmarshal {json_type(parsed)} into Go value of type map[string]interface {{}}"
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
        raise Unclassified(
            f"failed to create typed patch object ({where}): .metadata: expected map, got &{{{plain(metadata)}}}"
        )
    if metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if metadata.get("name", target.name) != target.name:
        raise status_errors.name_mismatch(metadata["name"], target.name)
    if kind.namespaced and metadata.get("namespace", target.namespace) != target.namespace:
        raise status_errors.namespace_mismatch()
    return parsed


def _gvk(api_version: str) -> str:
    return api_version if "/" in api_version else f"/{api_version}"
