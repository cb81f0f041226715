"""
How long finished works are kept.

A work that says so goes some time after it is complete, and what was applied of it
goes as with any other. A work of a replica set stays: its owner would make it anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.controller import Controller, Watch, only
from lamina.core.plan import Plan, delete, one_stage
from lamina.core.questions import Answers
from lamina.core.world import Change, World
from lamina.families.manifestwork.names import MANAGER, WORK, WORK_VERSION
from lamina.families.manifestwork.work import facts, facts_only
from lamina.objects.types import Obj, Ref


class Finished(Struct, frozen=True, kw_only=True):
    """A work that is complete, and when it goes."""

    work: Obj
    goes: datetime


def gather(world: World, ref: Ref) -> Finished | None:
    """Return a work that goes by itself, or None if it does not, or not yet known when."""
    obj = world.get(ref)
    work = facts(obj) if obj is not None else None
    if work is None or work.is_deleting or work.goes is None:
        return None
    return Finished(work=work.obj, goes=work.goes)


def plan(view: Finished, answers: Answers, now: datetime) -> Plan:
    """Decide whether it is time."""
    left = view.goes - now
    if left > timedelta(0):
        return Plan(look_again=left, because="it is complete, and is kept for a while")
    return one_stage("clean up", [delete(view.work)], because="it was completed long enough ago")


def _that_goes(world: World, change: Change) -> Iterable[Ref]:
    """Works are many, and few of them ever go by themselves."""
    if change.after is not None and facts(change.after).goes is not None:
        yield change.ref


# What is kept of a work is what the rollout keeps of it, so both look through one watch.
FINISHED: Controller[Finished] = Controller(
    name="finished-works",
    watches=(Watch(selects=only(*WORK), api_version=WORK_VERSION, concerns=_that_goes, keep=facts_only),),
    gather=gather,
    plan=plan,
    manager=MANAGER,
    at_once=2,
)
