"""
How long events are kept.

An event goes an hour after it was last written, and the oldest go earlier when
there are too many of them. Those that were last written in the same minute are
looked at together: whoever starts a thousand pods is told of it thousands of
times, and none of that is worth a look of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.core.controller import Controller, Watch, only
from lamina.core.plan import Plan, delete, one_stage
from lamina.core.questions import Answers
from lamina.core.world import Change, World, card
from lamina.objects import meta
from lamina.objects.times import moment, stamp
from lamina.objects.types import GroupKind, Obj, Ref

KEPT_FOR = timedelta(hours=1)
KEPT = 5000
"""How many events there may be; beyond that a tenth of them goes at once, so that it need not be seen to often."""

_EVENT = GroupKind("", "Event")
_ALL = Ref("v1", "Event", "", "")
"""Not an event: the key under which all of them are looked at together."""

_TOGETHER = timedelta(seconds=1)
"""How long a minute waits for more of its events: there is an hour's time."""


class View(Struct, frozen=True, kw_only=True):
    """Events to be judged by their age, and how many of them, the oldest, have to go whatever their age."""

    events: tuple[Obj, ...]
    too_many: int = 0


def gather(world: World, ref: Ref) -> View | None:
    if ref != _ALL:
        events = world.found(_EVENT, minutes, ref.name)
        return View(events=tuple(events)) if events else None
    count = world.count(_EVENT)
    if count <= KEPT:
        return None
    oldest_first = sorted(world.every(_EVENT), key=_written)
    return View(events=tuple(oldest_first), too_many=count - KEPT * 9 // 10)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.too_many:
        ending = view.events[: view.too_many]
        return one_stage("forget them", [delete(one) for one in ending], because=f"more than {KEPT} events")
    # All of them carry the server's own stamps, whose order is that of their texts.
    over = stamp(now - KEPT_FOR)
    ending = tuple(one for one in view.events if _written(one) <= over)
    oldest = moment(min((_written(one) for one in view.events if _written(one) > over), default=""))
    return one_stage(
        "forget them",
        [delete(one) for one in ending],
        because="nobody has written to them for an hour",
        again=oldest + KEPT_FOR - now if oldest is not None else None,
    )


def _written(event: Obj) -> str:
    return str(event["lastWritten"])


def minutes(event: Obj) -> Iterable[str]:
    """Return the minute in which an event was last written."""
    return (_written(event)[:16],)


def moment_of(event: Obj) -> Ref:
    """Return the key under which an event is looked at: that of its minute."""
    (minute,) = minutes(event)
    return _ALL._replace(name=minute)


def last_written(obj: Obj) -> Obj:
    """Keep who an event is, and when it was last written."""
    metadata = meta.metadata(obj)
    times = [str(entry["time"]) for entry in metadata.get("managedFields") or () if entry.get("time")]
    return {**card(obj), "lastWritten": max([str(metadata.get("creationTimestamp") or ""), *times])}


def concerns(world: World, change: Change) -> Iterable[Ref]:
    """A new or newer event concerns its minute, and all of them once they are too many."""
    if change.after is None:
        return
    yield moment_of(change.after)
    if world.count(_EVENT) > KEPT:
        yield _ALL


EVENTS: Controller[View] = Controller(
    name="events",
    watches=(
        Watch(
            selects=only(*_EVENT),
            concerns=concerns,
            keep=last_written,
            metadata_only=True,
            delay=_TOGETHER,
        ),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
    at_once=2,
)
