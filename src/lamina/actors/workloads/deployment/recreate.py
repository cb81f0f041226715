"""The Recreate strategy: all old pods are deleted before new ones are created."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lamina.actors.workloads.deployment.sets import ReplicaSet, active, counted, replaced_by_name
from lamina.objects import meta
from lamina.objects.types import Obj


def scaled_down(deployment: Obj, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Return the old ReplicaSets scaled to zero."""
    return replaced_by_name(old, [one.resized(0, deployment) for one in active(old)])


def is_clear(new: ReplicaSet | None, old: Sequence[ReplicaSet], running: Collection[str]) -> bool:
    """
    Say whether no old pod is left.

    `running` are the uids of ReplicaSets with unfinished pods, terminating
    ones included.
    """
    ours = meta.uid(new.observed) if new is not None else ""
    return not counted(old, "replicas") and all(uid == ours for uid in running)
