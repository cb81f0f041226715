"""Gathers the view of one set: its objects as they are desired, its lineage, its slices and its ObjectSetPhases."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lamina.core.health.probe_spec import Probes, compile_probes
from lamina.core.live_check import LiveCheck
from lamina.core.model.queries import Answers
from lamina.core.model.world import World
from lamina.core.ownership.controller_ref import controls
from lamina.core.phases.live_objects import live_objects
from lamina.core.phases.manifest import Manifest, duplicates, reported
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.phase_step import PhaseStep, phase_step
from lamina.errors import SpecError
from lamina.families.objectset import lineage
from lamina.families.objectset.api import PROBES, LifecycleState, SetObject, SetSpec, read_set
from lamina.families.objectset.contents import (
    manifests_of,
    missing_slices,
    parts_of,
    place_of,
    slice_ref,
    slices_of,
)
from lamina.families.objectset.labels import API_VERSION, CONVENTIONS
from lamina.families.objectset.lineage import PHASE_OF
from lamina.families.objectset.manifests import forced_adoption
from lamina.families.objectset.reporting import read_controller_of
from lamina.families.objectset.siblings import Lineage
from lamina.families.objectset.siblings import gather as gather_lineage
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj, Ref


class PhaseView(Struct, frozen=True, kw_only=True):
    """One phase of a set, with the objects of its slices; one with a class has an ObjectSetPhase."""

    name: str
    class_: str
    objects: tuple[SetObject, ...]
    manifests: tuple[Manifest, ...]
    live: Obj | None = None
    """The ObjectSetPhase."""

    @property
    def place(self) -> str:
        return place_of(self.class_)


class View(Struct, frozen=True, kw_only=True):
    """Everything that decides about one set; `error` says what is wrong with its spec."""

    obj: Obj
    kinds: Kinds
    spec: SetSpec | None
    error: str = ""
    phases: tuple[PhaseView, ...] = ()
    lineage: Lineage = Lineage()
    missing: tuple[Ref, ...] = ()
    """Its slices that do not exist."""
    probes: Probes = Probes()
    owned_phases: tuple[Obj, ...] = ()
    """ObjectSetPhases that the set controls, whatever their names."""

    @property
    def is_paused(self) -> bool:
        return self.spec is not None and self.spec.lifecycle_state is LifecycleState.PAUSED

    @property
    def is_archived(self) -> bool:
        """Say whether the set is to be archived."""
        return self.spec is not None and self.spec.lifecycle_state is LifecycleState.ARCHIVED

    @property
    def in_process(self) -> tuple[Manifest, ...]:
        """Return the objects of the phases without a class."""
        return tuple(one for phase in self.phases if not phase.class_ for one in phase.manifests)


def gather(world: World, ref: Ref) -> View | None:
    """Return the view of a set, or None where it does not exist."""
    obj = world.get(ref) if ref.kind in PHASE_OF else None
    if obj is None:
        return None
    slices = slices_of(world, (obj,))
    spec, error, phases = None, "", tuple[PhaseView, ...]()
    try:
        spec = read_set(obj)
        phases = tuple(
            PhaseView(
                name=one.name,
                class_=one.class_,
                objects=tuple(each for _, those in parts_of(one, slices) for each in those),
                manifests=manifests_of(obj, spec, one, slices, world.kinds),
                live=world.get(phase_ref(obj, one.name)) if one.class_ else None,
            )
            for one in spec.phases
        )
    except SpecError as wrong:
        error = str(wrong)
    followed = {one.key for phase in phases if not phase.class_ for one in phase.manifests}
    related = gather_lineage(world, obj, followed)
    missing = missing_slices(spec, slices) if spec is not None else ()
    if spec is None or error or missing:
        phases = (*phases, _unlisted(world, obj, phases, related))
    probes = Probes()
    try:
        probes = compile_probes(spec.availability_probes, PROBES) if spec is not None else probes
    except SpecError as wrong:
        error = f"{wrong}; probes of a set are immutable: correct them in a new revision"
    uid = meta.uid(obj)
    return View(
        obj=obj,
        kinds=world.kinds,
        spec=spec,
        error=error,
        probes=probes,
        phases=phases,
        lineage=related,
        missing=tuple(slice_ref(obj, one) for one in missing),
        owned_phases=tuple(one for one in world.owned_by(uid, PHASE_OF[ref.kind]) if controls(uid, one)),
    )


def _unlisted(world: World, obj: Obj, phases: Sequence[PhaseView], related: Lineage) -> PhaseView:
    """Return the objects that a set or a newer one reports as its own, and that no readable part of its spec contains."""
    known = {one.key for phase in phases for one in phase.manifests}
    known |= {key for phase in phases if phase.live is not None for key in read_controller_of(phase.live)}
    # What was handed over still refers to the set.
    listed = dict.fromkeys((*read_controller_of(obj), *sorted(related.siblings.taken)))
    left = tuple(reported(key, world.kinds) for key in listed if key not in known)
    return PhaseView(name="", class_="", objects=(), manifests=left)


def owner_of(view: View) -> PhaseOwner:
    """Return a set as the owner of its objects."""
    return PhaseOwner(
        obj=view.obj,
        revision=lineage.number(view.obj),
        conventions=CONVENTIONS,
        adoption=forced_adoption(view.obj),
        checks=(LiveCheck(cached=view.obj),),
        siblings=view.lineage.siblings,
        probes=view.probes,
        is_paused=view.is_paused,
        confines=True,
    )


def observed(view: View, answers: Answers) -> tuple[PhaseStep, ...]:
    """Return what is known of the objects of each phase, without a decision about a write."""
    owner, lives = owner_of(view), live_objects(view.in_process, answers)
    steps: list[PhaseStep] = []
    for phase in view.phases:
        if phase.class_:
            is_own = phase.live is not None and controls(owner.uid, phase.live)
            keys = tuple(read_controller_of(phase.live)) if phase.live is not None and is_own else ()
            steps.append(PhaseStep(name=phase.name, controlled=keys))
        else:
            steps.append(phase_step(owner, phase.name, phase.manifests, lives, answers, is_reached=False))
    return tuple(steps)


def what_is_invalid(view: View) -> str:
    """Return what is wrong with a set as a whole, naming the field; empty where nothing is."""
    if view.error or view.spec is None:
        return view.error
    names = [one.name for one in view.phases]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [f'spec.phases: there are several phases of the name "{name}"; rename one' for name in twice]
    problems += [
        f'Phase "{one.phase}", {one.key}: duplicate object; remove it from one of the phases'
        for one in duplicates(phase.manifests for phase in view.phases)
    ]
    problems += [
        f'Phase "{phase.name}", {ref}: is named in spec.phases and does not exist; create it'
        for phase in view.spec.phases
        for ref in (slice_ref(view.obj, name) for name in phase.slices)
        if ref in view.missing
    ]
    return ", ".join(problems)


def phase_ref(obj: Obj, phase: str) -> Ref:
    """Return the reference of the ObjectSetPhase of a phase of a set."""
    kind = PHASE_OF[obj["kind"]].kind
    return Ref(API_VERSION, kind, meta.namespace(obj), f"{meta.name(obj)}-{phase}")
