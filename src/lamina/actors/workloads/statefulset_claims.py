"""
Whose the volume claims of a stateful set are.

A claim belongs to nobody and outlives everything, unless the set's retention
policy says otherwise: then the set owns it, so that it goes with the set, or the
pod does once its number is no longer wanted, so that it goes with the pod.

    when deleted   when scaled    the pod is wanted    the pod is not
    Retain         Retain         nobody               nobody
    Delete         Retain         the set              the set
    Retain         Delete         nobody               the pod
    Delete         Delete         the set              the pod

A claim that somebody else controls, or that names an owner of ours by name and
not by uid, is left alone.
"""

from __future__ import annotations

from lamina.core.plan import Patch, change_metadata
from lamina.objects import meta
from lamina.objects.types import Obj, OwnerRef

_RETAIN = "Retain"


def owners(stateful_set: Obj, pod: Obj, *, wanted: bool) -> list[OwnerRef]:
    """Return who owns the claims of a pod; `wanted` says whether its number still is."""
    on_deletion, on_scaling = _policy(stateful_set)
    if not wanted and on_scaling != _RETAIN:
        return [meta.owner_ref(pod, controller=True, blocks=True)]
    if on_deletion != _RETAIN:
        return [meta.owner_ref(stateful_set, controller=True, blocks=True)]
    return []


def correction(claim: Obj, stateful_set: Obj, pod: Obj, *, wanted: bool) -> Patch | None:
    """Return what makes a claim belong to whom it should, or None where it does or should be left alone."""
    refs = list(meta.owner_refs(claim))
    if any(_is_outdated(ref, stateful_set) or _is_outdated(ref, pod) for ref in refs):
        return None
    ours = {meta.uid(stateful_set), meta.uid(pod)}
    others = [ref for ref in refs if ref["uid"] not in ours]
    if is_contested(claim, stateful_set, pod):
        return change_metadata(claim, ownerReferences=others) if len(others) < len(refs) else None
    kept = [ref for ref in refs if ref["uid"] in ours]
    right = owners(stateful_set, pod, wanted=wanted)
    if {ref["uid"] for ref in kept} == {ref["uid"] for ref in right} and all(
        ref.get("controller") for ref in kept
    ):
        return None
    return change_metadata(claim, ownerReferences=[*others, *right])


def is_contested(claim: Obj, stateful_set: Obj, pod: Obj) -> bool:
    """Say whether somebody else controls a claim that a policy would have us own."""
    if _policy(stateful_set) == (_RETAIN, _RETAIN):
        return False
    ours = {meta.uid(stateful_set), meta.uid(pod)}
    return any(ref.get("controller") and ref["uid"] not in ours for ref in meta.owner_refs(claim))


def is_stale(claim: Obj, stateful_set: Obj, pod_name: str) -> bool:
    """Say whether a claim is about to go with an earlier pod of that name, and cannot serve the next."""
    if _policy(stateful_set)[1] == _RETAIN:
        return False
    return any(ref["kind"] == "Pod" and ref["name"] == pod_name for ref in meta.owner_refs(claim))


def _policy(stateful_set: Obj) -> tuple[str, str]:
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") or _RETAIN, policy.get("whenScaled") or _RETAIN


def _is_outdated(ref: OwnerRef, obj: Obj) -> bool:
    named = (ref["apiVersion"], ref["kind"], ref["name"])
    return named == (obj["apiVersion"], obj["kind"], meta.name(obj)) and ref["uid"] != meta.uid(obj)
