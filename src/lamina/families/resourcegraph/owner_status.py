"""The status of definitions and of instances: the conditions of upstream in the words of all families."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from lamina.core.model.finalizers import waiting
from lamina.core.model.queries import Answers, Follow, Listed, Query
from lamina.core.model.reported_conditions import (
    DELETING,
    OUTDATED,
    UNREPORTED,
    ConditionRule,
    ReportedConditions,
    message,
    reports,
)
from lamina.core.model.state import State, StateRule, decide, deciding
from lamina.core.model.world import World
from lamina.core.rollout.history import History, history
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus
from lamina.core.rollout.revision import Revision
from lamina.families.resourcegraph.api import content, generated_kind
from lamina.families.resourcegraph.instances.view import MANAGED_RESOURCES, MOST_LISTED
from lamina.families.resourcegraph.labels import (
    DEFINITION,
    DEFINITION_REVISION,
    INPUT_REVISION,
    PIN,
    ROLLBACK,
    ROLLBACK_INPUT,
)
from lamina.graph.compile import kinds_needed
from lamina.objects import conditions, meta
from lamina.objects.numbers import whole
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Obj, Ref

REVISION_KINDS = (DEFINITION_REVISION, INPUT_REVISION)
"""The kinds of the objects that store revisions."""
_OF_INSTANCE = "RevisionResolved", "ResourcesReady", "ResourcesPropagated"
"""The conditions whose messages say why an instance is in its state."""
_TO_BE_ROLLED_BACK = "its controller has not carried out the rollback yet"


def _status(obj: Obj) -> Obj:
    return obj.get("status") or {}


def _propagation(obj: Obj) -> Obj:
    """Return the propagation of an instance; the author may have a field of that name."""
    found = _status(obj).get("propagation")
    return found if isinstance(found, Mapping) else {}


def _listed(obj: Obj) -> Sequence[Obj]:
    """Return the resources that an instance lists."""
    found = _status(obj).get(MANAGED_RESOURCES)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else ()


def _since(obj: Obj) -> datetime | None:
    """Return since when an instance is as it is: its last change of propagation or of readiness."""
    ready = conditions.find(conditions.of(obj), "Ready")
    became = ready.get("lastTransitionTime") if ready is not None else None
    stated = _propagation(obj).get("lastTransitionTime"), became
    times = (moment(str(one or "")) for one in stated)
    return max((one for one in times if one is not None), default=None)


def _rolls_back(annotation: str) -> ConditionRule:
    text = f"the annotation {annotation} is set"
    return StateRule(State.PENDING, text, lambda one: annotation in meta.annotations(one.obj))


def _has_state(state: State, value: str) -> ConditionRule:
    return StateRule(state, f"status.state is {value}", lambda one: _status(one.obj).get("state") == value)


def _propagates(state: State, value: str) -> ConditionRule:
    text = f"status.propagation.status is {value}"
    return StateRule(state, text, lambda one: _propagation(one.obj).get("status") == value)


DEFINITION_STATES: tuple[ConditionRule, ...] = (
    DELETING,
    UNREPORTED,
    OUTDATED,
    _rolls_back(ROLLBACK),
    reports(State.DEGRADED, "GraphAccepted", "False", "InvalidResourceGraph", ends=True),
    StateRule(
        State.DEGRADED,
        "GraphAccepted, KindReady or ControllerReady is False",
        lambda one: any(one.has(name, "False") for name in ("GraphAccepted", "KindReady", "ControllerReady")),
    ),
    reports(State.PAUSED, "RevisionCurrent", "False", "AwaitingApproval"),
    reports(State.DEGRADED, "Propagated", "Unknown"),
    reports(State.PROGRESSING, "Propagated", "False"),
    reports(State.HEALTHY, "Ready", "True"),
    StateRule(State.PROGRESSING, "anything else", lambda one: True),
)
"""The state of a ResourceGraphDefinition; the first row that holds decides."""

INSTANCE_STATES: tuple[ConditionRule, ...] = (
    DELETING,
    StateRule(State.UNKNOWN, "no status.state", lambda one: not _status(one.obj).get("state")),
    StateRule(
        State.PENDING,
        "observedGeneration of all conditions is older than metadata.generation",
        lambda one: bool(conditions.of(one.obj)) and not one.is_current,
    ),
    _rolls_back(ROLLBACK_INPUT),
    reports(State.PAUSED, "ResourcesReady", "False", "ReconciliationSuspended"),
    _has_state(State.DEGRADED, "ERROR"),
    _propagates(State.PAUSED, "Blocked"),
    _propagates(State.PROGRESSING, "InProgress"),
    _propagates(State.PENDING, "Pending"),
    _has_state(State.HEALTHY, "ACTIVE"),
    StateRule(State.PROGRESSING, "anything else", lambda one: True),
)
"""The state of an instance of a definition; the first row that holds decides."""

_NODE_STATES: Mapping[str, State] = {
    "synced": State.HEALTHY,
    "same": State.PROGRESSING,
    "waiting": State.PROGRESSING,
    "writing": State.PROGRESSING,
    "write": State.PROGRESSING,
    "wait": State.PENDING,
    "blocked": State.PAUSED,
    "held": State.PAUSED,
    "deleting": State.DELETING,
    "conflict": State.DEGRADED,
    "error": State.DEGRADED,
}
"""What the list of managed resources says of one, in the words of all families."""


def owners(world: World) -> tuple[Obj, ...]:
    """Return all definitions, and the instances of each."""
    definitions = tuple(world.every(DEFINITION))
    kinds = dict.fromkeys(map(generated_kind, definitions))
    return (*definitions, *(one for kind in kinds for one in world.every(kind)))


def definition_state(world: World, ref: Ref) -> State | None:
    """Return the state of a definition: its conditions say it, whatever its instances do."""
    obj = world.get(ref)
    return decide(DEFINITION_STATES, ReportedConditions(obj)) if obj is not None else None


def instance_state(world: World, ref: Ref) -> State | None:
    """Return the state of an instance."""
    obj = world.get(ref)
    return decide(INSTANCE_STATES, ReportedConditions(obj)) if obj is not None else None


def live_status(world: World, ref: Ref, answers: Answers) -> OwnerStatus | tuple[Query, ...] | None:
    """Return the status of a definition with its instances, which are queried first, or that of an instance."""
    obj = world.get(ref) if GroupKind(ref.group, ref.kind) == DEFINITION else None
    if obj is None:
        return owner_status(world, ref)
    kind = world.kinds.preferred(generated_kind(obj))
    if kind is None:
        return _definition(world, obj, ())
    asked = Follow(kind=kind)
    answer = answers.get(asked)
    return _definition(world, obj, answer.objects) if isinstance(answer, Listed) else (asked,)


def owner_status(world: World, ref: Ref) -> OwnerStatus | None:
    """Return the status of a definition or of an instance; None for an object of another kind."""
    obj, kind = world.get(ref), GroupKind(ref.group, ref.kind)
    if obj is None:
        return None
    if kind == DEFINITION:
        return _definition(world, obj, world.every(generated_kind(obj)))
    is_instance = any(generated_kind(one) == kind for one in world.every(DEFINITION))
    return _instance(world, obj) if is_instance else None


def _definition(world: World, obj: Obj, instances: Collection[Obj]) -> OwnerStatus:
    rule = deciding(DEFINITION_STATES, ReportedConditions(obj))
    state = rule.state
    current = _number(obj, "currentRevision")
    return OwnerStatus(
        owner=obj,
        history=_history(_owned(world, obj, DEFINITION_REVISION), "revision"),
        goal=current,
        state=state,
        message=_message(obj, state, ("Propagated", "Ready", "GraphAccepted")),
        targets=dict(sorted((_key(one), _target(one)) for one in instances)),
        unrevised="" if current else "its controller has issued no revision yet",
        # A graph that uses a kind that is not served becomes valid once the kind is.
        has_ended=rule.ends
        and all(world.kinds.find(*one) is not None for one in kinds_needed(obj.get("spec") or {})),
    )


def _target(instance: Obj) -> TargetStatus:
    state = decide(INSTANCE_STATES, ReportedConditions(instance))
    return TargetStatus(
        revision=_number(instance, "currentRGDRevision"),
        state=state,
        since=_since(instance),
        message=_message(instance, state, ("RevisionResolved", "ResourcesReady")),
        available=_status(instance).get("state") == "ACTIVE",
        kind=meta.group_kind(instance),
    )


def _key(instance: Obj) -> str:
    namespace = meta.namespace(instance)
    return f"{namespace}/{meta.name(instance)}" if namespace else meta.name(instance)


def _instance(world: World, obj: Obj) -> OwnerStatus:
    rule = deciding(INSTANCE_STATES, ReportedConditions(obj))
    state = rule.state
    current = _number(obj, "currentInputRevision")
    return OwnerStatus(
        owner=obj,
        history=_history(_owned(world, obj, INPUT_REVISION), "inputRevision"),
        goal=current,
        state=state,
        message=f"{_message(obj, state, _OF_INSTANCE)}{_cut(obj)}",
        targets=dict(_resources(obj)),
        unrevised="" if current else "its controller has recorded no input revision yet",
        has_ended=rule.ends,
    )


def _cut(obj: Obj) -> str:
    """Return that the list of resources is not complete, where that is so."""
    total = _propagation(obj).get("totalResources") or 0
    if not len(_listed(obj)) == MOST_LISTED < total:
        return ""
    return f"; status.{MANAGED_RESOURCES} lists the first {MOST_LISTED} of {total} resources"


def _resources(obj: Obj) -> Iterator[tuple[str, TargetStatus]]:
    """Yield the resources that the status lists, each at the input revision that it was made from."""
    for one in _listed(obj):
        yield (
            f"{one.get('kind')}/{one.get('name')}",
            TargetStatus(
                revision=one.get("inputRevision") or 0,
                state=_NODE_STATES.get(str(one.get("state")), State.UNKNOWN),
                message=f"resource {one.get('id')}",
                available=one.get("ready") is True,
            ),
        )


def _owned(world: World, owner: Obj, kind: GroupKind) -> Collection[Obj]:
    return world.owned_by(meta.uid(owner), kind)


def _history(revisions: Collection[Obj], field: str) -> History:
    return history(
        Revision(
            number=one["spec"][field],
            name=meta.name(one),
            snapshot=content(one["spec"]) if field == "revision" else one["spec"].get("instanceSpec") or {},
            hash=(one.get("status") or {}).get("specHash") or "",
            created=meta.metadata(one).get("creationTimestamp") or "",
            obj=one,
        )
        for one in revisions
    )


def _number(obj: Obj, field: str) -> int:
    return whole(_status(obj).get(field))


def _message(obj: Obj, state: State, names: tuple[str, ...]) -> str:
    """Return why something is in its state: the message of the first of these conditions that is not True, or of any."""
    reported, annotations = ReportedConditions(obj), meta.annotations(obj)
    match state:
        case State.DELETING:
            found = reported.get("ResourcesReady")
            return (found.get("message") if found is not None else "") or waiting(obj)
        case State.UNKNOWN:
            return message(obj, state, ())
        case State.PENDING if not reported.is_current:
            return message(obj, state, ())
        case State.PENDING if ROLLBACK in annotations or ROLLBACK_INPUT in annotations:
            return _TO_BE_ROLLED_BACK
    known = [found for name in names if (found := reported.get(name)) is not None]
    bad = [one for one in known if one.get("status") != "True"]
    waits = str(_propagation(obj).get("message") or "")
    if not bad and waits and state is not State.PROGRESSING:
        return waits
    if not bad and state is State.HEALTHY and (pin := annotations.get(PIN)):
        return f"pinned to RGD revision {pin}"
    return next((str(one["message"]) for one in (*bad, *known) if one.get("message")), "")
