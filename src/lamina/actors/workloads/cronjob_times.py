"""
The scheduled time of a CronJob that is due now.

Only the latest counts: earlier ones are missed. A time older than
startingDeadlineSeconds is missed, too.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from lamina.objects import meta
from lamina.objects.cron import Schedule
from lamina.objects.times import moment
from lamina.objects.types import Obj

_MANY = 100
_SKEW = timedelta(milliseconds=100)
"""The requeue is a little after the scheduled time, as in kube-controller-manager, to allow for clock skew."""


class NeverDue(ValueError):
    """The schedule is valid, and is never due."""


class Due(Struct, frozen=True):
    """The latest scheduled time since the last started one, and how many there were."""

    since: datetime
    at: datetime | None
    missed: int = 0

    @property
    def too_many(self) -> bool:
        return self.missed > _MANY


def latest(cron_job: Obj, schedule: Schedule, now: datetime, *, within_deadline: bool) -> Due:
    """Return what is due; with `within_deadline`, times before the starting deadline are ignored."""
    since = moment((cron_job.get("status") or {}).get("lastScheduleTime")) or _created(cron_job)
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if within_deadline and deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = schedule.after(since)
    second = schedule.after(first) if first is not None else None
    if first is None or second is None:
        raise NeverDue("time difference between two schedules is less than 1 second")
    if now < first:
        return Due(since, None)
    if now < second:
        return Due(since, first)
    # Estimated by the distance between the first two, as a start of the search;
    # it starts one step earlier for irregular schedules.
    pace = max(second - first, timedelta(seconds=1))
    missed = (now - first) // pace + 1
    at, following = None, schedule.after(first + (missed - 2) * pace)
    while following is not None and following <= now:
        at, following = following, schedule.after(following)
    return Due(since, at, missed)


def next_schedule_after(cron_job: Obj, schedule: Schedule, now: datetime) -> timedelta | None:
    """Return the time until the schedule is next due."""
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
