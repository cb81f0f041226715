"""
When the size of a Deployment changes, or it is paused: every set keeps its share.

Were only the new set to grow, or only the old ones to shrink, a change of size
would hurry a rollout along that may be going wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.actors.workloads.deployment.sets import (
    DESIRED,
    MOST,
    ReplicaSet,
    active,
    exchanged,
    is_rolling,
    max_surge,
    noted_size,
    oldest_first,
    total,
)
from lamina.actors.workloads.replicas import wanted
from lamina.objects.types import Obj


def is_resized(deployment: Obj, sets: Sequence[ReplicaSet]) -> bool:
    """Say whether the Deployment has another size than its sets were last told."""
    desired = wanted(deployment)
    noted = [noted_size(one, DESIRED) for one in active(sets)]
    return any(size is not None and size != desired for size in noted)


def scaled(deployment: Obj, sets: Sequence[ReplicaSet], new: ReplicaSet | None) -> tuple[ReplicaSet, ...]:
    """Return the sets with the sizes they are to have now; `new` is the one of the Deployment's template."""
    desired = wanted(deployment)
    growing = active(sets)
    if len(growing) <= 1:
        # The only one that has pods, or the newest if none has.
        only = growing[0] if growing else new or next(reversed(oldest_first(sets)), None)
        if only is None:
            return tuple(sets)
        return exchanged(sets, [only.resized(desired, deployment).noted(deployment)])
    if new is not None and _is_saturated(deployment, new):
        return exchanged(sets, [one.resized(0, deployment) for one in growing if one.name != new.name])
    if not is_rolling(deployment):
        return tuple(sets)
    return exchanged(sets, _shared_out(deployment, growing))


def _shared_out(deployment: Obj, growing: Sequence[ReplicaSet]) -> list[ReplicaSet]:
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
    # What rounding left over goes to the largest.
    largest = ordered[0].name
    sizes[largest] = max(0, sizes[largest] + to_add - added)
    return [one.resized(sizes[one.name], deployment).noted(deployment) for one in ordered]


def _share(deployment: Obj, one: ReplicaSet, to_add: int, added: int) -> int:
    """Return by how much one set grows, or shrinks, out of what is to be added in all."""
    left = to_add - added
    if not left:
        return 0
    fraction = _fraction(deployment, one)
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _fraction(deployment: Obj, one: ReplicaSet) -> int:
    desired = wanted(deployment)
    if not desired:
        return -one.size
    # Where the note is gone, the size that the Deployment last reported has to do.
    before = noted_size(one, MOST) or int((deployment.get("status") or {}).get("replicas") or 0)
    if not before:
        return 0
    # Halves are rounded up: the sizes are never negative.
    grown = (2 * one.size * (desired + max_surge(deployment)) + before) // (2 * before)
    return grown - one.size


def _is_saturated(deployment: Obj, new: ReplicaSet) -> bool:
    """Say whether a set can do without the others: it has all the pods that are wanted, and they are available."""
    desired = wanted(deployment)
    return new.size == desired == noted_size(new, DESIRED) == new.count("availableReplicas")
