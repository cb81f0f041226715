"""
What a Deployment says of itself: how many pods of which kind, and how its rollout is going.

Progress is anything that gets better between what the Deployment last said and
what is seen now. A rollout that sees none for as long as its deadline says has
timed out; one that is paused cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from msgspec import Struct

from lamina.actors.workloads.deployment.sets import ReplicaSet, counted, max_unavailable, total
from lamina.actors.workloads.replicas import wanted
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
_A_MOMENT = timedelta(milliseconds=10)


class Report(Struct, frozen=True, kw_only=True):
    """A status to give a Deployment, and when to look whether it has timed out."""

    status: Made
    look_again: timedelta | None = None


def status_of(deployment: Obj) -> Obj:
    return deployment.get("status") or {}


def conditions_of(deployment: Obj) -> Conditions:
    return tuple(status_of(deployment).get("conditions") or ())


def found(conditions: Conditions, name: str) -> Obj | None:
    return next((one for one in conditions if one.get("type") == name), None)


def with_said(
    conditions: Conditions, name: str, status: str, reason: str, message: str, now: datetime
) -> Conditions:
    """Return the conditions with this one last, or as they are if it says the same by status and reason."""
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
    """Say whether all the pods that are wanted are of the new set and available, and no other is left."""
    desired = wanted(deployment)
    counts = [int(status.get(field) or 0) for field in ("updatedReplicas", "replicas", "availableReplicas")]
    seen = int(status.get("observedGeneration") or 0) >= meta.generation(deployment)
    return seen and all(count == desired for count in counts)


def with_pause(deployment: Obj, conditions: Conditions, now: datetime) -> Conditions:
    """Return the conditions with the note that it is paused, or is no longer; a time-out that was said stands."""
    if not has_deadline(deployment):
        return conditions
    said = found(conditions, PROGRESSING)
    reason = said.get("reason") if said is not None else ""
    paused = bool(deployment["spec"].get("paused"))
    if reason == TIMED_OUT or paused == (reason == PAUSED):
        return conditions
    if paused:
        return with_said(conditions, PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    return with_said(conditions, PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)


def summed_up(
    deployment: Obj, new: ReplicaSet | None, sets: Sequence[ReplicaSet], conditions: Conditions, now: datetime
) -> Made:
    """Return the status that adds up the sets, and says whether enough pods are available."""
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
        said = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        said = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = list(with_said(conditions, AVAILABLE, *said, now))
    return status


def reported(
    deployment: Obj, new: ReplicaSet | None, sets: Sequence[ReplicaSet], conditions: Conditions, now: datetime
) -> Report:
    """Return the status of a Deployment that is rolling out, or has."""
    status = summed_up(deployment, new, sets, conditions, now)
    said: Conditions = tuple(status["conditions"])
    if not has_deadline(deployment):
        said = without(said, PROGRESSING)
    elif not _is_over(status, found(conditions, PROGRESSING)):
        said = _progress(deployment, new, status, said, now)
    failure = _failure(new, sets)
    said = without(said, FAILURE) if failure is None else _with_failure(said, failure)
    if said:
        status["conditions"] = list(said)
    else:
        del status["conditions"]
    return Report(status=status, look_again=_deadline(deployment, status, said, now))


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """Return how many pods are on their way out; None where a set that has a status does not say."""
    terminating = 0
    for one in sets:
        status = one.seen.get("status") or {}
        if "terminatingReplicas" in status:
            terminating += int(status["terminatingReplicas"])
        elif status.get("observedGeneration"):
            return None
    return terminating


def _is_over(status: Obj, progressing: Obj | None) -> bool:
    """Say whether the latest rollout was completed earlier: a change of size is no rollout."""
    whole = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return whole and progressing is not None and progressing.get("reason") == COMPLETE


def _progress(
    deployment: Obj, new: ReplicaSet | None, status: Obj, said: Conditions, now: datetime
) -> Conditions:
    whose = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{meta.name(deployment)}"'
    if is_complete(deployment, status):
        message = f"{whose} has successfully progressed."
        return with_said(said, PROGRESSING, "True", COMPLETE, message, now)
    if _is_better(status_of(deployment), status):
        # Said anew each time: the deadline counts from here.
        old = found(said, PROGRESSING)
        message = f"{whose} is progressing."
        return _replaced(said, _condition(old, PROGRESSING, "True", "ReplicaSetUpdated", message, now))
    if _is_timed_out(deployment, said, now):
        message = f"{whose} has timed out progressing."
        return with_said(said, PROGRESSING, "False", TIMED_OUT, message, now)
    return said


def _is_better(before: Obj, after: Obj) -> bool:
    def old_ones(status: Obj) -> int:
        return int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)

    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_ones(after) < old_ones(before) or any(
        (after.get(field) or 0) > (before.get(field) or 0) for field in more
    )


def _is_timed_out(deployment: Obj, said: Conditions, now: datetime) -> bool:
    progressing = found(said, PROGRESSING)
    if progressing is None or progressing.get("reason") == COMPLETE:
        return False
    if progressing.get("reason") == TIMED_OUT:
        return True
    return _ends(deployment, progressing, now) < now


def _deadline(deployment: Obj, status: Obj, said: Conditions, now: datetime) -> timedelta | None:
    """Return when the rollout will have timed out if nothing happens; None where it cannot."""
    progressing = found(said, PROGRESSING)
    if progressing is None or not has_deadline(deployment) or is_complete(deployment, status):
        return None
    if progressing.get("reason") in (COMPLETE, TIMED_OUT):
        return None
    return max(_ends(deployment, progressing, now) - now, timedelta(0)) + _A_MOMENT


def _ends(deployment: Obj, progressing: Obj, now: datetime) -> datetime:
    since = moment(progressing.get("lastUpdateTime")) or now
    return since + timedelta(seconds=int(deployment["spec"]["progressDeadlineSeconds"]))


def _failure(new: ReplicaSet | None, sets: Sequence[ReplicaSet]) -> Obj | None:
    """Return what keeps a set from having its pods, the new one before the others."""
    for one in ([new] if new is not None else []) + list(sets):
        for condition in (one.seen.get("status") or {}).get("conditions") or ():
            if condition.get("type") == FAILURE:
                return {**condition, "lastUpdateTime": condition.get("lastTransitionTime")}
    return None


def _with_failure(said: Conditions, failure: Obj) -> Conditions:
    old = found(said, FAILURE)
    if old is not None and (old["status"], old.get("reason")) == (failure["status"], failure.get("reason")):
        return said
    return _replaced(said, failure)


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
