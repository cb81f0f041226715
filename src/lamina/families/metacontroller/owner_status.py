"""The status of a parent and of its children: the conditions of Metacontroller in the words of all families."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lamina.core.health.kstatus import health
from lamina.core.health.probe import HEALTHY, ProbeResult, has_observed_its_spec, unhealthy, unknown
from lamina.core.model.finalizers import waiting
from lamina.core.model.state import State, StateRule, decide, deciding, worst
from lamina.core.model.world import World
from lamina.core.rollout.history import History
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus
from lamina.families.metacontroller.compile import Setup
from lamina.families.metacontroller.labels import REVISION
from lamina.families.metacontroller.rollback import revised
from lamina.families.metacontroller.sync.controller_status import error_of
from lamina.families.metacontroller.sync.gather import gather
from lamina.families.metacontroller.sync.revisions import revisions
from lamina.families.metacontroller.sync.view import View
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, GroupKind, Obj, Ref

REVISION_KINDS = (REVISION,)
"""The kinds of the objects that store revisions."""
UPDATED = "Updated"
_WAITING = (State.UNKNOWN, State.PENDING, State.DELETING)
_UNREPORTED = "its controller has not reported a status yet"
_UNREVISED = "none of its child kinds has a rolling update strategy"


class _Reported(Struct, frozen=True):
    """What a parent's status reports of its rollout, and whether that is about its latest spec."""

    parent: Obj
    updated: Condition | None
    is_current: bool

    def has_reason(self, reason: str) -> bool:
        return self.updated is not None and self.updated.get("reason") == reason


OWNER_STATES: tuple[StateRule[_Reported], ...] = (
    StateRule(State.DELETING, "metadata.deletionTimestamp is set", lambda one: meta.is_deleting(one.parent)),
    StateRule(State.UNKNOWN, "no condition Updated", lambda one: one.updated is None),
    StateRule(
        State.PENDING,
        "status.observedGeneration is older than metadata.generation",
        lambda one: not one.is_current,
    ),
    StateRule(
        State.HEALTHY, "Updated, reason OnLatestRevision", lambda one: one.has_reason("OnLatestRevision")
    ),
    StateRule(
        State.PROGRESSING,
        "Updated, reason RolloutProgressing or RolloutWaiting",
        lambda one: one.has_reason("RolloutProgressing") or one.has_reason("RolloutWaiting"),
    ),
    StateRule(
        State.DEGRADED,
        "Updated, reason RolloutStalled",
        lambda one: one.has_reason("RolloutStalled"),
        ends=True,
    ),
    StateRule(State.PAUSED, "Updated, reason RolloutPaused", lambda one: one.has_reason("RolloutPaused")),
)
"""The state of a parent whose children roll; the first row that holds decides."""


class _Child(Struct, frozen=True):
    """One child, how it does, and what its parent reports."""

    obj: Obj | None
    on_goal: bool
    result: ProbeResult
    failed: bool
    owner: State


TARGET_STATES: tuple[StateRule[_Child], ...] = (
    StateRule(
        State.DELETING,
        "metadata.deletionTimestamp of the child is set",
        lambda one: one.obj is not None and meta.is_deleting(one.obj),
    ),
    StateRule(
        State.PAUSED,
        "on an older revision; Updated of the parent, reason RolloutPaused",
        lambda one: not one.on_goal and one.owner is State.PAUSED,
    ),
    StateRule(State.PENDING, "on an older revision", lambda one: not one.on_goal),
    StateRule(
        State.HEALTHY,
        "on the latest revision, its statusChecks pass and it is healthy",
        lambda one: one.obj is not None and one.result.is_healthy,
    ),
    StateRule(
        State.DEGRADED,
        "on the latest revision; it has failed, or Updated of the parent has reason RolloutStalled",
        lambda one: one.failed or one.owner is State.DEGRADED,
    ),
    StateRule(State.PROGRESSING, "on the latest revision, missing or not healthy yet", lambda one: True),
)
"""The state of a child; the first row that holds decides."""


def owner_state(setup: Setup, world: World, ref: Ref) -> State | None:
    """Return the state of a parent of a controller; None where it is no parent of it."""
    view = gather(setup, world, ref)
    return owner_status(view).state if view is not None else None


