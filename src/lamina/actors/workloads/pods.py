"""
The state of pods as workload controllers see it, and the creation of pods.

A pod is active until it has finished or is being deleted, ready by its condition,
and available once it has been ready for minReadySeconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from lamina.objects import meta, names
from lamina.objects.digest import short
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Made, Obj

POD = GroupKind("", "Pod")

_NOT_YET = timedelta(0)
FINISHED = ("Succeeded", "Failed")
"""The phases of a pod that will not run again."""
_LONGEST_PREFIX = 58


def phase(pod: Obj) -> str:
    """Return the phase of a pod, Pending without one."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def is_finished(pod: Obj) -> bool:
    """Say whether a pod has succeeded or failed."""
    return phase(pod) in FINISHED


def is_active(pod: Obj) -> bool:
    """Say whether a pod has not finished and is not being deleted."""
    return not pod["metadata"].get("deletionTimestamp") and phase(pod) not in FINISHED


def is_terminating(pod: Obj) -> bool:
    """Say whether a pod is being deleted and has not finished."""
    return bool(pod["metadata"].get("deletionTimestamp")) and phase(pod) not in FINISHED


def is_ready(pod: Obj) -> bool:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return bool(condition["status"] == "True")
    return False


def ready_since(pod: Obj) -> datetime | None:
    """Return when a pod became ready; None where it is not, or has no transition time."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return moment(condition.get("lastTransitionTime")) if condition["status"] == "True" else None
    return None


def is_available(pod: Obj, min_ready_seconds: int, now: datetime) -> bool:
    """Say whether a pod has been ready for that long."""
    if not min_ready_seconds:
        return is_ready(pod)
    return available_in(pod, min_ready_seconds, now) == _NOT_YET


def available_in(pod: Obj, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Return the time until a pod is available, zero if it is; None where it is not ready."""
    if not min_ready_seconds:
        return _NOT_YET if is_ready(pod) else None
    since = ready_since(pod)
    return None if since is None else max(since + timedelta(seconds=min_ready_seconds) - now, _NOT_YET)


def prefix(owner: str) -> str:
    """Return the name prefix of an owner's pods, without a dash where that would be no valid name."""
    return f"{owner}-" if not names.in_prefix(names.subdomain, f"{owner}-") else owner


def free_names(owner: Obj, pods: Iterable[Obj], many: int) -> list[str]:
    """
    Return names for new pods of an owner, which has these pods already.

    They are a digest of the owner and its pods in the view. The same view
    gives the same names, so a plan executed twice creates each pod once; a
    new view gives new names, so that a deleted pod is not recreated by name.
    """
    known = list(pods)
    view = [
        meta.uid(owner),
        meta.resource_version(owner),
        sorted(meta.uid(pod) for pod in known),
    ]
    base = short(view, 32)
    start = prefix(meta.name(owner))[:_LONGEST_PREFIX]
    taken = {meta.name(pod) for pod in known}
    chosen: list[str] = []
    number = 0
    while len(chosen) < many:
        name = start + short([base, number], 5)
        number += 1
        if name not in taken:
            taken.add(name)
            chosen.append(name)
    return chosen


def from_template(owner: Obj, template: Obj, name: str, *, generated: bool = True) -> Made:
    """
    Return a pod of a template, controlled by its owner.

    `generated` adds the generateName of the owner's pods.
    """
    head = template.get("metadata") or {}
    metadata: Made = {"name": name, "namespace": meta.namespace(owner)}
    if generated:
        metadata["generateName"] = prefix(meta.name(owner))
    for field in ("labels", "annotations", "finalizers"):
        if head.get(field):
            metadata[field] = head[field]
    metadata["ownerReferences"] = [meta.owner_ref(owner, controller=True, blocks=True)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
