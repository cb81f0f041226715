"""What a CompositeController or DecoratorController says of itself: whether it runs, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from lamina.core.events import normal, warning
from lamina.core.plan import (
    Action,
    Emit,
    Patch,
    Plan,
    Stage,
    change_metadata,
    one_stage,
    remove_finalizer,
    set_status,
)
from lamina.core.questions import Answers, Listed, Question, ReadAll
from lamina.errors import SpecError
from lamina.families.metacontroller.names import MANAGER, ON_DELETE, RELEASE
from lamina.families.metacontroller.setup import NoStatus, Setup
from lamina.families.metacontroller.webhooks import credentials_of, look_in
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made, Obj

_READY, _DISCOVERED = "Ready", "ResourcesDiscovered"


class View(Struct, frozen=True, kw_only=True):
    """One controller object, and what came of setting it up."""

    obj: Obj
    setup: Setup | SpecError
    kinds: Kinds

    @property
    def releases(self) -> bool:
        """Say whether its parents are to be let go before it goes."""
        return meta.annotations(self.obj).get(ON_DELETE) == "release"

    @property
    def is_held(self) -> bool:
        return RELEASE in meta.finalizers(self.obj)


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Return what has to be known first: the hooks' credentials, or the parents that are to be let go."""
    if isinstance(view.setup, SpecError):
        return ()
    if meta.is_deleting(view.obj):
        asked: tuple[Question, ...] = tuple(_parents(view.setup)) if view.is_held else ()
    else:
        asked = credentials_of(view.setup.endpoints, view.kinds)
    return tuple(one for one in asked if one not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Say whether it runs, once for each spec; let its parents go before it goes, where that is asked for."""
    obj = view.obj
    if meta.is_deleting(obj):
        return _let_go(view, answers) if view.is_held else Plan()
    if view.releases and not view.is_held:
        held = change_metadata(obj, finalizers=[*meta.finalizers(obj), RELEASE])
        return one_stage("hold", [held], because="its parents are to be let go before it goes")
    if view.is_held and not view.releases:
        released = remove_finalizer(obj, RELEASE)
        return one_stage("let go", [released], because="its parents need not be let go before it goes")
    return _say(view, _credible(view, answers), now)


def _credible(view: View, answers: Answers) -> Setup | SpecError:
    """Return a controller whose hooks can be called, or what keeps it from that."""
    if not isinstance(view.setup, SpecError):
        try:
            for one in view.setup.endpoints:
                one.check(look_in(answers, view.kinds))
        except SpecError as refused:
            return refused
    return view.setup


def _say(view: View, setup: Setup | SpecError, now: datetime) -> Plan:
    obj, because = view.obj, _said(setup)
    patch = set_status(obj, _status(obj, setup, now))
    if patch is None:
        return Plan(because=because)
    told: tuple[Action, ...] = tuple(Emit(event=event) for event in _events(obj, setup, now))
    stages = (Stage("say so", (patch,)), *((Stage("tell", told),) if told else ()))
    return Plan(stages=stages, because=because)


def _said(setup: Setup | SpecError) -> str:
    if isinstance(setup, SpecError):
        return f"Cannot create new controller: {setup}"
    parents = ", ".join(rule.kind.plural for rule in setup.parents.values())
    children = ", ".join(rule.kind.plural for rule in setup.children.values()) or "no children"
    doubts = [one.told for one in setup.endpoints if one.told]
    return "; ".join([f"watching {parents}, managing {children}", *doubts])


def _status(obj: Obj, setup: Setup | SpecError, now: datetime) -> Made:
    refused = setup if isinstance(setup, SpecError) else None
    generation = meta.generation(obj)
    old = (obj.get("status") or {}).get("conditions") or ()
    unserved = refused is not None and "discovery:" in str(refused)
    ready = conditions.with_condition(
        old,
        _READY,
        "False" if refused is not None else "True",
        now=now,
        reason=_reason(refused),
        message=_said(setup),
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


def _events(obj: Obj, setup: Setup | SpecError, now: datetime) -> Iterator[Made]:
    """Yield what is told when this is said for the first time."""
    old = obj.get("status") or {}
    generation = meta.generation(obj)
    was = conditions.find(old.get("conditions") or (), _READY)
    ran = was is not None and was["status"] == "True"
    is_new = old.get("observedGeneration") != generation
    if ran and is_new:
        yield from stopped(obj, int(old.get("observedGeneration") or 0), now)
    if isinstance(setup, SpecError):
        yield warning(obj, _reason(setup), _said(setup), by=MANAGER, now=now, occasion=str(generation))
    elif not ran or is_new:
        for reason in ("Starting", "Started"):
            message = f"{reason} controller: {meta.name(obj)} ({obj['kind']})"
            yield normal(obj, reason, message, by=MANAGER, now=now, occasion=str(generation))


def stopped(obj: Obj, generation: int, now: datetime) -> Iterator[Made]:
    """Yield what is told once a controller with a spec of this generation has stopped."""
    for reason in ("Stopping", "Stopped"):
        message = f"{reason} controller: {meta.name(obj)} ({obj['kind']})"
        yield normal(obj, reason, message, by=MANAGER, now=now, occasion=str(generation))


# Before it goes


def _parents(setup: Setup) -> Iterator[ReadAll]:
    for rule in setup.parents.values():
        yield ReadAll(rule.kind, "")


def _let_go(view: View, answers: Answers) -> Plan:
    """Return the plan that takes our finalizer off every parent, and then lets the controller go."""
    releases: list[Action] = []
    if not isinstance(view.setup, SpecError):
        finalizer = view.setup.finalizer
        for asked in _parents(view.setup):
            found = answers.get(asked)
            for obj in found.objects if isinstance(found, Listed) else ():
                if finalizer not in meta.finalizers(obj):
                    continue
                left = [one for one in meta.finalizers(obj) if one != finalizer]
                releases.append(
                    Patch(
                        ref=asked.kind.ref(meta.namespace(obj), meta.name(obj)),
                        uid=meta.uid(obj),
                        version=meta.resource_version(obj),
                        patch={"metadata": {"finalizers": left or None}},
                    )
                )
    own = Stage("go", (remove_finalizer(view.obj, RELEASE),))
    stages = (Stage("let its parents go", tuple(releases)), own) if releases else (own,)
    return Plan(stages=stages, because="its parents are let go before it goes")
