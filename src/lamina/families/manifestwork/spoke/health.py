"""
How an object of a kind that is known does, for works without rules of their own.

    Deployment, StatefulSet,     settled once its controller has seen what is wanted, and all
    DaemonSet                    replicas are updated and available
    Job                          settled once it has finished, and while it runs without failures
    anything else                settled once it is there

A job that has failed, and a deployment that took too long, are degraded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Obj


class Health(Struct, frozen=True):
    """How an object does; `waiting` says what it waits for, `failed` what went wrong, nothing that all is well."""

    waiting: str = ""
    failed: str = ""


WELL = Health()


def health(obj: Obj) -> Health:
    """Return how an object does."""
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    judge = _JUDGES.get(GroupKind(group, str(obj.get("kind") or "")))
    return judge(obj) if judge is not None else WELL


def _counted(status: Obj, field: str) -> int:
    return status.get(field) or 0


def _unseen(obj: Obj, status: Obj) -> bool:
    return _counted(status, "observedGeneration") < meta.generation(obj)


def _replicas(obj: Obj) -> int:
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def _deployment(obj: Obj) -> Health:
    status, wanted = obj.get("status") or {}, _replicas(obj)
    if _unseen(obj, status):
        return Health("its controller has not seen it yet")
    progressing = conditions.find(status.get("conditions") or (), "Progressing")
    if progressing is not None and progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health("it took too long", progressing.get("message") or "ProgressDeadlineExceeded")
    updated, available = _counted(status, "updatedReplicas"), _counted(status, "availableReplicas")
    if updated < wanted:
        return Health(f"{updated} of {wanted} replicas are updated")
    if _counted(status, "replicas") > updated:
        return Health("old replicas are still there")
    if available < wanted:
        return Health(f"{available} of {wanted} replicas are available")
    return WELL


def _stateful_set(obj: Obj) -> Health:
    status, spec, wanted = obj.get("status") or {}, obj.get("spec") or {}, _replicas(obj)
    if _unseen(obj, status):
        return Health("its controller has not seen it yet")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") != "OnDelete":
        held_back = (strategy.get("rollingUpdate") or {}).get("partition") or 0
        due, updated = max(0, wanted - held_back), _counted(status, "updatedReplicas")
        if updated < due:
            return Health(f"{updated} of {due} replicas are updated")
    available = _counted(status, "availableReplicas" if "availableReplicas" in status else "readyReplicas")
    return WELL if available >= wanted else Health(f"{available} of {wanted} replicas are available")


def _daemon_set(obj: Obj) -> Health:
    status = obj.get("status") or {}
    if _unseen(obj, status):
        return Health("its controller has not seen it yet")
    wanted = _counted(status, "desiredNumberScheduled")
    updated, available = _counted(status, "updatedNumberScheduled"), _counted(status, "numberAvailable")
    if (((obj.get("spec") or {}).get("updateStrategy") or {}).get("type")) != "OnDelete" and updated < wanted:
        return Health(f"{updated} of {wanted} pods are updated")
    return WELL if available >= wanted else Health(f"{available} of {wanted} pods are available")


def _job(obj: Obj) -> Health:
    status = obj.get("status") or {}
    said = status.get("conditions") or ()
    failed = conditions.find(said, "Failed")
    if failed is not None and failed.get("status") == "True":
        return Health("it has failed", failed.get("message") or failed.get("reason") or "it has failed")
    if conditions.is_true(said, "Complete") or not _counted(status, "failed"):
        return WELL
    return Health(f"{_counted(status, 'failed')} pods have failed")


_JUDGES: Mapping[GroupKind, Callable[[Obj], Health]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("batch", "Job"): _job,
}
