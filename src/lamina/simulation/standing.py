"""
How an object stands that nobody rolls anything out for, by what it says of itself.

Who has an account in some family is not judged by its conditions: the family knows,
and what they mean there is its own business. But a workload that somebody decorates
is one still, and a family that rolls nothing does not say how its children do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lamina.families.manifestwork.names import WORK
from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Obj

_BAD: dict[str, str] = {
    "Applied": "False",
    "Available": "False",
    "Ready": "False",
    "Failed": "True",
    "Degraded": "True",
    "ReplicaFailure": "True",
}
_DEPLOYMENT, _POD, _JOB = GroupKind("apps", "Deployment"), GroupKind("", "Pod"), GroupKind("batch", "Job")
# Nobody agrees on what this one means: a Deployment says False when it has given up, and
# a work says so when it is done. Of others it says neither.
_BAD_PROGRESS: Mapping[GroupKind, str] = {_DEPLOYMENT: "False", WORK: "True"}
# How many they have, most of these say by nothing else, and a Deployment only once it has given up.
_COUNTS: Mapping[GroupKind, tuple[str, ...]] = {
    _DEPLOYMENT: ("updatedReplicas", "availableReplicas"),
    GroupKind("apps", "ReplicaSet"): ("readyReplicas",),
    GroupKind("apps", "StatefulSet"): ("readyReplicas",),
    GroupKind("", "ReplicationController"): ("readyReplicas",),
    GroupKind("apps", "DaemonSet"): ("numberReady",),
}
_WORDS = {"updatedReplicas": "updated", "availableReplicas": "available"}


def complaint(kind: GroupKind, obj: Obj) -> tuple[str, str] | None:
    """Return what an object says that is not well, and the sentence that goes with it; None if it is well."""
    if kind == _POD:
        return _unwell(obj)
    return _bad_condition(kind, obj) or _lacking(kind, obj)


def by_controller(objects: Iterable[Obj]) -> Mapping[str, Sequence[Obj]]:
    """Return who is controlled by whom, by the uid of those."""
    found: dict[str, list[Obj]] = {}
    for obj in objects:
        if (owner := meta.controller_of(obj)) is not None:
            found.setdefault(owner["uid"], []).append(obj)
    return found


def shortcoming(owner: Obj, children: Iterable[Obj]) -> tuple[str, str] | None:
    """Return what is not well with an owner that is a workload, or with one of its children."""
    kind = _kind(owner)
    if (kind in _COUNTS or kind in (_POD, _JOB)) and (wrong := complaint(kind, owner)) is not None:
        return wrong
    for child in children:
        if (wrong := complaint(_kind(child), child)) is not None:
            state, because = wrong
            return state, f"{meta.ref(child)}: {because or state}"
    return None


def _kind(obj: Obj) -> GroupKind:
    ref = meta.ref(obj)
    return GroupKind(ref.group, ref.kind)


def _bad_condition(kind: GroupKind, obj: Obj) -> tuple[str, str] | None:
    said = (obj.get("status") or {}).get("conditions") or ()
    bad = _BAD | {"Progressing": _BAD_PROGRESS[kind]} if kind in _BAD_PROGRESS else _BAD
    for name, status in bad.items():
        found = conditions.find(said, name)
        if found is not None and found["status"] == status:
            return f"{name}={status}", found.get("message", "")
    return None


def _lacking(kind: GroupKind, obj: Obj) -> tuple[str, str] | None:
    """Return what a workload lacks; one that somebody paused is as they want it."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if spec.get("paused"):
        return None
    wanted = status.get("desiredNumberScheduled", 0) if kind.kind == "DaemonSet" else spec.get("replicas", 1)
    for name in _COUNTS.get(kind, ()):
        if (count := status.get(name, 0)) < wanted:
            word = _WORDS.get(name, "ready")
            return f"not {word}", f"{count} of {wanted} are {word}"
    return None


def _unwell(pod: Obj) -> tuple[str, str] | None:
    """Return what is wrong with a pod; one that has ended well is not ready, and is well."""
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return None
    for name in ("PodScheduled", "Ready"):
        found = conditions.find(status.get("conditions") or (), name)
        if found is not None and found["status"] == "False":
            return f"{name}=False", found.get("message", "")
    return None if status.get("phase") == "Running" else (status.get("phase") or "Pending", "")
