"""The least rights of the controllers of this family: their own kinds, and the kinds of the objects in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lamina.core.rbac import Rights, plural
from lamina.families.objectset.labels import DEPLOYMENTS, GROUP, METRICS, PHASES, SETS, SLICES, TEARDOWN
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj

_READ = ("get", "list", "watch")
_MANAGE = (*_READ, "create", "patch", "delete")


def rights(objects: Iterable[Obj] = ()) -> Rights:
    """Return the rights that these deployments, sets, phases and slices need."""
    needed = Rights()
    for kind in (*SETS, *DEPLOYMENTS, *PHASES):
        needed.add(GROUP, (plural(kind.kind),), _MANAGE)
        needed.add(GROUP, (f"{plural(kind.kind)}/status",), ("patch",))
        # Owner references to them block their deletion.
        needed.add(GROUP, (f"{plural(kind.kind)}/finalizers",), ("update",))
    needed.add(GROUP, [plural(kind.kind) for kind in SLICES], (*_READ, "patch"))
    needed.add("", ("events",), ("create", "get", "patch"))
    contained = sorted({found for obj in objects for found in _kinds(obj)})
    for group, name in contained:
        needed.add(group, (plural(name),), _MANAGE)
    if not contained:
        needed.note("the objects of ObjectSets: give their manifests to list their kinds")
    return needed


def is_finalizer(text: str) -> bool:
    """Say whether a finalizer is one that the controllers set, or one of upstream that they remove."""
    return text in (TEARDOWN, METRICS)


def edits(objects: Iterable[Obj] = ()) -> Rights:
    """Return the rights to edit deployments, and sets that have none."""
    needed = Rights()
    for kind in (*SETS, *DEPLOYMENTS):
        needed.add(GROUP, (plural(kind.kind),), ("update", "patch"))
    return needed


def _kinds(obj: Obj) -> Iterator[GroupKind]:
    spec = obj.get("spec") or {}
    spec = (spec.get("template") or {}).get("spec") or spec
    parts = [phase.get("objects") for phase in spec.get("phases") or ()]
    for part in (*parts, spec.get("objects"), obj.get("objects")):
        inner = [one.get("object") or {} for one in part or ()]
        yield from (meta.group_kind(one) for one in inner if one.get("kind"))
