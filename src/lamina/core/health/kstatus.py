"""
Health of objects of well-known kinds, where no rule of a user decides.

    Deployment, StatefulSet,     settled once its controller has observed its spec, and all
    DaemonSet                    replicas are updated and available
    ReplicaSet,                  settled once its controller has observed its spec, and as many
    ReplicationController        replicas as wanted exist and are available
    Pod                          settled once it is ready, or has succeeded
    Job                          settled once it has finished, and while it runs without failures
    any other                    settled once it exists

A job or pod that has failed, and a deployment past its progress deadline, have failed.

What the conditions of any other kind report is a second function: a condition of the
same name means something else in some kinds, and rollouts must not wait for those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Obj


class Health(Struct, frozen=True):
    """The health of an object: what it waits for, or how it failed; neither where it is settled."""

    waiting: str = ""
    failed: str = ""


SETTLED = Health()


def health(obj: Obj) -> Health:
    """Return the health of an object."""
    judge = _JUDGES.get(_kind(obj))
    return judge(obj) if judge is not None else SETTLED


def is_well_known(obj: Obj) -> bool:
    """Say whether an object is of a well-known kind."""
    return _kind(obj) in _JUDGES


def reported_health(obj: Obj) -> Health:
    """Return the health that an object of any kind reports in conditions with usual names."""
    reported = conditions.of(obj)
    for name, status in _UNHEALTHY.items():
        found = conditions.find(reported, name)
        if found is not None and found.get("status") == status:
            why = found.get("message") or found.get("reason")
            message = f"{name} is {status}: {why}" if why else f"{name} is {status}"
            return Health(message, message if status == "True" else "")
    return SETTLED


_UNHEALTHY: Mapping[str, str] = {
    "Failed": "True",
    "Degraded": "True",
    "ReplicaFailure": "True",
    "Applied": "False",
    "Available": "False",
    "Ready": "False",
}
"""The status with which a condition says that its object has failed (True) or is not ready (False)."""


def _kind(obj: Obj) -> GroupKind:
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    return GroupKind(group, str(obj.get("kind") or ""))


def _counted(status: Obj, field: str) -> int:
    return status.get(field) or 0


def _is_unobserved(obj: Obj, status: Obj) -> bool:
    return _counted(status, "observedGeneration") < meta.generation(obj)


def _replicas(obj: Obj) -> int:
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def _refusal(obj: Obj) -> str:
    """Return why the replicas that are missing could not be created, as the rest of a message."""
    found = conditions.find(conditions.of(obj), "ReplicaFailure")
    if found is None or found.get("status") != "True" or not found.get("message"):
        return ""
    return f": {found['message']}"


def _deployment(obj: Obj) -> Health:
    status, wanted = obj.get("status") or {}, _replicas(obj)
    if _is_unobserved(obj, status):
        return Health("its controller has not observed its spec yet")
    progressing = conditions.find(status.get("conditions") or (), "Progressing")
    if progressing is not None and progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health("it took too long", progressing.get("message") or "ProgressDeadlineExceeded")
    updated, available = _counted(status, "updatedReplicas"), _counted(status, "availableReplicas")
    if updated < wanted:
        return Health(f"{updated} of {wanted} replicas are updated{_refusal(obj)}")
    if _counted(status, "replicas") > updated:
        return Health("old replicas are still running")
    if available < wanted:
        return Health(f"{available} of {wanted} replicas are available{_refusal(obj)}")
    return SETTLED


def _replica_set(obj: Obj) -> Health:
    status, wanted = obj.get("status") or {}, _replicas(obj)
    if _is_unobserved(obj, status):
        return Health("its controller has not observed its spec yet")
    if _counted(status, "replicas") > wanted:
        return Health(f"{_counted(status, 'replicas')} replicas are still running, and {wanted} are wanted")
    available = _counted(status, "availableReplicas")
    if available < wanted:
        return Health(f"{available} of {wanted} replicas are available{_refusal(obj)}")
    return SETTLED


def _stateful_set(obj: Obj) -> Health:
    status, spec, wanted = obj.get("status") or {}, obj.get("spec") or {}, _replicas(obj)
    if _is_unobserved(obj, status):
        return Health("its controller has not observed its spec yet")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") != "OnDelete":
        held_back = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        due, updated = max(0, wanted - held_back), _counted(status, "updatedReplicas")
        if updated < due:
            return Health(f"{updated} of {due} replicas are updated")
    available = _counted(status, "availableReplicas" if "availableReplicas" in status else "readyReplicas")
    return SETTLED if available >= wanted else Health(f"{available} of {wanted} replicas are available")


def _daemon_set(obj: Obj) -> Health:
    status = obj.get("status") or {}
    if _is_unobserved(obj, status):
        return Health("its controller has not observed its spec yet")
    wanted = _counted(status, "desiredNumberScheduled")
    updated, available = _counted(status, "updatedNumberScheduled"), _counted(status, "numberAvailable")
    if (((obj.get("spec") or {}).get("updateStrategy") or {}).get("type")) != "OnDelete" and updated < wanted:
        return Health(f"{updated} of {wanted} pods are updated")
    return SETTLED if available >= wanted else Health(f"{available} of {wanted} pods are available")


def _pod(obj: Obj) -> Health:
    status, reported = obj.get("status") or {}, conditions.of(obj)
    match status.get("phase"):
        case "Succeeded":
            return SETTLED
        case "Failed":
            return Health("it has failed", status.get("message") or status.get("reason") or "it has failed")
    if conditions.is_true(reported, "Ready"):
        return SETTLED
    for name, waiting in (("PodScheduled", "it is not scheduled"), ("Ready", "it is not ready")):
        found = conditions.find(reported, name)
        if found is not None and found.get("status") == "False":
            return Health(f"{waiting}: {found['message']}" if found.get("message") else waiting)
    return Health("it is not ready")


def _job(obj: Obj) -> Health:
    status = obj.get("status") or {}
    said = status.get("conditions") or ()
    failed = conditions.find(said, "Failed")
    if failed is not None and failed.get("status") == "True":
        return Health("it has failed", failed.get("message") or failed.get("reason") or "it has failed")
    if conditions.is_true(said, "Complete") or not _counted(status, "failed"):
        return SETTLED
    return Health(f"{_counted(status, 'failed')} pods have failed")


_JUDGES: Mapping[GroupKind, Callable[[Obj], Health]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "ReplicaSet"): _replica_set,
    GroupKind("", "ReplicationController"): _replica_set,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("", "Pod"): _pod,
    GroupKind("batch", "Job"): _job,
}
