"""
The RollingUpdate strategy: the new ReplicaSet is scaled up within maxSurge, then the old ones down.

There are never more pods than the replicas and maxSurge together, and available
pods are only removed while the minimum stays available. Old pods that are not
available are removed first.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.actors.workloads.deployment.new_replicaset import new_size
from lamina.actors.workloads.deployment.sets import (
    ReplicaSet,
    active,
    max_unavailable,
    oldest_first,
    replaced_by_name,
    total,
)
from lamina.actors.workloads.replica_sync import wanted
from lamina.objects.types import Obj


def rolling_update(
    deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]
) -> tuple[ReplicaSet, tuple[ReplicaSet, ...]]:
    """Return the new ReplicaSet and the old ones with their next replicas."""
    grown = _grown(deployment, new, old)
    if new.exists and grown.size != new.size:
        return grown, tuple(old)
    return grown, _shrunk(deployment, grown, old)


def _grown(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> ReplicaSet:
    desired = wanted(deployment)
    if new.size == desired or not new.exists:
        return new
    return new.resized(desired if new.size > desired else new_size(deployment, new, old), deployment)


def _shrunk(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    minimum = wanted(deployment) - max_unavailable(deployment)
    # New pods that are not available yet do not allow the removal of old ones,
    # which would reduce availability.
    unready = new.size - new.count("availableReplicas")
    spare = total([new, *old]) - minimum - unready
    running = oldest_first(active(old))
    if spare <= 0 or not running:
        return tuple(old)
    cleaned = _without_unavailable(deployment, running, spare)
    spare = sum(_available(one) for one in [new, *cleaned]) - minimum
    return replaced_by_name(old, _less(deployment, cleaned, spare))


def _available(one: ReplicaSet) -> int:
    """Return the available pods of a ReplicaSet, without those it is already scaled down by."""
    return min(one.count("availableReplicas"), wanted(one.observed))


def _without_unavailable(deployment: Obj, running: Sequence[ReplicaSet], spare: int) -> list[ReplicaSet]:
    """Return the ReplicaSets scaled down by unavailable pods, at most `spare` of them."""
    cleaned: list[ReplicaSet] = []
    for one in running:
        less = max(0, min(spare, one.size - _available(one)))
        spare -= less
        cleaned.append(one.resized(one.size - less, deployment))
    return cleaned


def _less(deployment: Obj, running: Sequence[ReplicaSet], spare: int) -> list[ReplicaSet]:
    """Return the ReplicaSets scaled down by `spare` pods, the oldest first."""
    shrunk: list[ReplicaSet] = []
    for one in running:
        less = max(0, min(one.size, spare))
        spare -= less
        shrunk.append(one.resized(one.size - less, deployment))
    return shrunk
