"""
The owner references of a StatefulSet's volume claims, by its retention policy.

A claim has no owner and is retained, unless the policy says otherwise: then the
StatefulSet owns it, and deletes it with itself, or a surplus pod owns it, and deletes
it when the set is scaled down.

    whenDeleted    whenScaled     owner of a wanted pod's claim    of a surplus pod's
    Retain         Retain         none                             none
    Delete         Retain         the set                          the set
    Retain         Delete         none                             the pod
    Delete         Delete         the set                          the pod

A claim with another controller, or with an owner reference that has the right name
and another uid, is left alone.
"""

from __future__ import annotations

from lamina.core.model.plan import Patch, change_metadata
from lamina.objects import meta
from lamina.objects.types import Obj, OwnerRef

_RETAIN = "Retain"


def owners(stateful_set: Obj, pod: Obj, *, wanted: bool) -> list[OwnerRef]:
    """Return the owner references of a pod's claims; `wanted` says whether its ordinal is below the replicas."""
    on_deletion, on_scaling = _policy(stateful_set)
    if not wanted and on_scaling != _RETAIN:
        return [meta.owner_ref(pod, controller=True, blocks=True)]
    if on_deletion != _RETAIN:
        return [meta.owner_ref(stateful_set, controller=True, blocks=True)]
    return []


def correction(claim: Obj, stateful_set: Obj, pod: Obj, *, wanted: bool) -> Patch | None:
    """Return the patch of a claim's owner references, None where they are right or left alone."""
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
    """Say whether a claim that the policy gives an owner has another controller."""
    if _policy(stateful_set) == (_RETAIN, _RETAIN):
        return False
    ours = {meta.uid(stateful_set), meta.uid(pod)}
    return any(ref.get("controller") and ref["uid"] not in ours for ref in meta.owner_refs(claim))


def is_stale(claim: Obj, stateful_set: Obj, pod_name: str) -> bool:
    """Say whether a claim is owned by an earlier pod of that name, with which it will be deleted."""
    if _policy(stateful_set)[1] == _RETAIN:
        return False
    return any(ref["kind"] == "Pod" and ref["name"] == pod_name for ref in meta.owner_refs(claim))


def _policy(stateful_set: Obj) -> tuple[str, str]:
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") or _RETAIN, policy.get("whenScaled") or _RETAIN


def _is_outdated(ref: OwnerRef, obj: Obj) -> bool:
    named = (ref["apiVersion"], ref["kind"], ref["name"])
    return named == (obj["apiVersion"], obj["kind"], meta.name(obj)) and ref["uid"] != meta.uid(obj)
