"""What a CompositeController or DecoratorController says of itself: whether it runs, and if not, why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lamina.core.events import normal, warning
from lamina.core.plan import Action, Emit, Plan, Stage, set_status
from lamina.core.questions import Answers
from lamina.errors import SpecError
from lamina.families.metacontroller.names import COMPOSITE, MANAGER
from lamina.families.metacontroller.setup import NoStatus, Setup
from lamina.objects import conditions, meta
from lamina.objects.types import Made, Obj

_READY, _DISCOVERED = "Ready", "ResourcesDiscovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One controller object, and what came of setting it up."""

    obj: Obj
    setup: Setup | SpecError


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Say whether it runs, once for each spec."""
    obj = view.obj
    if meta.is_deleting(obj):
        return Plan()
    status = _status(view, now)
    patch = set_status(obj, status)
    if patch is None:
        return Plan(because=_said(view))
    events = tuple(Emit(event=event) for event in _events(view, now))
    told: tuple[Action, ...] = (*events,)
    return Plan(
        stages=(Stage("say so", (patch,)), Stage("tell", told)) if told else (Stage("say so", (patch,)),),
        because=_said(view),
    )


def _said(view: View) -> str:
    if isinstance(view.setup, SpecError):
        return f"Cannot create new controller: {view.setup}"
    parents = ", ".join(rule.kind.plural for rule in view.setup.parents.values())
    children = ", ".join(rule.kind.plural for rule in view.setup.children.values()) or "no children"
    return f"watching {parents}, managing {children}"


def _status(view: View, now: datetime) -> Made:
    obj, refused = view.obj, view.setup if isinstance(view.setup, SpecError) else None
    generation = meta.generation(obj)
    old = (obj.get("status") or {}).get("conditions") or ()
    unserved = refused is not None and "discovery:" in str(refused)
    ready = conditions.with_condition(
        old,
        _READY,
        "False" if refused is not None else "True",
        now=now,
        reason=_reason(refused),
        message=_said(view),
        generation=generation,
    )
    both = conditions.with_condition(
        ready,
        _DISCOVERED,
        "False" if unserved else "Unknown" if refused is not None else "True",
        now=now,
        reason="NotServed" if unserved else "NotLookedFor" if refused is not None else "Served",
        message=str(refused) if refused is not None else "every kind it names is served",
        generation=generation,
    )
    return {**(obj.get("status") or {}), "conditions": both, "observedGeneration": generation}


def _reason(refused: SpecError | None) -> str:
    if refused is None:
        return "Started"
    return "SyncError" if isinstance(refused, NoStatus) else "CreateError"


def _events(view: View, now: datetime) -> list[Made]:
    """Return what is told when this is said for the first time."""
    obj = view.obj
    name = meta.name(obj)
    which = "CompositeController" if obj["kind"] == COMPOSITE.kind else "DecoratorController"
    old = obj.get("status") or {}
    was = conditions.find(old.get("conditions") or (), _READY)
    occasion = str(meta.generation(obj))
    told: list[Made] = []
    if was is not None and was["status"] == "True" and old.get("observedGeneration") != meta.generation(obj):
        for reason in ("Stopping", "Stopped"):
            told.append(_told(obj, reason, f"{reason} controller: {name}", now, occasion))
    if isinstance(view.setup, SpecError):
        told.append(warning(obj, _reason(view.setup), _said(view), by=MANAGER, now=now, occasion=occasion))
    elif was is None or was["status"] != "True" or old.get("observedGeneration") != meta.generation(obj):
        for reason in ("Starting", "Started"):
            told.append(_told(obj, reason, f"{reason} controller: {name} ({which})", now, occasion))
    return told


def _told(obj: Obj, reason: str, message: str, now: datetime, occasion: str) -> Made:
    return normal(obj, reason, message, by=MANAGER, now=now, occasion=occasion)
