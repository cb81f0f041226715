"""
Revisions stored as ControllerRevision objects of apps/v1.

The object is named after its owner and the hash of its content, and carries the
number in `revision`. A name that is taken by other content is a collision: the
owner counts it and hashes again with the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lamina.core.model.plan import Create, Patch, change
from lamina.core.rollout.history import Lookup
from lamina.core.rollout.revision import Revision
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj, OwnerRef, Ref

CONTROLLER_REVISION = GroupKind("apps", "ControllerRevision")
CONTROLLER_REVISION_VERSION = "apps/v1"
_LONGEST_PREFIX = 223


def name_prefix(owner: str) -> str:
    """Return what the names of an owner's revisions begin with: its own name, cut so that every hash fits."""
    return owner.encode()[:_LONGEST_PREFIX].decode(errors="ignore")


def revision_name(owner: str, hash: str) -> str:
    return f"{name_prefix(owner)}-{hash}"


def revision_ref(namespace: str, name: str) -> Ref:
    return Ref(CONTROLLER_REVISION_VERSION, CONTROLLER_REVISION.kind, namespace, name)


def read_revision(obj: Obj, snapshot: Obj, *, hash_label: str, digest: str = "") -> Revision:
    """Return the revision that an object stores; without the hash label, the hash is the end of its name."""
    number, name = obj.get("revision"), meta.name(obj)
    return Revision(
        number=number if isinstance(number, int) else 0,
        name=name,
        snapshot=snapshot,
        hash=meta.labels(obj).get(hash_label) or name.rpartition("-")[2],
        digest=digest,
        created=meta.metadata(obj).get("creationTimestamp") or "",
        obj=obj,
    )


def create_revision(
    revision: Revision,
    owner: Obj,
    reference: OwnerRef,
    *,
    data: Obj,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> Create:
    """Return the creation of the object that stores a revision of an owner."""
    metadata: Made = {
        "name": revision.name,
        "namespace": meta.namespace(owner),
        "labels": dict(labels),
        "ownerReferences": [reference],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return Create(
        obj={
            "apiVersion": CONTROLLER_REVISION_VERSION,
            "kind": CONTROLLER_REVISION.kind,
            "metadata": metadata,
            "data": data,
            "revision": revision.number,
        }
    )


def adopt_and_renumber(found: Lookup, reference: OwnerRef) -> Iterator[Patch]:
    """Yield what adopts stored revisions without a controller and writes the new number of the wanted one."""
    for one in (*found.others, *found.duplicates, *((found.stored,) if found.stored is not None else ())):
        if one.obj is None:
            continue
        patch: Made = {}
        if meta.controller_of(one.obj) is None:
            patch["metadata"] = {"ownerReferences": [*meta.owner_refs(one.obj), reference]}
        if one is found.stored and found.is_renumbered:
            patch["revision"] = found.wanted.number
        if patch:
            yield change(one.obj, patch)
