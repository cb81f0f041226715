"""
End an object, or ask for its end.

An object without finalizers is gone at once. One with finalizers, its own or
those that foreground and orphan deletion add, is marked and stays until the
last of them is removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from lamina.errors import BadRequest, Conflict, NotFound
from lamina.objects.types import Made, Obj
from lamina.server import body as bodies
from lamina.server import words
from lamina.server.builtin.catalogue import SHOWN_WHEN_DELETED
from lamina.server.builtin.decode import Undecodable, decode
from lamina.server.declared import unregistered
from lamina.server.encoding import encode_stored
from lamina.server.kind import Findings
from lamina.server.options import check_dry_run
from lamina.server.plane import Plane, Target
from lamina.server.rendering import list_answer, object_answer, remember, shown
from lamina.server.request import Answer, Request, json_answer
from lamina.server.reviewing import review_end
from lamina.server.selection import Selection
from lamina.server.specials import before_delete, grace_of
from lamina.server.store import Row
from lamina.server.verbs.list import read
from lamina.server.verbs.update import is_released

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_POLICIES = ("Background", "Foreground", "Orphan")
_ATTEMPTS = 8


class DeleteOptions(NamedTuple):
    """How to delete: which dependents go too, and which object it must still be."""

    policy: str | None
    grace: int | None
    uid: str
    version: str
    dry_run: bool
    status: int = 200
    """What is answered where the object is not gone yet."""


async def delete(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with a Status when the object is gone, with the object when something holds it."""
    options = read_options(request)
    row = plane.store.newest(target.key)
    if row is None:
        raise words.not_found(target.kind, target.name)
    gone, row, obj = await end(plane, target, row, options, _asking(plane, request, target, options))
    if not gone:
        return object_answer(request, target.kind, shown(target.kind, row), plane.now(), options.status)
    if target.kind.definition in SHOWN_WHEN_DELETED:
        return object_answer(request, target.kind, shown(target.kind, row), plane.now())
    details = {**words.details(target.kind, target.name), "uid": obj["metadata"]["uid"]}
    return json_answer(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    )


async def delete_collection(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with the list of what was there to delete; each object goes as if it had been deleted alone."""
    options = read_options(request)
    if request.parameter("watch"):
        raise BadRequest("watch is not a parameter of a deletion")
    page = await read(plane, request, target, Selection(target.kind, request))
    for one in page.rows:
        spot = target._replace(namespace=one.key.namespace, name=one.key.name)
        await _end_one(plane, request, spot, options)
    metadata: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
    found = [shown(target.kind, row) for row in page.rows]
    return list_answer(request, target.kind, found, metadata, plane.now())


async def _end_one(plane: Plane, request: Request, spot: Target, options: DeleteOptions) -> None:
    """End one of a collection, as it is by then: somebody may change it while webhooks are asked."""
    # Whoever deletes a collection names nothing in it.
    asking = _asking(plane, request, spot._replace(name=""), options)
    for _ in range(_ATTEMPTS):
        row = plane.store.newest(spot.key)
        if row is None:
            return
        try:
            await end(plane, spot, row, options, asking)
            return
        except (Conflict, NotFound):
            now = plane.store.newest(spot.key)
            if now is not None and now.version == row.version:
                raise
    raise words.conflict(spot.kind, spot.name)


def _asking(
    plane: Plane, request: Request, target: Target, options: DeleteOptions
) -> Callable[[Row], Awaitable[None]] | None:
    """Return how policies and webhooks are asked about a deletion; None where there are none."""
    if not plane.is_reviewed:
        return None
    return lambda row: review_end(
        plane, request, target, orjson.loads(shown(target.kind, row)), dry_run=options.dry_run
    )


async def end(
    plane: Plane,
    target: Target,
    row: Row,
    options: DeleteOptions,
    ask: Callable[[Row], Awaitable[None]] | None = None,
) -> tuple[bool, Row, Obj]:
    """
    Delete or mark one object; return whether it is gone, its last row, and its content.

    `ask` is asked before anything is done, and raises where somebody minds.
    """
    kind = target.kind
    obj: Made = orjson.loads(row.value)
    metadata: Made = obj["metadata"]
    check(target, metadata, options)
    if ask is not None:
        await ask(row)
    before_delete(plane, target, obj)
    grace = grace_of(kind, obj, options.grace)
    marked = "deletionTimestamp" in metadata
    changed = _add_finalizers(metadata, options.policy)
    held = bool(metadata.get("finalizers")) or kind.bucket == "namespaces" or grace > 0
    if not held:
        if options.dry_run:
            return True, row, obj
        stored = await plane.store.append(target.key, obj, expect=row.version, deleted=True)
        return True, stored, obj
    if marked:
        changed |= _shorten(plane, metadata, grace)
    else:
        changed = True
        metadata["deletionTimestamp"] = (plane.now() + timedelta(seconds=grace)).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        if kind.bucket != "namespaces":
            metadata["deletionGracePeriodSeconds"] = grace
        if "generation" in metadata:
            metadata["generation"] += 1
        if kind.bucket == "namespaces":
            obj.setdefault("status", {})["phase"] = "Terminating"
    released = is_released(kind, obj)
    if not changed and not released:
        return False, row, obj
    if options.dry_run:
        return released, Row(target.key, row.version, encode_stored(obj)), obj
    stored = await plane.store.append(target.key, obj, expect=row.version, deleted=released)
    remember(kind, stored)
    return released, stored, obj


def check(target: Target, metadata: Obj, options: DeleteOptions) -> None:
    """Refuse to delete an object that is not the one meant."""
    if options.uid and options.uid != metadata["uid"]:
        raise words.precondition(
            target.kind,
            target.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if options.version and options.version != metadata["resourceVersion"]:
        raise words.precondition(
            target.kind,
            target.name,
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({metadata['resourceVersion']}). The object might have been modified",
        )


def _add_finalizers(metadata: Made, policy: str | None) -> bool:
    """Bring the garbage collector's finalizers in line with the policy; say whether that changed anything."""
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


def _shorten(plane: Plane, metadata: Made, grace: int) -> bool:
    """Let a second deletion bring the end nearer, never further away."""
    if grace >= metadata.get("deletionGracePeriodSeconds", 0):
        return False
    metadata["deletionTimestamp"] = (plane.now() + timedelta(seconds=grace)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata["deletionGracePeriodSeconds"] = grace
    return True


def read_options(request: Request) -> DeleteOptions:
    """Return the options of a deletion, from its body or else from the query; raises for what makes no sense."""
    given: Made = {}
    if request.body.strip():
        given = _from_body(request)
    else:
        # A body says everything: a query beside one is not looked at, in the real server either.
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
    except Undecodable as problem:
        raise BadRequest(str(problem)) from None


def _from_query(request: Request, field: str, text: str) -> Any:
    if field == "orphanDependents":
        return request.flag(field)
    return request.number(field) if field == "gracePeriodSeconds" else text


def _invalid(field: str, reason: str, message: str) -> Exception:
    return words.invalid_options("DeleteOptions", field, reason, message)
