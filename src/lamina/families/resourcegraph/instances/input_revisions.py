"""
The input revisions of an instance: numbered pairs of its spec and a revision of its definition.

A pair that differs from the newest one gets the next number. A number is issued once: it
is higher than that of every input revision that a live list finds, and of the one that the
status names; where all are lost, it is higher than those that children are stamped with.
Pairs are compared as the schema of their revision reads the spec, so that a default which
a newer schema adds makes no new input revision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Create, Delete, Patch, set_status
from lamina.families.resourcegraph.definitions.retention import is_kept
from lamina.families.resourcegraph.hashes import label_value, revision_name
from lamina.families.resourcegraph.labels import (
    API_VERSION,
    INPUT_REVISION,
    INPUT_REVISION_LABEL,
    INSTANCE_NAME,
    RGD_REVISION_LABEL,
)
from lamina.objects import meta
from lamina.objects.digest import canonical
from lamina.objects.types import Made, Obj

PENDING, IN_PROGRESS, BLOCKED, COMPLETED, FAILED = "Pending", "InProgress", "Blocked", "Completed", "Failed"
SUPERSEDED = "Superseded"
_INFIX = "input-rev"
_MOST_INLINE = 256 << 10
"""How many bytes of specs are kept in the status of an instance."""


class InputRevision(Struct, frozen=True, kw_only=True):
    """One input revision, as an object or as an entry of the instance's status."""

    number: int
    revision: int
    """The revision of the definition."""
    revision_hash: str = ""
    """The hash of the content of that revision; empty where it was not recorded."""
    spec: Obj | None
    """The spec of the instance as it was stored; None where it is no longer kept."""
    hash: str = ""
    status: str = PENDING
    created: str = ""
    obj: Obj | None = None


# Reading


def from_objects(objects: Iterable[Obj]) -> tuple[InputRevision, ...]:
    """Return the input revisions that are stored as objects, oldest first."""
    return _sorted(_from_object(one) for one in objects)


def _from_object(obj: Obj) -> InputRevision:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return InputRevision(
        number=spec.get("inputRevision") or 0,
        revision=spec.get("rgdRevision") or 0,
        revision_hash=(spec.get("rgdRevisionRef") or {}).get("specHash") or "",
        spec=spec.get("instanceSpec") or {},
        hash=status.get("specHash") or "",
        status=status.get("propagationStatus") or PENDING,
        created=meta.metadata(obj).get("creationTimestamp") or "",
        obj=obj,
    )


def from_history(history: object) -> tuple[InputRevision, ...]:
    """Return the input revisions that the status of an instance lists, oldest first."""
    if not isinstance(history, list):
        return ()
    return _sorted(
        InputRevision(
            number=one.get("revision") or 0,
            revision=one.get("rgdRevision") or 0,
            revision_hash=one.get("rgdSpecHash") or "",
            spec=one.get("instanceSpec"),
            hash=one.get("specHash") or "",
            status=one.get("status") or PENDING,
            created=one.get("createdAt") or "",
        )
        for one in history
        if isinstance(one, dict)
    )


def _sorted(found: Iterable[InputRevision]) -> tuple[InputRevision, ...]:
    return tuple(sorted((one for one in found if one.number and one.revision), key=lambda one: one.number))


def numbered(inputs: Sequence[InputRevision], number: int) -> InputRevision | None:
    return next((one for one in inputs if one.number == number), None)


def of_instance(owner: Obj, objects: Iterable[Obj]) -> tuple[str, ...]:
    """Return the uids of an instance's input revisions, given the metadata of objects."""
    return tuple(meta.uid(one) for one in objects if meta.is_controlled_by(one, meta.uid(owner)))


# Writing


def creation(instance: Obj, namespace: str, name: str, made: InputRevision, revision: str) -> Create:
    """Return the creation of an input revision; `revision` is the name of that of the definition."""
    obj: Made = {
        "apiVersion": API_VERSION,
        "kind": INPUT_REVISION.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                INSTANCE_NAME: label_value(meta.name(instance)),
                INPUT_REVISION_LABEL: str(made.number),
                RGD_REVISION_LABEL: str(made.revision),
            },
            "ownerReferences": [meta.owner_ref(instance, controller=True)],
        },
        "spec": {
            "inputRevision": made.number,
            "rgdRevision": made.revision,
            "rgdRevisionRef": {"name": revision, "specHash": made.revision_hash},
            "instanceSpec": made.spec or {},
        },
    }
    return Create(obj=obj)


def names(instance: Obj, plural: str, number: int) -> tuple[str, str]:
    """
    Return the names that an input revision may have, the first one first.

    Two kinds may have instances of one name in a namespace: then the plural of the kind is part of the name.
    """
    name = meta.name(instance)
    return revision_name(name, _INFIX, number), revision_name(f"{name}-{plural}", _INFIX, number)


def report(one: InputRevision, *, status: str, hash: str, at: int, total: int) -> Patch | None:
    """Return the write of the status of the newest input revision; nothing where it is as it should be."""
    if one.obj is None:
        return None
    return set_status(
        one.obj,
        {
            "specHash": hash,
            "createdAt": one.created,
            "propagationStatus": status,
            "resourcesAtRevision": at,
            "totalResources": total,
            "superseded": False,
        },
    )


def supersede(inputs: Iterable[InputRevision]) -> Iterator[Patch]:
    """Yield what marks older input revisions as superseded."""
    for one in inputs:
        if one.obj is None:
            continue
        status = one.obj.get("status") or {}
        if not status.get("superseded"):
            patch = set_status(one.obj, {**status, "createdAt": one.created, "superseded": True})
            if patch is not None:
                yield patch


def history(
    inputs: Sequence[InputRevision], live: Mapping[int, InputRevision], *, inline: bool
) -> list[Made]:
    """
    Return the history of an instance as its status lists it, newest first.

    `live` are those that are not superseded, as they are to be shown, by number. With `inline` the
    specs are part of it, as many as fit.
    """
    every = {**{one.number: replace(one, status=SUPERSEDED) for one in inputs}, **live}
    found: list[Made] = []
    left = _MOST_INLINE
    for number in sorted(every, reverse=True):
        one = every[number]
        made: Made = {
            "revision": one.number,
            "rgdRevision": one.revision,
            "createdAt": one.created,
            "status": one.status,
            "specHash": one.hash,
        }
        if inline and one.spec is not None:
            left -= len(canonical(one.spec))
            if left < 0 and found:
                break
            made |= {"instanceSpec": one.spec, "rgdSpecHash": one.revision_hash}
        found.append({name: value for name, value in made.items() if value not in ("", None)})
    return found


def prunable(inputs: Sequence[InputRevision], kept: Collection[int], limit: int) -> Iterator[InputRevision]:
    """Yield the input revisions that are further than the limit behind the newest, and are not kept."""
    newest = inputs[-1].number if inputs else 0
    for one in inputs:
        if not is_kept(one.number, newest, limit, kept):
            yield one


def deletion(one: InputRevision) -> Delete | None:
    """Return the deletion of an input revision that is an object."""
    if one.obj is None or meta.is_deleting(one.obj):
        return None
    return Delete(ref=meta.ref(one.obj), uid=meta.uid(one.obj))
