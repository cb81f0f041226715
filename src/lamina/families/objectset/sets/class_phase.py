"""
A phase with a class, as its set sees it: an ObjectSetPhase that another controller serves.

The set creates it, pauses it and deletes it; what becomes of its objects is read from its status.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import to_builtins

from lamina.core.model.finalizers import is_held
from lamina.core.model.plan import Action, Create, change
from lamina.core.model.queries import Answers
from lamina.core.phases.delegated_phase import DelegatedPhase, confirmed, delegated_step
from lamina.core.phases.owner import PhaseOwner
from lamina.core.phases.phase_step import PhaseStep
from lamina.families.objectset.api import SetObject
from lamina.families.objectset.contents import place_of
from lamina.families.objectset.labels import DEFAULT_CLASS, PHASE_CLASS, TEARDOWN
from lamina.families.objectset.reporting import read_controller_of
from lamina.families.objectset.sets.view import PhaseView, View, phase_ref
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj


def class_phase_step(
    view: View, owner: PhaseOwner, phase: PhaseView, answers: Answers, now: datetime, *, is_reached: bool
) -> PhaseStep:
    """Return the next step of a phase with a class."""
    found = delegated(view, phase)
    create = Create(obj=_made(view, owner, phase)) if phase.live is None else None
    pause = _pause(owner, phase.live) if phase.live is not None else None
    step = delegated_step(owner, found, now, answers, create=create, change=pause, is_reached=is_reached)
    return confirmed(owner, found, step, answers) if owner.is_paused else step


def delegated(view: View, phase: PhaseView) -> DelegatedPhase:
    """Return a phase with a class as its ObjectSetPhase reports it."""
    class_, live = phase.class_, phase.live
    unserved = (
        f'no controller serves the class "{class_}" of it in spec.phases; '
        "run one, or correct the class in a new revision"
    )
    return DelegatedPhase(
        name=phase.name,
        ref=phase_ref(view.obj, phase.name),
        wanted=tuple(one.key for one in phase.manifests),
        live=live,
        controlled=tuple(read_controller_of(live)) if live is not None else (),
        is_taken_over=is_taken_over(view, phase),
        is_replaced=all(one.key in view.lineage.replaced for one in phase.manifests),
        unreported=f'the controller of class "{class_}" has not reported on the phase yet; check that one runs',
        unserved=unserved if class_ != DEFAULT_CLASS else "",
    )


def is_taken_over(view: View, phase: PhaseView) -> bool:
    """Say whether the status of a newer set lists an object of a phase with a class, which this set does not follow."""
    return any((one.key, place_of(phase.class_)) in view.lineage.taken for one in phase.manifests)


def _pause(owner: PhaseOwner, live: Obj) -> Action | None:
    if bool((live.get("spec") or {}).get("paused")) == owner.is_paused:
        return None
    return change(live, {"spec": {"paused": owner.is_paused}})


def _made(view: View, owner: PhaseOwner, phase: PhaseView) -> Made:
    ref = phase_ref(view.obj, phase.name)
    assert view.spec is not None, "a set whose spec cannot be read has no phases"
    stated = view.obj.get("spec") or {}
    metadata: Made = {
        "name": ref.name,
        **({"namespace": ref.namespace} if ref.namespace else {}),
        "labels": {**meta.labels(view.obj), PHASE_CLASS: phase.class_},
        "annotations": dict(meta.annotations(view.obj)),
        "ownerReferences": [meta.owner_ref(view.obj, controller=True, blocks=True)],
    }
    spec: Made = {
        "revision": owner.revision,
        "objects": [_object(one, view.spec.collision_protection) for one in phase.objects],
    }
    for name in ("previous", "availabilityProbes"):
        if stated.get(name):
            spec[name] = stated[name]
    return {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec}


def _object(one: SetObject, protection: str) -> Made:
    stated = {
        "collisionProtection": one.collision_protection or protection,
        "conditionMappings": [to_builtins(each) for each in one.condition_mappings],
    }
    return {"object": one.object, **{name: value for name, value in stated.items() if value}}


def is_unserved(live: Obj) -> bool:
    """Say whether no controller ever served an ObjectSetPhase: it has no status, and is not held."""
    return not conditions.of(live) and not is_held(live, TEARDOWN)
