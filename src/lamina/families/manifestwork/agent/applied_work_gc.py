"""
Garbage collection of records: the objects of deleted records are removed, and records without a work are evicted.

A record that is being deleted is held by a finalizer until each of its objects is gone,
or turns out not to be owned by it; objects that are gone are dropped from its list. A
record whose work is not on the hub any more, or that is of another hub, gets an
evictionStartTime and is deleted when that is long enough ago. If the work returns before,
the time is removed. Before a record is evicted, its work is read live from the hub.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.model.finalizers import is_held, release
from lamina.core.model.plan import NOTHING, Delete, Plan, Stage, change, one_stage
from lamina.core.model.queries import Absent, Answers, Query, Read
from lamina.core.model.world import Change, World
from lamina.families.manifestwork.agent.applied_manifestwork import as_list, entries
from lamina.families.manifestwork.agent.labels import APPLIED_CLEANUP, HUB, Agent
from lamina.families.manifestwork.agent.shared_resources import Sharers, sharers
from lamina.families.manifestwork.agent.work_steps import StaleResource, stale_resource
from lamina.families.manifestwork.labels import APPLIED_WORK, WORK
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
    serves_works: bool
    sharers: Sharers

    @property
    def is_managed(self) -> bool:
        """Whether a work on our hub still wants its objects; True while the hub is not known to serve works."""
        spec = self.record.get("spec") or {}
        return not self.serves_works or (self.work is not None and spec.get("hubHash") == self.agent.hub)

    @property
    def work_ref(self) -> Ref:
        return self.agent.work_ref((self.record.get("spec") or {}).get("manifestWorkName") or "")

    @property
    def eviction_started(self) -> datetime | None:
        return moment((self.record.get("status") or {}).get("evictionStartTime"))


def gather(agent: Agent, world: World, ref: Ref) -> View | None:
    """Return the view of a record, or None if it does not exist or is another agent's."""
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
        serves_works=hub.kinds.preferred(WORK) is not None,
        sharers=sharers(agent, world, record),
    )


def records_of_work(agent: Agent, world: World, change: Change) -> Iterable[Ref]:
    """A change of a work enqueues its record, and those that another hub left under its name."""
    name = change.ref.name
    yield agent.record_ref(name)
    if change.before is None or change.after is None:
        yield from map(meta.ref, world.by_index(APPLIED_WORK, _by_work, name))


def _by_work(record: Obj) -> Iterable[str]:
    name = (record.get("spec") or {}).get("manifestWorkName")
    return (name,) if name else ()


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Return the queries: the objects of a record that is being deleted, or a live read of a work that is missing."""
    if meta.is_deleting(view.record):
        return tuple(
            dict.fromkeys(ask for one in _objects(view, answers) for ask in one.queries if ask not in answers)
        )
    if view.is_managed or view.eviction_started is None:
        return ()
    read = Read(view.work_ref)
    return () if view.work is not None or read in answers else (read,)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of a record."""
    if meta.is_deleting(view.record):
        return _remove_objects(view, answers, now)
    if view.is_managed or not view.agent.options.evicts:
        if view.eviction_started is None:
            return NOTHING
        unmarked = change(view.record, {"status": {"evictionStartTime": None}}, subresource="status")
        return one_stage("stop eviction", [unmarked], because="its work is on the hub")
    if view.eviction_started is None:
        marked = change(view.record, {"status": {"evictionStartTime": stamp(now)}}, subresource="status")
        return one_stage("start eviction", [marked], because="its work is not on the hub")
    remaining = view.eviction_started + view.agent.options.eviction - now
    if remaining > timedelta(0):
        return Plan(requeue_after=remaining, because="its work is not on the hub")
    if view.work is None and not isinstance(answers.get(Read(view.work_ref)), Absent):
        return Plan(requeue_after=_LATEST, because="it is unknown whether its work is on the hub")
    evicted = Delete(ref=meta.ref(view.record), uid=meta.uid(view.record))
    return one_stage("evict", [evicted], because="its work has not been on the hub for too long")


def _objects(view: View, answers: Answers) -> tuple[StaleResource, ...]:
    return tuple(
        stale_resource(entry, view.record, view.kinds, answers, view.sharers)
        for entry in entries(view.record)
    )


def _remove_objects(view: View, answers: Answers, now: datetime) -> Plan:
    if not is_held(view.record, APPLIED_CLEANUP):
        return NOTHING
    stale = _objects(view, answers)
    waiting = [one for one in stale if one.release.waits]
    if not waiting:
        return release(view.record, APPLIED_CLEANUP, because="none of the objects in it are left")
    actions = tuple(one.release.action for one in waiting if one.release.action is not None)
    if actions:
        stages: tuple[Stage, ...] = (Stage("delete objects", actions),)
    elif len(waiting) < len(stale):
        # The list shows which objects the deletion still waits for.
        rest = as_list(one.entry for one in waiting)
        shorter = change(view.record, {"status": {"appliedResources": rest}}, subresource="status")
        stages = (Stage("drop objects that are gone", (shorter,)),)
    else:
        stages = ()
    shown = ", ".join(str(one.entry.resource) for one in waiting[:5])
    more = f" and {len(waiting) - 5} more" if len(waiting) > 5 else ""
    again = None
    if not all(one.is_watched for one in waiting):
        # Doubles each time: the next read waits for as long as the deletion has taken so far.
        since = moment(meta.metadata(view.record).get("deletionTimestamp")) or now
        again = min(max(now - since, _SOONEST), _LATEST)
    return Plan(stages=stages, requeue_after=again, because=f"waiting for {shown}{more} to go")
