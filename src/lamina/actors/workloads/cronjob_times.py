"""
Which time of a cron job's schedule is to be met now.

Only the latest counts: whatever was missed before it is missed. What is not met
within the deadline a cron job sets itself is missed, too.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.workloads.cron import Schedule
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Obj

_MANY = 100
_SKEW = timedelta(milliseconds=100)
"""Looked at a little after the minute, so that no clock that runs ahead sees it too early."""


class Senseless(ValueError):
    """The schedule can be read, and is never due."""


class Due(Struct, frozen=True):
    """The latest time that has passed since the last one that was met, and whether very many have."""

    since: datetime
    at: datetime | None
    missed: int = 0

    @property
    def too_many(self) -> bool:
        return self.missed > _MANY


def latest(cron_job: Obj, schedule: Schedule, now: datetime, *, within_deadline: bool) -> Due:
    """Return what is due; times before the deadline are no longer looked at where that is asked for."""
    since = moment((cron_job.get("status") or {}).get("lastScheduleTime")) or _created(cron_job)
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if within_deadline and deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = schedule.after(since)
    second = schedule.after(first) if first is not None else None
    if first is None or second is None:
        raise Senseless("time difference between two schedules is less than 1 second")
    if now < first:
        return Due(since, None)
    if now < second:
        return Due(since, first)
    # Counted by the distance between the first two, which is near enough to
    # start looking from; uneven schedules are looked at one step earlier.
    pace = max(second - first, timedelta(seconds=1))
    missed = (now - first) // pace + 1
    at, following = None, schedule.after(first + (missed - 2) * pace)
    while following is not None and following <= now:
        at, following = following, schedule.after(following)
    return Due(since, at, missed)


def next_look(cron_job: Obj, schedule: Schedule, now: datetime) -> timedelta | None:
    """Return how long until the schedule is next due."""
    due = latest(cron_job, schedule, now, within_deadline=False)
    start = due.at or (now if due.missed else due.since)
    following = schedule.after(start)
    while following is not None and following <= now:
        following = schedule.after(following)
    return following + _SKEW - now if following is not None else None


def _created(cron_job: Obj) -> datetime:
    created = moment(meta.metadata(cron_job).get("creationTimestamp"))
    assert created is not None, "the server stamps what it creates"
    return created
