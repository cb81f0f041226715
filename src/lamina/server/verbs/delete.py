"""
The delete and deletecollection verbs.

An object without finalizers is deleted at once. One with finalizers, its own or those that foreground and
orphan deletion add, gets a deletionTimestamp and stays until the last of them is removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from lamina.errors import BadRequest, Conflict, NotFound
from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.chain import review_delete
from lamina.server.admission.kind_hooks import before_delete, grace_period
from lamina.server.admission.options import check_dry_run
from lamina.server.codec import body as bodies
from lamina.server.codec.response import list_response, mark_current, object_response, versioned_json
from lamina.server.codec.selectors import Selection
from lamina.server.codec.typemeta import unregistered
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response, json_response
from lamina.server.kinds.builtin.catalogue import DELETE_RETURNS_OBJECT
from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.builtin.decode_scalars import TypeMismatch
from lamina.server.kinds.kind import Findings
from lamina.server.kinds.target import Target
from lamina.server.storage.encoding import encode_stored
from lamina.server.storage.store import Row
from lamina.server.verbs.list import read_page
from lamina.server.verbs.update import is_finalized

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_POLICIES = ("Background", "Foreground", "Orphan")
_ATTEMPTS = 8


class DeleteOptions(NamedTuple):
    """Propagation policy, grace period, preconditions and dry run of a deletion."""

    policy: str | None
    grace: int | None
    uid: str
    version: str
    dry_run: bool
    status: int = 200
    """The status code of a response with an object that is not deleted yet."""


async def delete(context: ServerContext, request: Request, target: Target) -> Response:
    """Return a Status if the object is deleted, the object if finalizers or a grace period keep it."""
    options = read_options(request)
    row = context.store.newest(target.key)
    if row is None:
        raise status_errors.not_found(target.kind, target.name)
    is_deleted, row, obj = await delete_row(
        context, target, row, options, _reviewer(context, request, target, options)
    )
    if not is_deleted:
        return object_response(
            request, target.kind, versioned_json(target.kind, row), context.now(), options.status
        )
    if target.kind.definition in DELETE_RETURNS_OBJECT:
        return object_response(request, target.kind, versioned_json(target.kind, row), context.now())
    details = {**status_errors.details(target.kind, target.name), "uid": obj["metadata"]["uid"]}
    return json_response(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    )


async def delete_collection(context: ServerContext, request: Request, target: Target) -> Response:
    """Return the list of objects to delete; each is deleted as if by a request of its own."""
    options = read_options(request)
    if request.parameter("watch"):
        raise BadRequest("watch is not a parameter of a deletion")
    page = await read_page(context, request, target, Selection(target.kind, request))
    for one in page.rows:
        item_target = target._replace(namespace=one.key.namespace, name=one.key.name)
        await _delete_one(context, request, item_target, options)
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
    found = [versioned_json(target.kind, row) for row in page.rows]
    return list_response(request, target.kind, found, metadata, context.now())


async def _delete_one(
    context: ServerContext, request: Request, item_target: Target, options: DeleteOptions
) -> None:
    """Delete one object of a collection, retrying if it changes while webhooks are called."""
    # For a collection the admission request has no name.
    reviewer = _reviewer(context, request, item_target._replace(name=""), options)
    for _ in range(_ATTEMPTS):
        row = context.store.newest(item_target.key)
        if row is None:
            return
        try:
            await delete_row(context, item_target, row, options, reviewer)
            return
        except (Conflict, NotFound):
            now = context.store.newest(item_target.key)
            if now is not None and now.version == row.version:
                raise
    raise status_errors.conflict(item_target.kind, item_target.name)


def _reviewer(
    context: ServerContext, request: Request, target: Target, options: DeleteOptions
) -> Callable[[Row], Awaitable[None]] | None:
    """Return the function that runs policies and webhooks on a deletion; None if there are none."""
    if not context.is_reviewed:
        return None
    return lambda row: review_delete(
        context, request, target, orjson.loads(versioned_json(target.kind, row)), dry_run=options.dry_run
    )


async def delete_row(
    context: ServerContext,
    target: Target,
    row: Row,
    options: DeleteOptions,
    review: Callable[[Row], Awaitable[None]] | None = None,
) -> tuple[bool, Row, Obj]:
    """
    Delete one object or set its deletionTimestamp; return whether it is deleted, its last row and its
    content.

    `review` runs before any change and raises if the deletion is denied.
    """
    kind = target.kind
    obj: Made = orjson.loads(row.value)
    metadata: Made = obj["metadata"]
    check_preconditions(target, metadata, options)
    if review is not None:
        await review(row)
    before_delete(context, target, obj)
    grace = grace_period(kind, obj, options.grace)
    terminating = "deletionTimestamp" in metadata
    changed = _set_gc_finalizers(metadata, options.policy)
    blocked = bool(metadata.get("finalizers")) or kind.bucket == "namespaces" or grace > 0
    if not blocked:
        if options.dry_run:
            return True, row, obj
        stored = await context.store.append(target.key, obj, expect=row.version, deleted=True)
        return True, stored, obj
    if terminating:
        changed |= _shorten(context, metadata, grace)
    else:
        changed = True
        metadata["deletionTimestamp"] = (context.now() + timedelta(seconds=grace)).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        if kind.bucket != "namespaces":
            metadata["deletionGracePeriodSeconds"] = grace
        if "generation" in metadata:
            metadata["generation"] += 1
        if kind.bucket == "namespaces":
            obj.setdefault("status", {})["phase"] = "Terminating"
    finalized = is_finalized(kind, obj)
    if not changed and not finalized:
        return False, row, obj
    if options.dry_run:
        return finalized, Row(target.key, row.version, encode_stored(obj)), obj
    stored = await context.store.append(target.key, obj, expect=row.version, deleted=finalized)
    mark_current(kind, stored)
    return finalized, stored, obj


def check_preconditions(target: Target, metadata: Obj, options: DeleteOptions) -> None:
    """Raise Conflict if the uid or resourceVersion precondition does not hold."""
    if options.uid and options.uid != metadata["uid"]:
        raise status_errors.precondition(
            target.kind,
            target.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if options.version and options.version != metadata["resourceVersion"]:
        raise status_errors.precondition(
            target.kind,
            target.name,
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({metadata['resourceVersion']}). The object might have been modified",
        )


def _set_gc_finalizers(metadata: Made, policy: str | None) -> bool:
    """Set the garbage collector's finalizers for the policy; return whether that changed anything."""
    before = metadata.get("finalizers") or []
    if policy is None and (FOREGROUND in before or ORPHAN in before):
        return False
    after = [one for one in before if one not in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        after.append(FOREGROUND)
    elif policy == "Orphan":
        after.append(ORPHAN)
    if after == before:
        return False
    if after:
        metadata["finalizers"] = after
    else:
        metadata.pop("finalizers", None)
    return True


def _shorten(context: ServerContext, metadata: Made, grace: int) -> bool:
    """Shorten the grace period of an object that is already terminating; it is never extended."""
    if grace >= metadata.get("deletionGracePeriodSeconds", 0):
        return False
    metadata["deletionTimestamp"] = (context.now() + timedelta(seconds=grace)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata["deletionGracePeriodSeconds"] = grace
    return True


def read_options(request: Request) -> DeleteOptions:
    """Return the options of a deletion, from its body or else from the query; raises for invalid ones."""
    given: Made = {}
    if request.body.strip():
        given = _from_body(request)
    else:
        # With a body the query is ignored, as in kube-apiserver.
        for field in ("propagationPolicy", "orphanDependents", "gracePeriodSeconds"):
            if text := request.parameter(field):
                given[field] = _from_query(request, field, text)
        given["dryRun"] = request.parameters.get("dryRun", [])
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    if policy is not None and orphan is not None:
        raise _invalid(
            "propagationPolicy",
            "FieldValueInvalid",
            f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set',
        )
    if policy is not None and policy not in _POLICIES:
        raise _invalid(
            "propagationPolicy",
            "FieldValueNotSupported",
            f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"',
        )
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    grace = given.get("gracePeriodSeconds")
    conditions = given.get("preconditions") or {}
    dry_run = check_dry_run(list(given.get("dryRun") or ()), "DeleteOptions")
    return DeleteOptions(
        policy,
        grace,
        conditions.get("uid") or "",
        conditions.get("resourceVersion") or "",
        dry_run,
        202 if orphan is False else 200,
    )


def _from_body(request: Request) -> Made:
    given = bodies.parse(request.body, request.headers.get("content-type", ""), Findings())
    named = given.pop("kind", None) or "DeleteOptions"
    api_version = given.pop("apiVersion", None) or "v1"
    if named != "DeleteOptions":
        raise BadRequest(unregistered(api_version, named))
    try:
        return decode("meta/v1.DeleteOptions", given, Findings())
    except TypeMismatch as problem:
        raise BadRequest(str(problem)) from None


def _from_query(request: Request, field: str, text: str) -> Any:
    if field == "orphanDependents":
        return request.flag(field)
    return request.number(field) if field == "gracePeriodSeconds" else text


def _invalid(field: str, reason: str, message: str) -> Exception:
    return status_errors.invalid_options("DeleteOptions", field, reason, message)
