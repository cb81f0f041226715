"""
What becomes of the records of works: closed ones are emptied, and those whose work has vanished are evicted.

A record that goes is held until everything in it is gone, or has turned out not to be
ours; what is held up stays in it, and what is not is crossed off. A record whose work
is not on the hub any more, or that is of another hub, is marked, and goes after a while;
if the work comes back before, the mark is taken off.
Before anything is deleted over it, the hub is asked for real.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from lamina.core.plan import NOTHING, Delete, Plan, Stage, change, one_stage, remove_finalizer
from lamina.core.questions import Absent, Answers, Question, Read
from lamina.core.world import Change, World
from lamina.families.manifestwork.names import APPLIED_WORK, WORK
from lamina.families.manifestwork.spoke.deeds import Leaving, left
from lamina.families.manifestwork.spoke.names import APPLIED_CLEANUP, HUB, Agent
from lamina.families.manifestwork.spoke.record import entries, listed
from lamina.families.manifestwork.spoke.sharing import Shares, nobody_else, sharing
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.times import moment, stamp
from lamina.objects.types import Obj, Ref

_SOONEST, _LATEST = timedelta(milliseconds=50), timedelta(seconds=60)


class View(Struct, frozen=True, kw_only=True):
    """One record, and whether its work is on the hub."""

    agent: Agent
    record: Obj
    kinds: Kinds
    work: Obj | None
    knows_hub: bool
    shares: Shares = nobody_else

    @property
    def is_managed(self) -> bool:
        """Whether somebody on our hub still wants what is in it; as long as nobody can tell, yes."""
        spec = self.record.get("spec") or {}
        return not self.knows_hub or (self.work is not None and spec.get("hubHash") == self.agent.hub)

    @property
    def work_ref(self) -> Ref:
        return self.agent.work_ref((self.record.get("spec") or {}).get("manifestWorkName") or "")

    @property
    def marked(self) -> datetime | None:
        return moment((self.record.get("status") or {}).get("evictionStartTime"))


def gather(agent: Agent, world: World, ref: Ref) -> View | None:
    """Return what there is to know about a record, or None if it is not there or another agent's."""
    record = world.get(ref)
    if record is None or (ref.group, ref.kind) != tuple(APPLIED_WORK):
        return None
    spec = record.get("spec") or {}
    if (spec.get("agentID") or spec.get("hubHash")) != agent.id:
        return None
    hub = world.on(HUB)
    return View(
        agent=agent,
        record=record,
        kinds=world.kinds,
        work=world.get(agent.work_ref(spec.get("manifestWorkName") or "")),
        knows_hub=hub.kinds.preferred(WORK) is not None,
        shares=partial(sharing, agent, world),
    )


def of_its_record(agent: Agent, world: World, change: Change) -> Iterable[Ref]:
    """A change to a work concerns its record, and those that another hub left under its name."""
    name = change.ref.name
    yield agent.record_ref(name)
    if change.before is None or change.after is None:
        yield from map(meta.ref, world.found(APPLIED_WORK, _by_work, name))


def _by_work(record: Obj) -> Iterable[str]:
    name = (record.get("spec") or {}).get("manifestWorkName")
    return (name,) if name else ()


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Return what has still to be asked: what is left of a record that goes, and whether a work has really vanished."""
    if meta.is_deleting(view.record):
        return tuple(
            dict.fromkeys(ask for one in _leaving(view, answers) for ask in one.asks if ask not in answers)
        )
    if view.is_managed or view.marked is None:
        return ()
    read = Read(view.work_ref)
    return () if view.work is not None or read in answers else (read,)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what becomes of a record."""
    if meta.is_deleting(view.record):
        return _emptied(view, answers, now)
    if view.is_managed or not view.agent.options.evicts:
        if view.marked is None:
            return NOTHING
        unmarked = change(view.record, {"status": {"evictionStartTime": None}}, subresource="status")
        return one_stage("take the mark off", [unmarked], because="its work is on the hub")
    if view.marked is None:
        marked = change(view.record, {"status": {"evictionStartTime": stamp(now)}}, subresource="status")
        return one_stage("mark", [marked], because="its work is not on the hub")
    left_to_wait = view.marked + view.agent.options.eviction - now
    if left_to_wait > timedelta(0):
        return Plan(look_again=left_to_wait, because="its work is not on the hub")
    if view.work is None and not isinstance(answers.get(Read(view.work_ref)), Absent):
        return Plan(look_again=_LATEST, because="nobody can tell whether its work is on the hub")
    evicted = Delete(ref=meta.ref(view.record), uid=meta.uid(view.record))
    return one_stage("evict", [evicted], because="its work has not been on the hub for too long")


def _leaving(view: View, answers: Answers) -> tuple[Leaving, ...]:
    return tuple(left(entry, view.record, view.kinds, answers, view.shares) for entry in entries(view.record))


def _emptied(view: View, answers: Answers, now: datetime) -> Plan:
    if APPLIED_CLEANUP not in meta.finalizers(view.record):
        return NOTHING
    leaving = _leaving(view, answers)
    waiting = [one for one in leaving if one.parting.waits]
    if not waiting:
        gone = remove_finalizer(view.record, APPLIED_CLEANUP)
        return one_stage("let go", [gone], because="nothing that is in it is left")
    actions = tuple(one.parting.action for one in waiting if one.parting.action is not None)
    if actions:
        stages: tuple[Stage, ...] = (Stage("delete what is in it", actions),)
    elif len(waiting) < len(leaving):
        # Whoever looks why it takes so long finds those that are still there, and no others.
        rest = listed(one.entry for one in waiting)
        crossed_off = change(view.record, {"status": {"appliedResources": rest}}, subresource="status")
        stages = (Stage("cross off what is gone", (crossed_off,)),)
    else:
        stages = ()
    shown = ", ".join(str(one.entry.resource) for one in waiting[:5])
    more = f" and {len(waiting) - 5} more" if len(waiting) > 5 else ""
    again = None
    if not all(one.is_heard_of for one in waiting):
        # Twice as long each time, since as much time passes before each look as had before the last.
        since = moment(meta.metadata(view.record).get("deletionTimestamp")) or now
        again = min(max(now - since, _SOONEST), _LATEST)
    return Plan(stages=stages, look_again=again, because=f"waiting for {shown}{more} to go")
