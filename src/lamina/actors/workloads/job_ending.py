"""
Whether a job is over, and why.

An end is announced before it is reached: first the condition that says how it
will end (SuccessCriteriaMet, FailureTarget), then, when every pod has gone and
been counted, the one that says it has (Complete, Failed). What was announced
once is not reconsidered.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.workloads.job_pods import is_failed, restarts
from lamina.actors.workloads.job_policy import Verdict, enough, judge
from lamina.actors.workloads.job_tally import Tally, is_indexed
from lamina.objects import conditions
from lamina.objects.times import moment, stamp
from lamina.objects.types import Condition, Made, Obj

_ANNOUNCED = {True: "SuccessCriteriaMet", False: "FailureTarget"}
_REACHED = {True: "Complete", False: "Failed"}


class Ending(Struct, frozen=True):
    """How a job ends."""

    well: bool
    reason: str
    message: str

    @property
    def announced(self) -> str:
        return _ANNOUNCED[self.well]

    @property
    def reached(self) -> str:
        return _REACHED[self.well]


COMPLETE = Ending(True, "CompletionsReached", "Reached expected number of succeeded pods")


def conditions_of(job: Obj) -> Sequence[Condition]:
    return (job.get("status") or {}).get("conditions") or ()


def finish(job: Obj) -> str | None:
    """Return the condition a finished job ended with, or None if it has not ended."""
    found = conditions_of(job)
    return next((name for name in ("Complete", "Failed") if conditions.is_true(found, name)), None)


def finished_at(job: Obj) -> datetime | None:
    """Return when a job ended."""
    name = finish(job)
    ended = conditions.find(conditions_of(job), name) if name is not None else None
    return moment(ended.get("lastTransitionTime")) if ended is not None else None


def announced(job: Obj) -> Ending | None:
    """Return how a job is said to end."""
    for well, name in _ANNOUNCED.items():
        condition = conditions.find(conditions_of(job), name)
        if condition is not None and condition["status"] == "True":
            return Ending(well, condition.get("reason") or "", condition.get("message") or "")
    return None


def is_suspended(job: Obj) -> bool:
    return bool(job["spec"].get("suspend"))


def ending(tally: Tally, start: datetime | None, now: datetime) -> Ending | None:
    """Return how a job ends, if it does: as announced, by what failed, or by its policy of success."""
    job = tally.job
    already = announced(job)
    if already is not None:
        return already
    return (
        _by_policy(tally)
        or _by_failures(tally)
        or _by_deadline(job, start, now)
        or _by_indexes(tally)
        or _by_success(tally)
    )


def _by_policy(tally: Tally) -> Ending | None:
    for pod in tally.members:
        if is_failed(tally.job, pod):
            judged = judge(tally.job, pod)
            if judged.verdict is Verdict.FAIL_JOB:
                return Ending(False, "PodFailurePolicy", judged.because)
    return None


def _by_failures(tally: Tally) -> Ending | None:
    spec = tally.job["spec"]
    limit = spec.get("backoffLimit", 6)
    exceeded = tally.failed > limit
    if not exceeded and spec["template"]["spec"].get("restartPolicy") == "OnFailure":
        exceeded = restarts(tally.members) >= max(limit, 1)
    if not exceeded:
        return None
    return Ending(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")


def _by_deadline(job: Obj, start: datetime | None, now: datetime) -> Ending | None:
    left = time_left(job, start, now)
    if left is None or left > timedelta(0):
        return None
    return Ending(False, "DeadlineExceeded", "Job was active longer than specified deadline")


def time_left(job: Obj, start: datetime | None, now: datetime) -> timedelta | None:
    """Return how long a job may still be active; None if for ever."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    if seconds is None or start is None or is_suspended(job):
        return None
    return start + timedelta(seconds=seconds) - now


def _by_indexes(tally: Tally) -> Ending | None:
    spec = tally.job["spec"]
    if not is_indexed(tally.job) or spec.get("backoffLimitPerIndex") is None:
        return None
    most = spec.get("maxFailedIndexes")
    if most is not None and len(tally.lost) > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Ending(False, "MaxFailedIndexesExceeded", message)
    if tally.lost and len(tally.lost) + len(tally.done) >= (tally.completions or 0):
        return Ending(False, "FailedIndexes", "Job has failed indexes")
    return None


def _by_success(tally: Tally) -> Ending | None:
    because = enough(tally.job, tally.done) if is_indexed(tally.job) else None
    return Ending(True, "SuccessPolicy", because) if because is not None else None


def with_condition(
    known: Sequence[Condition], name: str, status: str, reason: str, message: str, now: datetime
) -> list[Condition]:
    """Return a job's conditions with this one; one that is not there is not there to be false."""
    old = conditions.find(known, name)
    said = (status, reason, message)
    if old is None and status == "False":
        return list(known)
    if old is not None and (old["status"], old.get("reason", ""), old.get("message", "")) == said:
        return list(known)
    new: Made = {
        "type": name,
        "status": status,
        "lastProbeTime": stamp(now),
        "lastTransitionTime": stamp(now),
    }
    new |= {field: value for field, value in (("reason", reason), ("message", message)) if value}
    made: Condition = new  # type: ignore[assignment]  # a job's condition has one field more
    return [made if one is old else one for one in known] if old is not None else [*known, made]
