"""
Rollback: writes the snapshot of an older revision into the owner's spec.

It is an ordinary edit, which rolls out like any other change: history only grows,
and a controller that never saw the rollback carries it out all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from lamina.core.model.plan import Plan, Replace, one_stage
from lamina.core.rollout.history import History, rollback_target
from lamina.core.rollout.revision import Revision
from lamina.objects import meta
from lamina.objects.types import Obj


def rollback(
    owner: Obj, past: History, goal: int, to: int | None, restored: Callable[[Revision], Obj]
) -> Plan:
    """
    Return the plan that takes an owner back to a revision: `to`, or the one before its `goal`.

    `restored` returns the owner with the snapshot of a revision in its spec. Raises
    RevisionNotFound for a revision that is not kept.
    """
    ref = meta.ref(owner)
    wanted = rollback_target(ref, past, goal, to)
    edited = restored(wanted)
    return one_stage(
        f"roll back to revision {wanted.number}",
        [Replace(obj=edited)] if edited != owner else [],
        because=f"rolling back {ref} to revision {wanted.number}",
    )
