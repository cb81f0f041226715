"""
Proportional scaling, when the replicas of a Deployment change or it is paused.

Scaling only the new ReplicaSet up, or only the old ones down, would advance a
rollout that may be failing.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.actors.workloads.deployment.sets import (
    DESIRED,
    MOST,
    ReplicaSet,
    active,
    annotated_size,
    is_rolling,
    max_surge,
    oldest_first,
    replaced_by_name,
    total,
)
from lamina.actors.workloads.replica_sync import wanted
from lamina.objects.types import Obj


def is_resized(deployment: Obj, sets: Sequence[ReplicaSet]) -> bool:
    """Say whether the Deployment's replicas differ from its ReplicaSets' annotations."""
    desired = wanted(deployment)
    with_size_annotations = [annotated_size(one, DESIRED) for one in active(sets)]
    return any(size is not None and size != desired for size in with_size_annotations)


def scaled(deployment: Obj, sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> tuple[ReplicaSet, ...]:
    """Return the ReplicaSets with their next replicas; `new` is the one with the Deployment's template."""
    desired = wanted(deployment)
    growing = active(sets)
    if len(growing) <= 1:
        # The only one that has pods, or the newest if none has.
        only = growing[0] if growing else new or next(reversed(oldest_first(sets)), None)
        if only is None:
            return tuple(sets)
        return replaced_by_name(sets, [only.resized(desired, deployment).with_size_annotations(deployment)])
    if new is not None and _is_saturated(deployment, new):
        return replaced_by_name(sets, [one.resized(0, deployment) for one in growing if one.name != new.name])
    if not is_rolling(deployment):
        return tuple(sets)
    return replaced_by_name(sets, _proportionally(deployment, growing))


def _proportionally(deployment: Obj, growing: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    desired = wanted(deployment)
    allowed = desired + max_surge(deployment) if desired else 0
    to_add = allowed - total(growing)
    # The largest first. Of equals, the newer grows first and the older shrinks first.
    ordered = oldest_first(growing)
    if to_add > 0:
        ordered.reverse()
    ordered.sort(key=lambda one: -one.size)
    sizes: dict[str, int] = {}
    added = 0
    for one in ordered:
        share = _share(deployment, one, to_add, added) if to_add else 0
        sizes[one.name] = one.size + share
        added += share
    # The rest of the rounding is added to the largest.
    largest = ordered[0].name
    sizes[largest] = max(0, sizes[largest] + to_add - added)
    return [one.resized(sizes[one.name], deployment).with_size_annotations(deployment) for one in ordered]


def _share(deployment: Obj, one: ReplicaSet, to_add: int, added: int) -> int:
    """Return the part of `to_add` for one ReplicaSet."""
    left = to_add - added
    if not left:
        return 0
    fraction = _fraction(deployment, one)
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _fraction(deployment: Obj, one: ReplicaSet) -> int:
    desired = wanted(deployment)
    if not desired:
        return -one.size
    # Without the annotation, the Deployment's last reported replicas are used.
    before = annotated_size(one, MOST) or int((deployment.get("status") or {}).get("replicas") or 0)
    if not before:
        return 0
    # Halves are rounded up: the sizes are never negative.
    grown = (2 * one.size * (desired + max_surge(deployment)) + before) // (2 * before)
    return grown - one.size


def _is_saturated(deployment: Obj, new: ReplicaSet) -> bool:
    """Say whether a ReplicaSet has all the Deployment's replicas, all of them available."""
    desired = wanted(deployment)
    return new.size == desired == annotated_size(new, DESIRED) == new.count("availableReplicas")
