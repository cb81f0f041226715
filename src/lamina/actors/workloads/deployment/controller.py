"""
Deployments: pods of one template, and how they are moved to another.

1.  Sets whose labels match are taken in, and those that no longer match are let
    go of.
2.  A Deployment on its way out says how it stands, and does nothing else.
3.  One that is paused, or has got another size, has its sets scaled, each by
    its share; nothing is rolled out meanwhile.
4.  Otherwise it is rolled out by its strategy. When that is complete, sets
    beyond the history limit that have no pods are forgotten, the oldest first.
5.  What happens to the sets is written first, then told, then summed up in the
    status: the sets are the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads import claim
from lamina.actors.workloads.claim import Claim, claimants, owner_of
from lamina.actors.workloads.deployment import recreate, status
from lamina.actors.workloads.deployment.revising import (
    collisions,
    divided,
    made,
    name_of_new,
    renewed,
    revision,
)
from lamina.actors.workloads.deployment.rollback import asked_for, rolled_back
from lamina.actors.workloads.deployment.rolling import rolled
from lamina.actors.workloads.deployment.scaling import is_resized, scaled
from lamina.actors.workloads.deployment.sets import DEPLOYMENT, ReplicaSet, is_rolling
from lamina.actors.workloads.deployment.status import PROGRESSING, Conditions, Report
from lamina.actors.workloads.deployment.writing import BY, Next, written
from lamina.actors.workloads.pods import POD, is_finished
from lamina.actors.workloads.refusals import serious
from lamina.actors.workloads.replicas import wanted
from lamina.actors.workloads.replicaset import REPLICA_SET
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import warning
from lamina.core.plan import NOTHING, Action, Emit, Plan, change, one_stage
from lamina.core.questions import Answers, Question
from lamina.core.world import Change, World
from lamina.errors import LaminaError
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import Obj, Ref

_ALL = 2**31 - 1


class View(Struct, frozen=True, kw_only=True):
    """A Deployment, its sets, and who has the name that a new one would get."""

    deployment: Obj
    sets: Claim
    running: frozenset[str] = frozenset()
    """The uids of sets with pods that have not finished; looked up where that matters."""
    occupant: Obj | None = None


def selects(deployment: Obj) -> LabelSelector:
    return from_object(deployment["spec"].get("selector"))


def gather(world: World, ref: Ref) -> View | None:
    deployment = world.get(ref)
    if deployment is None:
        return None
    sets = claim.claim(world, deployment, REPLICA_SET, selects(deployment))
    running = (
        frozenset[str]()
        if is_rolling(deployment)
        else frozenset(
            meta.uid(one)
            for one in sets.held + sets.adoptable
            if any(not is_finished(pod) for pod in world.owned_by(meta.uid(one), POD))
        )
    )
    occupant = world.get(Ref("apps/v1", "ReplicaSet", ref.namespace, name_of_new(deployment)))
    return View(deployment=deployment, sets=sets, running=running, occupant=occupant)


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    return claim.questions(view.sets, answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    deployment = view.deployment
    claims = claim.changes(view.sets, answers)
    if claims:
        return one_stage("claim sets", claims, because="whose sets are whose has changed")
    new, old = divided(deployment, claim.members(view.sets, answers))
    conditions = status.conditions_of(deployment)
    if new is not None:
        new = renewed(deployment, new, old)
        conditions = _noticed(deployment, new, conditions, now)
    if meta.is_deleting(deployment):
        return written(
            deployment, _summed_up(deployment, new, old, conditions, now), "it is on its way out", now
        )
    conditions = status.with_pause(deployment, conditions, now)
    if deployment["spec"].get("paused"):
        return written(deployment, _paused(deployment, new, old, conditions, now), "it is paused", now)
    back = asked_for(deployment)
    if back is not None and new is not None:
        return rolled_back(deployment, (*old, new), back, by=BY, now=now)
    if is_resized(deployment, _all(new, old)):
        return written(
            deployment, _resized(deployment, new, old, conditions, now), "its size has changed", now
        )
    if not is_rolling(deployment):
        emptied = recreate.emptied(deployment, old)
        if emptied != tuple(old) or not recreate.is_clear(new, old, view.running):
            next_ = _reported(deployment, new, emptied, conditions, now)
            return written(deployment, next_, "waiting for old pods to go", now)
    if new is None:
        if view.occupant is not None:
            return _collided(deployment, view.occupant)
        new = made(deployment, old)
        conditions = _announced(deployment, new, conditions, now)
    if is_rolling(deployment):
        new, rest = rolled(deployment, new, old)
        old = list(rest)
    else:
        new = new.resized(wanted(deployment), deployment)
    next_ = _reported(deployment, new, old, conditions, now)
    return written(deployment, next_, "rolling out", now)


def _all(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    return (*old, new) if new is not None else tuple(old)


def _noticed(deployment: Obj, new: ReplicaSet, conditions: Conditions, now: datetime) -> Conditions:
    """Return the conditions with the note that a new set was found, where nothing has been said of progress."""
    if not status.has_deadline(deployment) or status.found(conditions, PROGRESSING) is not None:
        return conditions
    message = f'Found new replica set "{new.name}"'
    return status.with_said(conditions, PROGRESSING, "True", "FoundNewReplicaSet", message, now)


def _announced(deployment: Obj, new: ReplicaSet, conditions: Conditions, now: datetime) -> Conditions:
    if not status.has_deadline(deployment):
        return conditions
    message = f'Created new replica set "{new.name}"'
    return status.with_said(conditions, PROGRESSING, "True", "NewReplicaSetCreated", message, now)


def _summed_up(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Next:
    said = status.summed_up(deployment, new, _all(new, old), conditions, now)
    return Next(new=new, old=tuple(old), report=Report(status=said))


def _resized(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Next:
    sets = scaled(deployment, _all(new, old), new)
    others = sets[: len(old)]
    return _summed_up(deployment, sets[-1] if new is not None else None, others, conditions, now)


def _paused(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Next:
    next_ = _resized(deployment, new, old, conditions, now)
    if asked_for(deployment) is not None:
        return next_
    forgotten = _beyond_limit(deployment, next_.old)
    return Next(new=next_.new, old=next_.old, report=next_.report, forgotten=forgotten)


def _reported(
    deployment: Obj,
    new: ReplicaSet | None,
    old: Sequence[ReplicaSet],
    conditions: Conditions,
    now: datetime,
) -> Next:
    report = status.reported(deployment, new, _all(new, old), conditions, now)
    complete = status.is_complete(deployment, status.status_of(deployment))
    return Next(
        new=new,
        old=tuple(old),
        report=report,
        forgotten=_beyond_limit(deployment, old) if complete else (),
    )


def _beyond_limit(deployment: Obj, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Return the oldest sets beyond the history limit, but for those that have pods or may have."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None or limit == _ALL:
        return ()
    left = [one for one in old if not meta.is_deleting(one.seen)]
    left.sort(key=lambda one: (revision(one.seen) or 0, one.age))
    return tuple(one for one in left[: max(0, len(left) - int(limit))] if _is_idle(one))


def _is_idle(one: ReplicaSet) -> bool:
    observed = int((one.seen.get("status") or {}).get("observedGeneration") or 0)
    return not one.count("replicas") and not one.size and observed >= meta.generation(one.seen)


def _collided(deployment: Obj, occupant: Obj) -> Plan:
    """Return the plan that counts a name taken by somebody else, which makes for another name."""
    count = (collisions(deployment) or 0) + 1
    counted = change(deployment, {"status": {"collisionCount": count}}, subresource="status")
    return one_stage("count the collision", [counted], because=f"{meta.name(occupant)} is another's")


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """Say on the Deployment that its new set could not be made; a namespace that is ending takes none."""
    view = gather(world, ref)
    failures = serious(error)
    if view is None or not failures:
        return NOTHING
    deployment = view.deployment
    new, _ = divided(deployment, view.sets.held)
    if new is not None:
        return NOTHING
    message = f'Failed to create new replica set "{name_of_new(deployment)}": {failures[0]}'
    reason = "ReplicaSetCreateError"
    said: list[Action] = [Emit(event=warning(deployment, reason, message, by=BY, now=now))]
    if status.has_deadline(deployment):
        old = status.conditions_of(deployment)
        conditions = status.with_said(old, PROGRESSING, "False", reason, message, now)
        if conditions != old:
            patch = {"status": {"conditions": list(conditions)}}
            said.append(change(deployment, patch, subresource="status"))
    return one_stage("say so", said, because=message)


def pod_concerns(world: World, change: Change) -> Iterable[Ref]:
    """A pod that has gone or finished concerns the Deployment that waits for that before it makes new ones."""
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
        Watch(selects=only(*DEPLOYMENT), concerns=itself),
        Watch(selects=only(*REPLICA_SET), concerns=claimants(DEPLOYMENT, selects)),
        Watch(selects=only(*POD), concerns=pod_concerns),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
