"""The status of deployments and sets, and of their objects: the conditions of upstream in the words of all families."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lamina.core.model.queries import Answers, Follow, Query
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
from lamina.core.phases.live_objects import follows
from lamina.core.phases.targets import RevisionObjects, targets
from lamina.core.rollout.history import history
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.revision import Revision
from lamina.families.objectset import lineage
from lamina.families.objectset.contents import slices_of
from lamina.families.objectset.deployments import view as deployment_view
from lamina.families.objectset.deployments.template import revisions
from lamina.families.objectset.labels import DEPLOYMENTS, SETS
from lamina.families.objectset.set_facts import facts, objects_of_sets
from lamina.families.objectset.sets import view as set_view
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref

NONE = Answers()
_ARCHIVED = "none of its objects are left; it is kept as a record"


OWNER_STATES: tuple[ConditionRule, ...] = (
    DELETING,
    UNREPORTED,
    OUTDATED,
    reports(State.PAUSED, "Paused", "True"),
    reports(State.DEGRADED, "Progressing", "False", "ProgressDeadlineExceeded", "InvalidTemplate", ends=True),
    reports(State.PROGRESSING, "Progressing", "True"),
    reports(State.HEALTHY, "Available", "True"),
    reports(State.DEGRADED, "Available", "False"),
)
"""The state of an ObjectDeployment; the first row that holds decides."""

SET_STATES: tuple[ConditionRule, ...] = (
    DELETING,
    reports(State.ARCHIVED, "Archived", "True"),
    reports(State.DELETING, "Archived", "False"),
    UNREPORTED,
    OUTDATED,
    reports(State.PAUSED, "Paused", "True"),
    reports(State.DEGRADED, "Available", "False", "PreflightError", "CollisionDetected"),
    StateRule(
        State.DEGRADED,
        "Available is False, and Succeeded is True",
        lambda one: one.has("Available", "False") and one.has("Succeeded", "True"),
    ),
    StateRule(
        State.HEALTHY,
        "Available is True, and InTransition is absent",
        lambda one: one.has("Available", "True") and one.get("InTransition") is None,
    ),
    StateRule(State.PROGRESSING, "anything else", lambda one: True),
)
"""The state of an ObjectSet that no deployment controls; the first row that holds decides."""


def owners(world: World) -> tuple[Obj, ...]:
    """Return all deployments, and the sets that none of them controls."""
    found = [one for kind in DEPLOYMENTS for one in world.every(kind)]
    return (*found, *(one for kind in SETS for one in world.every(kind) if not _has_deployment(one)))


def _has_deployment(obj: Obj) -> bool:
    controller = meta.controller_of(obj)
    return controller is not None and meta.group_kind(controller) in DEPLOYMENTS


def owner_status(world: World, ref: Ref, answers: Answers = NONE) -> OwnerStatus | None:
    """
    Return the status of a deployment or of a set; None for an object of another kind.

    With the answers that `live_status` asks for, objects are probed as they are now; without
    them, what the revisions report is all that is known.
    """
    kind = GroupKind(ref.group, ref.kind)
    if kind in DEPLOYMENTS:
        view = deployment_view.gather(world, ref)
        return _deployment(view, answers) if view is not None else None
    obj = world.get(ref) if kind in SETS else None
    # A set of a deployment is one of the revisions of that owner.
    return _set(world, obj, answers) if obj is not None and not _has_deployment(obj) else None


def owner_state(world: World, ref: Ref) -> State | None:
    """Return the state of a deployment or of a set: their conditions say it, whatever their objects do."""
    obj, kind = world.get(ref), GroupKind(ref.group, ref.kind)
    if obj is None or (kind in SETS and _has_deployment(obj)):
        return None
    return decide(OWNER_STATES if kind in DEPLOYMENTS else SET_STATES, ReportedConditions(obj))


def live_status(world: World, ref: Ref, answers: Answers) -> OwnerStatus | tuple[Query, ...] | None:
    """Return the status of a deployment or of a set from its objects as they are now, or what has to be asked first."""
    asked = tuple(one for one in _queries(world, ref) if one not in answers)
    return asked or owner_status(world, ref, answers)


def _queries(world: World, ref: Ref) -> tuple[Follow, ...]:
    kind, those = GroupKind(ref.group, ref.kind), tuple[RevisionObjects, ...]()
    if kind in DEPLOYMENTS and (view := deployment_view.gather(world, ref)) is not None:
        those = objects_of_sets(view.sets, view.slices, view.kinds)
    elif kind in SETS and (obj := world.get(ref)) is not None:
        those = _lineage(world, obj)
    return follows(one for each in those for one in each.here)


def progress(view: deployment_view.View) -> Mapping[str, int]:
    """Return the number of objects of a deployment by state, for metrics."""
    return Counter(one.state.value for one in _deployment(view, None).targets.values())


def _deployment(view: deployment_view.View, answers: Answers | None) -> OwnerStatus:
    rule = deciding(OWNER_STATES, ReportedConditions(view.obj))
    state = rule.state
    those = objects_of_sets(view.sets, view.slices, view.kinds)
    # The set that has the template is the newest one.
    latest = view.sets[-1] if view.sets else None
    return OwnerStatus(
        owner=view.obj,
        history=revisions(view),
        goal=latest.number if latest is not None else 0,
        state=state,
        message=_message(view.obj, state, ("Progressing", "Available")),
        targets=targets(those, those[-1], state, answers) if those else {},
        unrevised="" if latest is not None else "its controller has created no revision yet",
        has_ended=rule.ends,
    )


def _set(world: World, obj: Obj, answers: Answers) -> OwnerStatus:
    state = decide(SET_STATES, ReportedConditions(obj))
    those, number = _lineage(world, obj), lineage.number(obj)
    latest = next(one for one in those if meta.uid(one.facts.obj) == meta.uid(obj))
    own = Revision(number=number, name=meta.name(obj), snapshot=obj.get("spec") or {}, obj=obj)
    is_over = state is State.ARCHIVED
    return OwnerStatus(
        owner=obj,
        history=history([own]),
        goal=number,
        state=state,
        message=_message(obj, state, ("Archived", "Available")),
        targets={} if is_over else targets(those, latest, state, answers),
        unrevised="" if number else "it has no revision number yet",
        has_ended=state is State.DEGRADED and _is_invalid(world, obj),
    )


def _is_invalid(world: World, obj: Obj) -> bool:
    """Say whether nothing but an edit of its spec helps a set; a slice that is missing may be created yet."""
    view = set_view.gather(world, meta.ref(obj))
    return view is not None and not view.missing and bool(set_view.what_is_invalid(view))


def _lineage(world: World, obj: Obj) -> tuple[RevisionObjects, ...]:
    """Return the objects of a set and of its siblings, oldest first."""
    those = (obj, *lineage.siblings(world, obj))
    slices = slices_of(world, those)
    return objects_of_sets(facts(those, slices, world.kinds), slices, world.kinds)


def _message(obj: Obj, state: State, names: Sequence[str]) -> str:
    match state:
        case State.PAUSED:
            names = ("Paused",)
        case State.ARCHIVED:
            return _ARCHIVED
        case State.DEGRADED if ReportedConditions(obj).has("Progressing", "False", "Idle"):
            names = ("Available",)
    return message(obj, state, names)
