"""
Whether a Job finishes, and why.

A Job first gets the condition SuccessCriteriaMet or FailureTarget and then, when
all pods have terminated and are counted, Complete or Failed. The first condition
is final.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.workloads.job_pods import is_failed, restarts
from lamina.actors.workloads.job_policy import Action, match_failure_policy, matched_success_rule
from lamina.actors.workloads.job_tracking import JobCounts, is_indexed
from lamina.objects import conditions
from lamina.objects.times import moment, stamp
from lamina.objects.types import Condition, Made, Obj

_ANNOUNCED = {True: "SuccessCriteriaMet", False: "FailureTarget"}
_REACHED = {True: "Complete", False: "Failed"}


class Result(Struct, frozen=True):
    """The result of a Job, with the reason and message of its conditions."""

    success: bool
    reason: str
    message: str

    @property
    def announced(self) -> str:
        return _ANNOUNCED[self.success]

    @property
    def reached(self) -> str:
        return _REACHED[self.success]


COMPLETE = Result(True, "CompletionsReached", "Reached expected number of succeeded pods")


def conditions_of(job: Obj) -> Sequence[Condition]:
    return (job.get("status") or {}).get("conditions") or ()


def finish(job: Obj) -> str | None:
    """Return the condition type of a finished Job; None if it has not finished."""
    found = conditions_of(job)
    return next((name for name in ("Complete", "Failed") if conditions.is_true(found, name)), None)


def finished_at(job: Obj) -> datetime | None:
    """Return when a Job finished."""
    name = finish(job)
    ended = conditions.find(conditions_of(job), name) if name is not None else None
    return moment(ended.get("lastTransitionTime")) if ended is not None else None


def announced(job: Obj) -> Result | None:
    """Return the result that a Job's conditions announce."""
    for success, name in _ANNOUNCED.items():
        condition = conditions.find(conditions_of(job), name)
        if condition is not None and condition["status"] == "True":
            return Result(success, condition.get("reason") or "", condition.get("message") or "")
    return None


def is_suspended(job: Obj) -> bool:
    return bool(job["spec"].get("suspend"))


def find_result(counts: JobCounts, start: datetime | None, now: datetime) -> Result | None:
    """Return the result of a Job, if it finishes: as announced, by failures, or by its success policy."""
    job = counts.job
    already = announced(job)
    if already is not None:
        return already
    return (
        _by_policy(counts)
        or _by_failures(counts)
        or _by_deadline(job, start, now)
        or _by_indexes(counts)
        or _by_success(counts)
    )


def _by_policy(counts: JobCounts) -> Result | None:
    for pod in counts.members:
        if is_failed(counts.job, pod):
            match_ = match_failure_policy(counts.job, pod)
            if match_.action is Action.FAIL_JOB:
                return Result(False, "PodFailurePolicy", match_.because)
    return None


def _by_failures(counts: JobCounts) -> Result | None:
    spec = counts.job["spec"]
    limit = spec.get("backoffLimit", 6)
    exceeded = counts.failed > limit
    if not exceeded and spec["template"]["spec"].get("restartPolicy") == "OnFailure":
        exceeded = restarts(counts.members) >= max(limit, 1)
    if not exceeded:
        return None
    return Result(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")


def _by_deadline(job: Obj, start: datetime | None, now: datetime) -> Result | None:
    left = time_left(job, start, now)
    if left is None or left > timedelta(0):
        return None
    return Result(False, "DeadlineExceeded", "Job was active longer than specified deadline")


def time_left(job: Obj, start: datetime | None, now: datetime) -> timedelta | None:
    """Return the time until activeDeadlineSeconds; None without it."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    if seconds is None or start is None or is_suspended(job):
        return None
    return start + timedelta(seconds=seconds) - now


def _by_indexes(counts: JobCounts) -> Result | None:
    spec = counts.job["spec"]
    if not is_indexed(counts.job) or spec.get("backoffLimitPerIndex") is None:
        return None
    most = spec.get("maxFailedIndexes")
    if most is not None and len(counts.failed_indexes) > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return Result(False, "MaxFailedIndexesExceeded", message)
    if counts.failed_indexes and len(counts.failed_indexes) + len(counts.succeeded_indexes) >= (
        counts.completions or 0
    ):
        return Result(False, "FailedIndexes", "Job has failed indexes")
    return None


def _by_success(counts: JobCounts) -> Result | None:
    because = matched_success_rule(counts.job, counts.succeeded_indexes) if is_indexed(counts.job) else None
    return Result(True, "SuccessPolicy", because) if because is not None else None


def with_condition(
    known: Sequence[Condition], name: str, status: str, reason: str, message: str, now: datetime
) -> list[Condition]:
    """Return a Job's conditions with this one; a missing condition is not added with status False."""
    old = conditions.find(known, name)
    wanted = (status, reason, message)
    if old is None and status == "False":
        return list(known)
    if old is not None and (old["status"], old.get("reason", ""), old.get("message", "")) == wanted:
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
