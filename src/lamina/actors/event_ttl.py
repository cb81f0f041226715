"""
The time to live of events.

An event is deleted an hour after its last write, and the oldest earlier when
there are too many. Events of the same minute share one key: a thousand new pods
cause thousands of events, which need no reconcile each.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.plan import Plan, delete, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, identity_only
from lamina.objects import meta
from lamina.objects.times import moment, stamp
from lamina.objects.types import GroupKind, Obj, Ref

KEPT_FOR = timedelta(hours=1)
LIMIT = 5000
"""The highest number of events; beyond it a tenth of them is deleted at once, so that this is rare."""

_EVENT = GroupKind("", "Event")
_ALL = Ref("v1", "Event", "", "")
"""Not an event: the key for all of them."""

_TOGETHER = timedelta(seconds=1)
"""The delay in which the key of a minute collects more of its events."""


class View(Struct, frozen=True, kw_only=True):
    """Events, and how many of the oldest exceed the limit."""

    events: tuple[Obj, ...]
    too_many: int = 0
    limit: int = LIMIT


def gather(limit: int, world: World, ref: Ref) -> View | None:
    if ref != _ALL:
        events = world.by_index(_EVENT, minutes, ref.name)
        return View(events=tuple(events)) if events else None
    count = world.count(_EVENT)
    if count <= limit:
        return None
    oldest_first = sorted(world.every(_EVENT), key=_written)
    return View(events=tuple(oldest_first), too_many=count - limit * 9 // 10, limit=limit)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.too_many:
        surplus = view.events[: view.too_many]
        return one_stage(
            "delete events", [delete(one) for one in surplus], because=f"more than {view.limit} events"
        )
    # All of them have the server's timestamps, which sort as texts.
    limit = stamp(now - KEPT_FOR)
    expired = tuple(one for one in view.events if _written(one) <= limit)
    oldest = moment(min((_written(one) for one in view.events if _written(one) > limit), default=""))
    return one_stage(
        "delete events",
        [delete(one) for one in expired],
        because="their last write was an hour ago",
        again=oldest + KEPT_FOR - now if oldest is not None else None,
    )


def _written(event: Obj) -> str:
    return str(event["lastWritten"])


def minutes(event: Obj) -> Iterable[str]:
    """Index: the minute in which an event was last written."""
    return (_written(event)[:16],)


def key_of(event: Obj) -> Ref:
    """Return the key of an event: that of its minute."""
    (minute,) = minutes(event)
    return _ALL._replace(name=minute)


def last_written(obj: Obj) -> Obj:
    """Keep the identity of an event, and the time of its last write."""
    metadata = meta.metadata(obj)
    times = [str(entry["time"]) for entry in metadata.get("managedFields") or () if entry.get("time")]
    return {**identity_only(obj), "lastWritten": max([str(metadata.get("creationTimestamp") or ""), *times])}


def enqueue(limit: int, world: World, change: Change) -> Iterable[Ref]:
    """A written event enqueues its minute, and the key for all once there are too many."""
    if change.after is None:
        return
    yield key_of(change.after)
    if world.count(_EVENT) > limit:
        yield _ALL


def controller(limit: int = LIMIT) -> Controller[View]:
    """Return the controller that deletes expired events, and the oldest beyond a limit."""
    return Controller(
        name="events",
        watches=(
            Watch(
                selects=only(*_EVENT),
                enqueue=partial(enqueue, limit),
                keep=last_written,
                metadata_only=True,
                delay=_TOGETHER,
            ),
        ),
        gather=partial(gather, limit),
        plan=plan,
        manager=MANAGER,
        at_once=2,
    )


EVENTS = controller()
