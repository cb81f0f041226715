"""
The Deployment controller.

1.  ReplicaSets that match the selector are adopted, and those that no longer do
    are released.
2.  A Deployment that is being deleted only gets its status.
3.  One that is paused, or whose replicas changed, has its ReplicaSets scaled
    proportionally; nothing is rolled out meanwhile.
4.  Otherwise it is rolled out by its strategy. When that is complete, old
    ReplicaSets without pods beyond the history limit are deleted, the oldest
    first.
5.  ReplicaSets are written first, then events and the status: the ReplicaSets
    are the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads.deployment import recreate, status
from lamina.actors.workloads.deployment.new_replicaset import (
    collisions,
    find_new_and_old,
    new_replicaset,
    new_replicaset_name,
    revision,
    with_annotations_synced,
)
from lamina.actors.workloads.deployment.plan import BY, Desired, to_plan
from lamina.actors.workloads.deployment.rollback import requested_revision, rollback_plan
from lamina.actors.workloads.deployment.rolling import rolling_update
from lamina.actors.workloads.deployment.scaling import is_resized, scaled
from lamina.actors.workloads.deployment.sets import DEPLOYMENT, ReplicaSet, is_rolling
from lamina.actors.workloads.deployment.status import PROGRESSING, Conditions, Report
from lamina.actors.workloads.pods import POD, is_finished
from lamina.actors.workloads.replica_sync import wanted
from lamina.actors.workloads.replicaset import REPLICA_SET
from lamina.actors.workloads.server_errors import reportable
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import warning
from lamina.core.model.plan import NOTHING, Action, Emit, Plan, change, one_stage
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import Change, World
from lamina.core.ownership import controller_ref
from lamina.core.ownership.controller_ref import Claim, claimants, owner_of
from lamina.errors import LaminaError
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj, Ref

_UNLIMITED = 2**31 - 1


class View(Struct, frozen=True, kw_only=True):
    """A Deployment, its ReplicaSets, and the ReplicaSet with the name of its new one."""

    deployment: Obj
    sets: Claim
    running: frozenset[str] = frozenset()
    """The uids of ReplicaSets with unfinished pods; only for the Recreate strategy."""
    occupant: Obj | None = None


def selects(deployment: Obj) -> LabelSelector:
    return from_object(deployment["spec"].get("selector"))


def gather(world: World, ref: Ref) -> View | None:
    deployment = world.get(ref)
    if deployment is None:
        return None
    sets = controller_ref.claim(world, deployment, REPLICA_SET, selects(deployment))
    running = (
        frozenset[str]()
        if is_rolling(deployment)
        else frozenset(
            meta.uid(one)
            for one in sets.held + sets.adoptable
            if any(not is_finished(pod) for pod in world.owned_by(meta.uid(one), POD))
        )
    )
    occupant = world.get(Ref("apps/v1", "ReplicaSet", ref.namespace, new_replicaset_name(deployment)))
    return View(deployment=deployment, sets=sets, running=running, occupant=occupant)


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    return controller_ref.queries(answers, view.sets)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    deployment = view.deployment
    claims = controller_ref.changes(view.sets, answers)
    if claims:
        return one_stage(
            "adopt and release", claims, because="ReplicaSets match its selector, or no longer do"
        )
    new, old = find_new_and_old(deployment, controller_ref.members(view.sets, answers))
    conditions = status.conditions_of(deployment)
    if new is not None:
        new = with_annotations_synced(deployment, new, old)
        conditions = _with_found(deployment, new, conditions, now)
    if meta.is_deleting(deployment):
        return to_plan(
            deployment, _status_only(deployment, new, old, conditions, now), "it is being deleted", now
        )
    conditions = status.with_pause(deployment, conditions, now)
    if deployment["spec"].get("paused"):
        return to_plan(deployment, _paused(deployment, new, old, conditions, now), "it is paused", now)
    back = requested_revision(deployment)
    if back is not None and new is not None:
        return rollback_plan(deployment, (*old, new), back, by=BY, now=now)
    if is_resized(deployment, _with_new(new, old)):
        return to_plan(
            deployment, _resized(deployment, new, old, conditions, now), "its replicas changed", now
        )
    if not is_rolling(deployment):
        scaled_down = recreate.scaled_down(deployment, old)
        if scaled_down != tuple(old) or not recreate.is_clear(new, old, view.running):
            desired = _rollout(deployment, new, scaled_down, conditions, now)
            return to_plan(deployment, desired, "waiting for old pods to terminate", now)
    if new is None:
        if view.occupant is not None:
            return _collided(deployment, view.occupant)
        new = new_replicaset(deployment, old)
        conditions = _with_created(deployment, new, conditions, now)
    if is_rolling(deployment):
        new, rest = rolling_update(deployment, new, old)
        old = list(rest)
    else:
        new = new.resized(wanted(deployment), deployment)
    desired = _rollout(deployment, new, old, conditions, now)
    return to_plan(deployment, desired, "rolling out", now)


def _with_new(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    return (*old, new) if new is not None else tuple(old)


def _with_found(deployment: Obj, new: ReplicaSet, conditions: Conditions, now: datetime) -> Conditions:
    """Return the conditions with FoundNewReplicaSet, where there is no Progressing condition."""
    if not status.has_deadline(deployment) or status.found(conditions, PROGRESSING) is not None:
        return conditions
    message = f'Found new replica set "{new.name}"'
    return status.with_condition(conditions, PROGRESSING, "True", "FoundNewReplicaSet", message, now)


def _with_created(deployment: Obj, new: ReplicaSet, conditions: Conditions, now: datetime) -> Conditions:
    if not status.has_deadline(deployment):
        return conditions
    message = f'Created new replica set "{new.name}"'
    return status.with_condition(conditions, PROGRESSING, "True", "NewReplicaSetCreated", message, now)


def _status_only(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Desired:
    calculated = status.calculate_status(deployment, new, _with_new(new, old), conditions, now)
    return Desired(new=new, old=tuple(old), report=Report(status=calculated))


def _resized(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Desired:
    sets = scaled(deployment, _with_new(new, old), new)
    others = sets[: len(old)]
    return _status_only(deployment, sets[-1] if new is not None else None, others, conditions, now)


def _paused(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Desired:
    desired = _resized(deployment, new, old, conditions, now)
    if requested_revision(deployment) is not None:
        return desired
    deleted = _beyond_limit(deployment, desired.old)
    return Desired(new=desired.new, old=desired.old, report=desired.report, deleted=deleted)


def _rollout(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Desired:
    report = status.rollout_status(deployment, new, _with_new(new, old), conditions, now)
    complete = status.is_complete(deployment, status.status_of(deployment))
    return Desired(
        new=new,
        old=tuple(old),
        report=report,
        deleted=_beyond_limit(deployment, old) if complete else (),
    )


def _beyond_limit(deployment: Obj, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Return the oldest ReplicaSets beyond the history limit, without those that have pods or may have."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None or limit == _UNLIMITED:
        return ()
    left = [one for one in old if not meta.is_deleting(one.observed)]
    left.sort(key=lambda one: (revision(one.observed) or 0, one.age))
    return tuple(one for one in left[: max(0, len(left) - int(limit))] if _is_idle(one))


def _is_idle(one: ReplicaSet) -> bool:
    observed = int((one.observed.get("status") or {}).get("observedGeneration") or 0)
    return not one.count("replicas") and not one.size and observed >= meta.generation(one.observed)


def _collided(deployment: Obj, occupant: Obj) -> Plan:
    """Return the plan that counts a hash collision, which leads to another name."""
    count = (collisions(deployment) or 0) + 1
    counted = change(deployment, {"status": {"collisionCount": count}}, subresource="status")
    return one_stage("count the collision", [counted], because=f"{meta.name(occupant)} has another template")


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Report that the new ReplicaSet could not be created, unless its namespace is terminating."""
    view = gather(world, ref)
    failures = reportable(error)
    if view is None or not failures:
        return NOTHING
    deployment = view.deployment
    new, _ = find_new_and_old(deployment, view.sets.held)
    if new is not None:
        return NOTHING
    message = f'Failed to create new replica set "{new_replicaset_name(deployment)}": {failures[0]}'
    reason = "ReplicaSetCreateError"
    actions: list[Action] = [Emit(event=warning(deployment, reason, message, by=BY, now=now))]
    if status.has_deadline(deployment):
        old = status.conditions_of(deployment)
        conditions = status.with_condition(old, PROGRESSING, "False", reason, message, now)
        if conditions != old:
            patch = {"status": {"conditions": list(conditions)}}
            actions.append(change(deployment, patch, subresource="status"))
    return one_stage("report", actions, because=message)


def pod_concerns(world: World, change: Change) -> Iterable[Ref]:
    """A deleted or finished pod enqueues its Deployment, if that recreates pods and waits for it."""
    pod = change.after if change.after is not None else change.before
    if pod is None or (change.after is not None and not is_finished(change.after)):
        return ()
    above = owner_of(world, pod, REPLICA_SET)
    deployment = owner_of(world, above, DEPLOYMENT) if above is not None else None
    if deployment is None or is_rolling(deployment):
        return ()
    return (meta.ref(deployment),)


DEPLOYMENTS: Controller[View] = Controller(
    name="deployments",
    watches=(
        Watch(selects=only(*DEPLOYMENT), enqueue=itself),
        Watch(selects=only(*REPLICA_SET), enqueue=claimants(DEPLOYMENT, selects)),
        Watch(selects=only(*POD), enqueue=pod_concerns),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
