"""Recreating: the old pods go, all of them, and when the last is gone the new ones come."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lamina.actors.workloads.deployment.sets import ReplicaSet, active, counted, exchanged
from lamina.objects import meta
from lamina.objects.types import Obj


def emptied(deployment: Obj, old: Sequence[ReplicaSet]) -> tuple[ReplicaSet, ...]:
    """Return the old sets without their pods."""
    return exchanged(old, [one.resized(0, deployment) for one in active(old)])


def is_clear(new: ReplicaSet | None, old: Sequence[ReplicaSet], running: Collection[str]) -> bool:
    """
    Say whether no old pod is left.

    `running` are the uids of sets that have pods which have not finished,
    terminating ones among them.
    """
    ours = meta.uid(new.seen) if new is not None else ""
    return not counted(old, "replicas") and all(uid == ours for uid in running)
