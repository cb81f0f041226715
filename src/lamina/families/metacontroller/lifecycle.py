"""The status of a CompositeController or DecoratorController itself: whether it runs, and why not; and its deletion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from lamina.core.model.events import normal, on_change, warning
from lamina.core.model.finalizers import hold, is_held, release
from lamina.core.model.plan import Action, Emit, Patch, Plan, Stage, remove_finalizer, set_status
from lamina.core.model.queries import Answers, Listed, Query, ReadAll
from lamina.errors import SpecError
from lamina.families.metacontroller.compile import NoStatus, Setup
from lamina.families.metacontroller.labels import MANAGER, ON_DELETE, RELEASE
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Condition, Made, Obj

_READY, _DISCOVERED = "Ready", "ResourcesDiscovered"
_STARTED, _REFUSED = "Started", ("SyncError", "CreateError")


class View(Struct, frozen=True, kw_only=True):
    """One controller object, and what its spec was compiled to."""

    obj: Obj
    setup: Setup | SpecError
    kinds: Kinds
    unstored: str = ""
    """Why its status is not stored; empty where it is."""

    @property
    def releases(self) -> bool:
        """Say whether our finalizer is removed from its parents before it is deleted."""
        return meta.annotations(self.obj).get(ON_DELETE) == "release"

    @property
    def is_held(self) -> bool:
        return is_held(self.obj, RELEASE)


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return the queries for the hooks' credentials, or for the parents whose finalizer is removed."""
    if isinstance(view.setup, SpecError):
        return ()
    if not meta.is_deleting(view.obj):
        return view.setup.unread_credentials(view.kinds, answers)
    return tuple(one for one in _parents(view.setup) if view.is_held and one not in answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Report whether it runs, once for each spec; before its deletion, release its parents where that is asked for."""
    obj = view.obj
    if meta.is_deleting(obj):
        return _release(view, answers) if view.is_held else Plan()
    if view.releases and not view.is_held:
        return hold(obj, RELEASE, because="its parents are released before it is deleted")
    if view.is_held and not view.releases:
        return release(obj, RELEASE, because="its parents need not be released before it is deleted")
    return _report(view, _with_credentials(view, answers), now)


def _with_credentials(view: View, answers: Answers) -> Setup | SpecError:
    """Return a controller whose hooks have their credentials, or the error."""
    if not isinstance(view.setup, SpecError):
        try:
            view.setup.check_credentials(view.kinds, answers)
        except SpecError as refused:
            return refused
    return view.setup


def _report(view: View, setup: Setup | SpecError, now: datetime) -> Plan:
    obj, because = view.obj, _message(setup)
    patch = set_status(obj, _status(obj, setup, now))
    if patch is None:
        return Plan(because=because)
    events: tuple[Action, ...] = tuple(Emit(event=event) for event in _events(obj, setup, now))
    if view.unstored:
        # Without an occasion: the event is created once, however often the status is written in vain.
        events += (Emit(event=warning(obj, "StatusNotStored", view.unstored, by=MANAGER, now=now)),)
    stages = Stage("write the status", (patch,)), Stage("emit events", events)
    return Plan(stages=tuple(one for one in stages if one.actions), because=because)


def _message(setup: Setup | SpecError) -> str:
    if isinstance(setup, SpecError):
        return f"Cannot create new controller: {setup}"
    parents = ", ".join(rule.kind.plural for rule in setup.parents.values())
    children = ", ".join(rule.kind.plural for rule in setup.children.values()) or "no children"
    warnings = [one.warning for one in setup.endpoints if one.warning]
    return "; ".join([f"watching {parents}, managing {children}", *warnings])


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
        message=_message(setup),
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
        return _STARTED
    return _REFUSED[0] if isinstance(refused, NoStatus) else _REFUSED[1]


def _events(obj: Obj, setup: Setup | SpecError, now: datetime) -> Iterator[Made]:
    """Yield the events of a spec that is reported: what it replaces has stopped, and it has started or is refused."""
    old = obj.get("status") or {}
    generation = meta.generation(obj)
    before = conditions.find(old.get("conditions") or (), _READY)
    if old.get("observedGeneration") != generation:
        if before is not None and before["status"] == "True":
            yield from stopped(obj, int(old.get("observedGeneration") or 0), now)
        # The condition of another spec.
        before = None
    ready = Condition(type=_READY, status="True", reason=_STARTED, message=_progress(obj, _STARTED))
    if isinstance(setup, SpecError):
        ready = Condition(type=_READY, status="False", reason=_reason(setup), message=_message(setup))
    for event in on_change(
        obj, before, ready, by=MANAGER, now=now, warns=_REFUSED, occasion=str(generation), always=_REFUSED
    ):
        if event["reason"] == _STARTED:
            yield _event(obj, "Starting", generation, now)
        yield event


def stopped(obj: Obj, generation: int, now: datetime) -> Iterator[Made]:
    """Yield the events of a controller that has stopped, with a spec of this generation."""
    for reason in ("Stopping", "Stopped"):
        yield _event(obj, reason, generation, now)


def _event(obj: Obj, reason: str, generation: int, now: datetime) -> Made:
    return normal(obj, reason, _progress(obj, reason), by=MANAGER, now=now, occasion=str(generation))


def _progress(obj: Obj, reason: str) -> str:
    return f"{reason} controller: {meta.name(obj)} ({obj['kind']})"


# Before its deletion


def _parents(setup: Setup) -> Iterator[ReadAll]:
    for rule in setup.parents.values():
        yield ReadAll(rule.kind, "")


def _release(view: View, answers: Answers) -> Plan:
    """Return the plan that removes our finalizer from every parent, and then from the controller."""
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
    own = Stage("remove the finalizer", (remove_finalizer(view.obj, RELEASE),))
    stages = (Stage("release its parents", tuple(releases)), own) if releases else (own,)
    return Plan(stages=stages, because="its parents are released before it is deleted")
