"""
Deletes completed ManifestWorks after `ttlSecondsAfterFinished`.

What was applied of a work is deleted with it. Works of a replica set are not
deleted, because their owner would create them again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.plan import Plan, delete, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, derived
from lamina.families.manifestwork.hub.work import keep_metadata, read_work
from lamina.families.manifestwork.labels import MANAGER, WORK, WORK_VERSION
from lamina.objects.types import Obj, Ref


class CompletedWork(Struct, frozen=True, kw_only=True):
    """A completed work, and when it expires."""

    work: Obj
    expires: datetime


def gather(world: World, ref: Ref) -> CompletedWork | None:
    """Return a work that expires, or None for one that does not, or is not completed yet."""
    obj = world.get(ref)
    work = derived(read_work, obj) if obj is not None else None
    if work is None or work.is_deleting or work.expires is None:
        return None
    return CompletedWork(work=work.obj, expires=work.expires)


def plan(view: CompletedWork, answers: Answers, now: datetime) -> Plan:
    """Return the deletion of a work that has expired."""
    left = view.expires - now
    if left > timedelta(0):
        return Plan(requeue_after=left, because="it is completed, and its time to live is not over")
    return one_stage(
        "delete the work", [delete(view.work)], because="it is completed, and its time to live is over"
    )


def _if_it_expires(world: World, change: Change) -> Iterable[Ref]:
    """Queue only works that expire: most works never do."""
    if change.after is not None and derived(read_work, change.after).expires is not None:
        yield change.ref


# It keeps and derives what the rollout does, so that both controllers share one cache.
FINISHED: Controller[CompletedWork] = Controller(
    name="finished-works",
    watches=(
        Watch(
            selects=only(*WORK),
            api_version=WORK_VERSION,
            enqueue=_if_it_expires,
            keep=keep_metadata,
            derive=read_work,
        ),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
    at_once=2,
)
