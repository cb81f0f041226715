"""Replace an object, or what one endpoint shows of it."""

from __future__ import annotations

import orjson

from lamina.objects.types import Made, Obj
from lamina.server import words
from lamina.server.admission import admit_namespace, admit_update, is_same, place, read_body
from lamina.server.encoding import encode_stored
from lamina.server.kind import Kind
from lamina.server.options import WriteOptions, write_options
from lamina.server.plane import Plane, Target
from lamina.server.preconditions import check_uid, check_version
from lamina.server.rendering import object_answer, remember, shown
from lamina.server.request import Answer, Request
from lamina.server.specials import before_update
from lamina.server.store import Row
from lamina.server.verbs.create import store_new

_MADE_BY_UPDATE = frozenset(
    (
        *("endpoints", "events", "limitranges", "services", "leases.coordination.k8s.io"),
        *("runtimeclasses.node.k8s.io", "roles.rbac.authorization.k8s.io"),
        *("rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io"),
        "clusterrolebindings.rbac.authorization.k8s.io",
    )
)
"""Kinds that a PUT creates where there is none; all others answer 404."""


async def update(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer 200 with the object as it now is; an absent one is a 404, or for a few kinds created."""
    options = write_options(request, "UpdateOptions")
    new = read_body(request, target, options)
    place(target, new)
    metadata = new["metadata"]
    if not metadata.get("name"):
        raise words.nameless(target.name)
    if metadata["name"] != target.name:
        raise words.misnamed(metadata["name"], target.name)
    row = plane.store.newest(target.key)
    if row is None:
        if target.subresource or target.kind.bucket not in _MADE_BY_UPDATE:
            raise words.not_found(target.kind, target.name)
        admit_namespace(plane, target, target.name)
        metadata.pop("resourceVersion", None)
        return await store_new(plane, request, target, new, options)
    old = orjson.loads(shown(target.kind, row))
    check_uid(target, metadata.get("uid", ""), old["metadata"]["uid"])
    check_version(target, metadata.get("resourceVersion", ""), str(row.version), required=True)
    new = await admit_update(plane, request, target, new, old, options)
    row = await put(plane, target, new, old, row, options)
    return object_answer(request, target.kind, shown(target.kind, row), plane.now())


async def put(plane: Plane, target: Target, new: Made, old: Obj, row: Row, options: WriteOptions) -> Row:
    """
    Store an admitted change and return its row; the old one where nothing changed or this is a dry run's end.

    An object on its way out goes with its last finalizer.
    """
    kind = target.kind
    before_update(plane, target, new, old)
    if is_same(new, old):
        await plane.store.settled(row)
        return row
    stored = kind.shape.store(new) if kind.converts or kind.custom else new
    ends = is_released(kind, new)
    if ends and not options.dry_run:
        # What ends is told as it last was; whoever ended it is shown what they wrote.
        await plane.store.append(target.key, orjson.loads(row.value), expect=row.version, deleted=True)
    if ends or options.dry_run:
        return Row(target.key, row.version, encode_stored(stored))
    written = await plane.store.append(target.key, stored, expect=row.version)
    remember(kind, written)
    return written


def is_released(kind: Kind, obj: Obj) -> bool:
    """Say whether an object was only waiting for finalizers, and the last of them is gone."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        # A namespace has finalizers of its own, in its spec, and outlives those of its metadata.
        and not (kind.bucket == "namespaces" and (obj.get("spec") or {}).get("finalizers"))
    )
