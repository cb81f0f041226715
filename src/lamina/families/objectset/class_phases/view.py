"""Gathers the view of one ObjectSetPhase: its objects, its set, and the lineage of that set."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lamina.core.model.world import World
from lamina.core.ownership.controller_ref import owner_of
from lamina.core.ownership.owner_record import OWNER_REFERENCES, OwnerRecord
from lamina.core.phases.manifest import Manifest
from lamina.errors import SpecError
from lamina.families.objectset.api import PhaseSpec, read_phase
from lamina.families.objectset.contents import place_of, slices_of
from lamina.families.objectset.labels import (
    CLUSTER_PHASE,
    CLUSTER_SET,
    DEFAULT_CLASS,
    OWNERS,
    PHASE,
    PHASE_CLASS,
    SET,
)
from lamina.families.objectset.manifests import manifests
from lamina.families.objectset.siblings import Lineage
from lamina.families.objectset.siblings import gather as gather_lineage
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import GroupKind, Obj, Ref

_SET_OF = {PHASE.kind: SET, CLUSTER_PHASE.kind: CLUSTER_SET}


class PhaseClass(Struct, frozen=True, kw_only=True):
    """A class of ObjectSetPhases, and the cluster that has their objects; empty for the one that has the phases."""

    name: str = DEFAULT_CLASS
    cluster: str = ""

    @property
    def place(self) -> str:
        return place_of(self.name)

    @property
    def record(self) -> OwnerRecord:
        """Return where owners are recorded: an owner reference names no object of another cluster."""
        return OwnerRecord(OWNERS) if self.cluster else OWNER_REFERENCES


class View(Struct, frozen=True, kw_only=True):
    """Everything that decides about one ObjectSetPhase; `error` says what is wrong with its spec."""

    obj: Obj
    phase_class: PhaseClass
    kinds: Kinds
    """The kinds of the cluster that has the phases."""
    target_kinds: Kinds
    spec: PhaseSpec | None
    error: str = ""
    name: str = ""
    """The name of the phase in its set."""
    manifests: tuple[Manifest, ...] = ()
    parent: Obj | None = None
    """The set that controls the phase."""
    lineage: Lineage = Lineage()
    """The lineage of that set; without one, all slices of its namespace."""

    @property
    def set_kind(self) -> GroupKind:
        return _SET_OF[self.obj["kind"]]


def gather(phase_class: PhaseClass, world: World, ref: Ref) -> View | None:
    """Return the view of an ObjectSetPhase, or None where it does not exist or is of another class."""
    obj = world.get(ref) if ref.kind in _SET_OF else None
    if obj is None or meta.labels(obj).get(PHASE_CLASS) != phase_class.name:
        return None
    target = world.on(phase_class.cluster)
    parent = owner_of(world, obj, _SET_OF[ref.kind])
    spec, error, wanted = None, "", tuple[Manifest, ...]()
    name = meta.name(obj).removeprefix(f"{meta.name(parent)}-") if parent is not None else meta.name(obj)
    try:
        spec = read_phase(obj)
        wanted = tuple(
            manifests(name, spec.objects, namespace=meta.namespace(obj), kinds=target.kinds, protection="")
        )
    except SpecError as wrong:
        error = str(wrong)
    if parent is None:
        others = world.every(_SET_OF[ref.kind], ref.namespace) if meta.is_deleting(obj) else ()
        related = Lineage(slices=slices_of(world, others))
    else:
        shown = {one.key for one in wanted}
        related = gather_lineage(world, parent, shown, phase_class.place, phase_class.cluster)
    return View(
        obj=obj,
        phase_class=phase_class,
        kinds=world.kinds,
        target_kinds=target.kinds,
        spec=spec,
        error=error,
        name=name,
        manifests=wanted,
        parent=parent,
        lineage=related,
    )


def object_kind(phase_class: str, kind: GroupKind) -> str:
    """Return the key under which `by_object_kind` has the ObjectSetPhases of a class with objects of a kind."""
    return f"{phase_class}/{kind.group}/{kind.kind}"


def by_object_kind(obj: Obj) -> Iterator[str]:
    """Index an ObjectSetPhase by its class and each kind of its objects."""
    phase_class = meta.labels(obj).get(PHASE_CLASS) or ""
    inner = [one.get("object") or {} for one in (obj.get("spec") or {}).get("objects") or ()]
    for kind in sorted({meta.group_kind(one) for one in inner}):
        yield object_kind(phase_class, kind)
