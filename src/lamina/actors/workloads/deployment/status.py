"""
The status of a Deployment: its counts, and the conditions of its rollout.

Progress is any improvement between the last status and the new one. A rollout
without progress for progressDeadlineSeconds has timed out; a paused one cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.actors.workloads.deployment.sets import ReplicaSet, counted, max_unavailable, total
from lamina.actors.workloads.replica_sync import wanted
from lamina.objects import meta
from lamina.objects.times import moment, stamp
from lamina.objects.types import Made, Obj

Conditions: TypeAlias = tuple[Obj, ...]

PROGRESSING = "Progressing"
AVAILABLE = "Available"
FAILURE = "ReplicaFailure"

TIMED_OUT = "ProgressDeadlineExceeded"
COMPLETE = "NewReplicaSetAvailable"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"

_NEVER = 2**31 - 1
_AFTER_DEADLINE = timedelta(milliseconds=10)


class Report(Struct, frozen=True, kw_only=True):
    """A status to write, and when to check the progress deadline."""

    status: Made
    requeue_after: timedelta | None = None


def status_of(deployment: Obj) -> Obj:
    return deployment.get("status") or {}


def conditions_of(deployment: Obj) -> Conditions:
    return tuple(status_of(deployment).get("conditions") or ())


def found(conditions: Conditions, name: str) -> Obj | None:
    return next((one for one in conditions if one.get("type") == name), None)


def with_condition(
    conditions: Conditions, name: str, status: str, reason: str, message: str, now: datetime
) -> Conditions:
    """Return the conditions with this one last, or unchanged if it has this status and reason."""
    old = found(conditions, name)
    if old is not None and (old["status"], old.get("reason")) == (status, reason):
        return conditions
    return _replaced(conditions, _condition(old, name, status, reason, message, now))


def without(conditions: Conditions, name: str) -> Conditions:
    return tuple(one for one in conditions if one.get("type") != name)


def has_deadline(deployment: Obj) -> bool:
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return seconds is not None and int(seconds) != _NEVER


def is_complete(deployment: Obj, status: Obj) -> bool:
    """Say whether all replicas are of the new ReplicaSet and available, and no other pod is left."""
    desired = wanted(deployment)
    counts = [int(status.get(field) or 0) for field in ("updatedReplicas", "replicas", "availableReplicas")]
    observed = int(status.get("observedGeneration") or 0) >= meta.generation(deployment)
    return observed and all(count == desired for count in counts)


def with_pause(deployment: Obj, conditions: Conditions, now: datetime) -> Conditions:
    """Return the conditions with DeploymentPaused or DeploymentResumed; an exceeded deadline stays."""
    if not has_deadline(deployment):
        return conditions
    current = found(conditions, PROGRESSING)
    reason = current.get("reason") if current is not None else ""
    paused = bool(deployment["spec"].get("paused"))
    if reason == TIMED_OUT or paused == (reason == PAUSED):
        return conditions
    if paused:
        return with_condition(conditions, PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    return with_condition(conditions, PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)


def calculate_status(
    deployment: Obj, new: ReplicaSet | None, sets: Sequence[ReplicaSet], conditions: Conditions, now: datetime
) -> Made:
    """Return the status with the ReplicaSets' sums, and the Available condition."""
    available = counted(sets, "availableReplicas")
    counts = {
        "observedGeneration": meta.generation(deployment),
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": counted([new], "replicas"),
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(sets) - available),
    }
    status: Made = {field: count for field, count in counts.items() if count}
    terminating = _terminating(sets)
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    collisions = status_of(deployment).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    if available >= wanted(deployment) - max_unavailable(deployment):
        current = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        current = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = list(with_condition(conditions, AVAILABLE, *current, now))
    return status


