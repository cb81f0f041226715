"""
Rolling updates: the new set grows by what may be added, then the old ones shrink by what may be missing.

Never are there more pods than wanted and the surge together, and never are
available ones given up while fewer than the minimum would be left. Old pods
that are not available go first: they are in the way and nobody misses them.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.actors.workloads.deployment.revising import room
from lamina.actors.workloads.deployment.sets import (
    ReplicaSet,
    active,
    exchanged,
    max_unavailable,
    oldest_first,
    total,
)
from lamina.actors.workloads.replicas import wanted
from lamina.objects.types import Obj


def rolled(
    deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]
) -> tuple[ReplicaSet, tuple[ReplicaSet, ...]]:
    """Return the new set and the old ones with the sizes they are to have now."""
    grown = _grown(deployment, new, old)
    if new.exists and grown.size != new.size:
        return grown, tuple(old)
    return grown, _shrunk(deployment, grown, old)


def _grown(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> ReplicaSet:
    desired = wanted(deployment)
    if new.size == desired or not new.exists:
        return new
    return new.resized(desired if new.size > desired else room(deployment, new, old), deployment)


def _shrunk(deployment: Obj, new: ReplicaSet, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    minimum = wanted(deployment) - max_unavailable(deployment)
    # New pods that are not available yet may not be made up for by old ones: that
    # would take away what they are to replace.
    unready = new.size - new.count("availableReplicas")
    spare = total([new, *old]) - minimum - unready
    running = oldest_first(active(old))
    if spare <= 0 or not running:
        return tuple(old)
    cleaned = _without_unavailable(deployment, running, spare)
    spare = sum(_available(one) for one in [new, *cleaned]) - minimum
    return exchanged(old, _less(deployment, cleaned, spare))


def _available(one: ReplicaSet) -> int:
    """Return how many pods of a set can be counted on: those it is to lose already are not among them."""
    return min(one.count("availableReplicas"), wanted(one.seen))


def _without_unavailable(deployment: Obj, running: Sequence[ReplicaSet], spare: int) -> list[ReplicaSet]:
    """Return the sets less the pods that are not available, as many as can be spared."""
    cleaned: list[ReplicaSet] = []
    for one in running:
        less = max(0, min(spare, one.size - _available(one)))
        spare -= less
        cleaned.append(one.resized(one.size - less, deployment))
    return cleaned


def _less(deployment: Obj, running: Sequence[ReplicaSet], spare: int) -> list[ReplicaSet]:
    """Return the sets with so many pods fewer, from the oldest on."""
    shrunk: list[ReplicaSet] = []
    for one in running:
        less = max(0, min(one.size, spare))
        spare -= less
        shrunk.append(one.resized(one.size - less, deployment))
    return shrunk