def owner_status(view: View) -> OwnerStatus:
    """Return the status of a parent: its revisions, and which of its children is on which."""
    if not view.setup.rolls:
        return _without_revisions(view)
    stored = revisions(view)
    kept, goal = revised(stored)
    reported = _reported(view.parent)
    rule = deciding(OWNER_STATES, reported)
    state = rule.state
    numbers = {one.name: one.number for one in kept.revisions}
    children = {
        (kind.group_kind, meta.name(obj)): obj for kind, objects in view.children.items() for obj in objects
    }
    targets: dict[str, TargetStatus] = {}
    for one in (stored.latest, *stored.others):
        for name in one.claimed:
            number = numbers[one.name]
            targets.setdefault(
                f"{name[0].kind} {name[1]}", _target(view, name[0], children.get(name), number, goal, state)
            )
    return OwnerStatus(
        owner=view.parent,
        history=kept,
        goal=goal,
        state=state,
        message=_message(reported, state, _error(view, state)),
        targets=targets,
        has_ended=rule.ends,
    )


def _reported(parent: Obj) -> _Reported:
    found = conditions.find(conditions.of(parent), UPDATED)
    return _Reported(parent, found, has_observed_its_spec(parent).is_healthy)


def _error(view: View, state: State) -> str:
    """Return the error that the controller of a parent reports, where it is why the parent waits."""
    waits = state in _WAITING or not has_observed_its_spec(view.parent).is_healthy
    return error_of(view.controller, meta.ref(view.parent), waits=waits)


def _message(reported: _Reported, state: State, error: str) -> str:
    """Return the message of a parent; an error that its controller reports is why the status is not current."""
    if error:
        return f"{waiting(reported.parent)}; {error}" if state is State.DELETING else error
    match state:
        case State.DELETING:
            return waiting(reported.parent)
        case State.UNKNOWN if reported.updated is None:
            return _UNREPORTED
        case State.PENDING:
            return "its controller has not observed the latest spec yet"
    return reported.updated.get("message", "") if reported.updated is not None else ""


def _target(
    view: View, kind: GroupKind, obj: Obj | None, number: int, goal: int, owner: State
) -> TargetStatus:
    result, failed = _checked(view, kind, obj) if obj is not None else (unknown("it does not exist"), False)
    state = decide(
        TARGET_STATES, _Child(obj, on_goal=number == goal, result=result, failed=failed, owner=owner)
    )
    return TargetStatus(
        revision=number, state=state, message=result.because, available=result.is_healthy, kind=kind
    )


def _checked(view: View, kind: GroupKind, obj: Obj) -> tuple[ProbeResult, bool]:
    """Return whether a child is healthy, by its statusChecks and by what is known of its kind; and if it has failed."""
    rule, known = view.setup.children.get(kind), health(obj)
    for result in (has_observed_its_spec(obj), rule.check(obj) if rule is not None else HEALTHY):
        if not result.is_healthy:
            return result, False
    if known.failed or known.waiting:
        return unhealthy(known.failed or known.waiting), bool(known.failed)
    return HEALTHY, False


def _without_revisions(view: View) -> OwnerStatus:
    """Return the status of a parent none of whose children rolls: as healthy as its children, and itself if it is a workload."""
    parent, targets = view.parent, dict(_children(view))
    state, message = State.UNKNOWN, _UNREPORTED
    if not view.setup.is_composite or "status" in parent:
        own = _target(view, view.rule.kind.group_kind, parent, 0, 0, State.HEALTHY)
        wrong = [f"{name}: {one.message}" for name, one in targets.items() if one.message]
        states = [own.state, *(one.state for one in targets.values())]
        state = own.state if own.state is State.DELETING else worst(states)
        message = own.message or next(iter(wrong), f"{_UNREVISED}, so it has no revisions")
    if error := _error(view, state):
        message = f"{waiting(parent)}; {error}" if meta.is_deleting(parent) else error
    return OwnerStatus(
        owner=parent,
        history=History(),
        goal=0,
        state=state,
        message=message,
        targets=targets,
        unrevised=_UNREVISED,
        is_decorated=not view.setup.is_composite,
        by_targets=True,
    )


def _children(view: View) -> Iterator[tuple[str, TargetStatus]]:
    for kind, objects in view.children.items():
        for obj in objects:
            yield f"{kind.kind} {meta.name(obj)}", _target(view, kind.group_kind, obj, 0, 0, State.HEALTHY)