def rollout_status(
    deployment: Obj, new: ReplicaSet | None, sets: Sequence[ReplicaSet], conditions: Conditions, now: datetime
) -> Report:
    """Return the status with the conditions of the rollout."""
    status = calculate_status(deployment, new, sets, conditions, now)
    current: Conditions = tuple(status["conditions"])
    if not has_deadline(deployment):
        current = without(current, PROGRESSING)
    elif not _is_over(status, found(conditions, PROGRESSING)):
        current = _progress(deployment, new, status, current, now)
    failure = _failure(new, sets)
    current = without(current, FAILURE) if failure is None else _with_failure(current, failure)
    if current:
        status["conditions"] = list(current)
    else:
        del status["conditions"]
    return Report(status=status, requeue_after=_deadline(deployment, status, current, now))


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """Return the number of terminating pods; None where an observed ReplicaSet does not report it."""
    terminating = 0
    for one in sets:
        status = one.observed.get("status") or {}
        if "terminatingReplicas" in status:
            terminating += int(status["terminatingReplicas"])
        elif status.get("observedGeneration"):
            return None
    return terminating


def _is_over(status: Obj, progressing: Obj | None) -> bool:
    """Say whether the latest rollout was completed earlier: scaling is not a rollout."""
    is_updated = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return is_updated and progressing is not None and progressing.get("reason") == COMPLETE


def _progress(
    deployment: Obj, new: ReplicaSet | None, status: Obj, current: Conditions, now: datetime
) -> Conditions:
    subject = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{meta.name(deployment)}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_condition(current, PROGRESSING, "True", COMPLETE, message, now)
    if _is_better(status_of(deployment), status):
        # Updated each time: the deadline starts here.
        old = found(current, PROGRESSING)
        message = f"{subject} is progressing."
        return _replaced(current, _condition(old, PROGRESSING, "True", "ReplicaSetUpdated", message, now))
    if _is_timed_out(deployment, current, now):
        message = f"{subject} has timed out progressing."
        return with_condition(current, PROGRESSING, "False", TIMED_OUT, message, now)
    return current


def _is_better(before: Obj, after: Obj) -> bool:
    def old_ones(status: Obj) -> int:
        return int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)

    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_ones(after) < old_ones(before) or any(
        (after.get(field) or 0) > (before.get(field) or 0) for field in more
    )


def _is_timed_out(deployment: Obj, current: Conditions, now: datetime) -> bool:
    progressing = found(current, PROGRESSING)
    if progressing is None or progressing.get("reason") == COMPLETE:
        return False
    if progressing.get("reason") == TIMED_OUT:
        return True
    return _ends(deployment, progressing, now) < now


def _deadline(deployment: Obj, status: Obj, current: Conditions, now: datetime) -> timedelta | None:
    """Return the time until the progress deadline; None where it does not apply."""
    progressing = found(current, PROGRESSING)
    if progressing is None or not has_deadline(deployment) or is_complete(deployment, status):
        return None
    if progressing.get("reason") in (COMPLETE, TIMED_OUT):
        return None
    return max(_ends(deployment, progressing, now) - now, timedelta(0)) + _AFTER_DEADLINE


def _ends(deployment: Obj, progressing: Obj, now: datetime) -> datetime:
    since = moment(progressing.get("lastUpdateTime")) or now
    return since + timedelta(seconds=int(deployment["spec"]["progressDeadlineSeconds"]))


def _failure(new: ReplicaSet | None, sets: Sequence[ReplicaSet]) -> Obj | None:
    """Return the ReplicaFailure condition of a ReplicaSet, the new one before the others."""
    for one in ([new] if new is not None else []) + list(sets):
        for condition in (one.observed.get("status") or {}).get("conditions") or ():
            if condition.get("type") == FAILURE:
                return {**condition, "lastUpdateTime": condition.get("lastTransitionTime")}
    return None


def _with_failure(current: Conditions, failure: Obj) -> Conditions:
    old = found(current, FAILURE)
    if old is not None and (old["status"], old.get("reason")) == (failure["status"], failure.get("reason")):
        return current
    return _replaced(current, failure)


def _condition(
    old: Obj | None, name: str, status: str, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    kept = old.get("lastTransitionTime") if old is not None and old["status"] == status else None
    return {
        "type": name,
        "status": status,
        "lastUpdateTime": stamp(now),
        "lastTransitionTime": kept or stamp(now),
        "reason": reason,
        "message": message,
    }


def _replaced(conditions: Conditions, condition: Obj) -> Conditions:
    return (*without(conditions, condition["type"]), condition)
