"""The update verb, for objects and their subresources."""

from __future__ import annotations

import orjson

from lamina.objects.types import Made, Obj
from lamina.server import status_errors
from lamina.server.admission.kind_hooks import before_update
from lamina.server.admission.options import WriteOptions, write_options
from lamina.server.admission.pipeline import (
    admit_update,
    check_namespace,
    is_unchanged,
    read_body,
    set_namespace,
)
from lamina.server.admission.preconditions import check_uid, check_version
from lamina.server.codec.response import mark_current, object_response, versioned_json
from lamina.server.context import ServerContext
from lamina.server.http.request import Request, Response
from lamina.server.kinds.kind import Kind
from lamina.server.kinds.target import Target
from lamina.server.storage.encoding import encode_stored
from lamina.server.storage.store import Row
from lamina.server.verbs.create import store_new

_CREATED_BY_UPDATE = frozenset(
    (
        *("endpoints", "events", "limitranges", "services", "leases.coordination.k8s.io"),
        *("runtimeclasses.node.k8s.io", "roles.rbac.authorization.k8s.io"),
        *("rolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io"),
        "clusterrolebindings.rbac.authorization.k8s.io",
    )
)
"""Kinds that a PUT creates if the object does not exist; for all others it is a 404."""


async def update(context: ServerContext, request: Request, target: Target) -> Response:
    """Return 200 with the updated object; one that does not exist is a 404, or created for a few kinds."""
    options = write_options(request, "UpdateOptions")
    new = read_body(request, target, options)
    set_namespace(target, new)
    metadata = new["metadata"]
    if not metadata.get("name"):
        raise status_errors.missing_name(target.name)
    if metadata["name"] != target.name:
        raise status_errors.name_mismatch(metadata["name"], target.name)
    row = context.store.newest(target.key)
    if row is None:
        if target.subresource or target.kind.bucket not in _CREATED_BY_UPDATE:
            raise status_errors.not_found(target.kind, target.name)
        check_namespace(context, target, target.name)
        metadata.pop("resourceVersion", None)
        return await store_new(context, request, target, new, options)
    old = orjson.loads(versioned_json(target.kind, row))
    check_uid(target, metadata.get("uid", ""), old["metadata"]["uid"])
    check_version(target, metadata.get("resourceVersion", ""), str(row.version), required=True)
    new = await admit_update(context, request, target, new, old, options)
    row = await store_update(context, target, new, old, row, options)
    return object_response(request, target.kind, versioned_json(target.kind, row), context.now())


async def store_update(
    context: ServerContext, target: Target, new: Made, old: Obj, row: Row, options: WriteOptions
) -> Row:
    """
    Store an admitted change and return its row; the old row if nothing changed.

    A terminating object is deleted with its last finalizer.
    """
    kind = target.kind
    before_update(context, target, new, old)
    if is_unchanged(new, old):
        await context.store.wait_committed(row)
        return row
    stored = kind.shape.store(new) if kind.converts or kind.custom else new
    deletes = is_finalized(kind, new)
    if deletes and not options.dry_run:
        # The DELETED event shows the object before the write; the writer's response shows it after.
        await context.store.append(target.key, orjson.loads(row.value), expect=row.version, deleted=True)
    if deletes or options.dry_run:
        return Row(target.key, row.version, encode_stored(stored))
    written = await context.store.append(target.key, stored, expect=row.version)
    mark_current(kind, written)
    return written


def is_finalized(kind: Kind, obj: Obj) -> bool:
    """Return whether an object is terminating and nothing keeps it any longer."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        # A namespace also has finalizers in its spec.
        and not (kind.bucket == "namespaces" and (obj.get("spec") or {}).get("finalizers"))
    )
