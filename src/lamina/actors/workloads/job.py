"""
The Job controller.

A sync writes the status first: which pods have terminated, how many will be
active and, if so, how the Job will finish. Then it removes finalizers, and deletes
and creates pods. The next sync counts what this one has recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import event_recorder, pods
from lamina.actors.workloads.job_finish import (
    COMPLETE,
    Result,
    announced,
    conditions_of,
    find_result,
    finish,
    is_suspended,
    time_left,
    with_condition,
)
from lamina.actors.workloads.job_indexes import valid_index
from lamina.actors.workloads.job_pods import TRACKING, is_failed
from lamina.actors.workloads.job_policy import match_failure_policy
from lamina.actors.workloads.job_scale import PodChanges, pod_changes
from lamina.actors.workloads.job_tracking import MOST_UNCOUNTED, JobCounts, is_indexed
from lamina.actors.workloads.server_errors import reportable
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import (
    NOTHING,
    Create,
    Delete,
    Emit,
    Patch,
    Plan,
    Stage,
    one_stage,
    remove_finalizer,
    set_status,
)
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.core.ownership import controller_ref
from lamina.core.ownership.controller_ref import Claim
from lamina.errors import LaminaError
from lamina.objects import conditions, index_set, meta, selectors
from lamina.objects.selectors import LabelSelector
from lamina.objects.times import moment, stamp
from lamina.objects.types import Condition, GroupKind, Made, Obj, Ref

JOB = GroupKind("batch", "Job")

_BY = "job-controller"
_OURS = "kubernetes.io/job-controller"


class View(Struct, frozen=True, kw_only=True):
    """A Job that has not finished, and its pods."""

    job: Obj
    pods: Claim


def gather(world: World, ref: Ref) -> View | None:
    job = world.get(ref)
    if job is None or finish(job) is not None or job["spec"].get("managedBy", _OURS) != _OURS:
        return None
    return View(job=job, pods=controller_ref.claim(world, job, pods.POD, _selector(job)))


def _selector(job: Obj) -> LabelSelector:
    return selectors.from_object(job["spec"].get("selector"))


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    return controller_ref.queries(answers, view.pods)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Plan a Job: whether it finishes and, if not, which pods are created and deleted."""
    job = view.job
    claimed = _claimed(view.pods, answers)
    if claimed:
        # Adopted pods are counted once the cache has their new owner.
        return one_stage("adopt and release", claimed, because="pods match its selector, or no longer do")

    tally = JobCounts(job, controller_ref.members(view.pods, answers))
    start = moment(tally.status.get("startTime"))
    if start is None and not is_suspended(job):
        start = now
    end = find_result(tally, start, now)
    if end is not None:
        made = PodChanges(active=0)
    elif meta.is_deleting(job):
        made = PodChanges(active=len(tally.active))
    else:
        made = pod_changes(tally, now)
    if end is None and _is_complete(tally, made.active):
        end = COMPLETE
    stopped = tally.active if end is not None else []
    counted = _count(tally, end)
    status = _status(tally, end, made, counted, stopped, start, now)
    return _staged(tally, end, made, counted, stopped, status, now)


def _is_complete(tally: JobCounts, active: int) -> bool:
    if active:
        return False
    return tally.succeeded > 0 if tally.completions is None else tally.succeeded >= tally.completions


# Counting


class _Counted(Struct, frozen=True, kw_only=True):
    """What this sync records and counts, and the pods whose finalizer is removed once that is written."""

    succeeded: int
    failed: int
    noted_succeeded: Sequence[str]
    noted_failed: Sequence[str]
    released: Sequence[Obj]

    @property
    def is_settled(self) -> bool:
        """Say whether every pod has been counted."""
        return not (self.noted_succeeded or self.noted_failed or self.released)


def _count(tally: JobCounts, end: Result | None) -> _Counted:
    """Count the recorded pods whose finalizer is removed, and record those that have terminated since."""
    held = {meta.uid(pod) for pod in tally.uncounted}
    recorded = {how: [uid for uid in tally.recorded(how) if uid in held] for how in ("succeeded", "failed")}
    gone = {how: len(tally.recorded(how)) - len(recorded[how]) for how in recorded}
    released: list[Obj] = []
    indexed = is_indexed(tally.job)
    fresh = 0
    for pod in tally.uncounted:
        if fresh + len(recorded["succeeded"]) + len(recorded["failed"]) >= MOST_UNCOUNTED:
            break
        if not _may_go(tally, pod, end):
            continue
        released.append(pod)
        uid = meta.uid(pod)
        if pods.phase(pod) == "Succeeded" and uid not in recorded["failed"]:
            if indexed:
                fresh += 1
            elif uid not in recorded["succeeded"]:
                recorded["succeeded"].append(uid)
        elif uid not in recorded["failed"] and _counts_as_failed(tally, pod, end):
            recorded["failed"].append(uid)
    succeeded = (
        len(tally.succeeded_indexes) if indexed else (tally.status.get("succeeded") or 0) + gone["succeeded"]
    )
    return _Counted(
        succeeded=succeeded,
        failed=(tally.status.get("failed") or 0) + gone["failed"],
        noted_succeeded=recorded["succeeded"],
        noted_failed=recorded["failed"],
        released=released,
    )


def _may_go(tally: JobCounts, pod: Obj, end: Result | None) -> bool:
    """Say whether the finalizer of a pod may be removed: it has terminated, or the Job finishes."""
    if end is not None or meta.is_deleting(tally.job) or pods.phase(pod) == "Succeeded":
        return True
    if not is_failed(tally.job, pod):
        return False
    index = valid_index(pod, tally.completions or 0)
    kept = tally.retried.get(index) if index is not None else None
    return kept is None or meta.uid(kept) != meta.uid(pod)


def _counts_as_failed(tally: JobCounts, pod: Obj, end: Result | None) -> bool:
    """Say whether a pod counts as failed; once a Job has failed, all running pods do."""
    if not is_failed(tally.job, pod) and (end is None or end.success):
        return False
    if is_indexed(tally.job) and valid_index(pod, tally.completions or 0) is None:
        return False
    return match_failure_policy(tally.job, pod).counts


# Status and events


def _status(
    tally: JobCounts,
    end: Result | None,
    made: PodChanges,
    counted: _Counted,
    stopped: Sequence[Obj],
    start: datetime | None,
    now: datetime,
) -> Made:
    job, old = tally.job, tally.status
    leaving = [*made.deleted, *stopped]
    terminating = len(tally.terminating) + len(leaving)
    ready = sum(map(pods.is_ready, tally.active)) - sum(map(pods.is_ready, leaving))
    current = list(conditions_of(job))
    started = stamp(start) if start is not None else None
    if end is not None:
        current = with_condition(current, end.announced, "True", end.reason, end.message, now)
    elif not meta.is_deleting(job):
        current = _suspension(job, current, now)
        if current != list(conditions_of(job)) and not is_suspended(job):
            # startTime restarts with a resumed Job: the suspended time does not count.
            started = stamp(now)
    uncounted = {"succeeded": counted.noted_succeeded, "failed": counted.noted_failed}
    status: Made = {
        **({"completionTime": old["completionTime"]} if old.get("completionTime") else {}),
        **({"startTime": started} if started else {}),
        **_positive(active=made.active, succeeded=counted.succeeded, failed=counted.failed),
        "ready": ready,
        "terminating": terminating,
        "uncountedTerminatedPods": {how: list(uids) for how, uids in uncounted.items() if uids},
    }
    if is_indexed(job):
        status |= (
            {"completedIndexes": index_set.to_text(tally.succeeded_indexes)}
            if tally.succeeded_indexes
            else {}
        )
        if job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = index_set.to_text(tally.failed_indexes)
    if end is not None and announced(job) is not None and counted.is_settled and not terminating:
        current = with_condition(current, end.reached, "True", end.reason, end.message, now)
        if end.success:
            status["completionTime"] = stamp(now)
    return {**status, "conditions": current} if current else status


def _suspension(job: Obj, current: Sequence[Condition], now: datetime) -> list[Condition]:
    if is_suspended(job):
        return with_condition(current, "Suspended", "True", "JobSuspended", "Job suspended", now)
    return with_condition(current, "Suspended", "False", "JobResumed", "Job resumed", now)


def _positive(**counts: int) -> Made:
    return {field: count for field, count in counts.items() if count}


def _staged(
    tally: JobCounts,
    end: Result | None,
    made: PodChanges,
    counted: _Counted,
    stopped: Sequence[Obj],
    status: Made,
    now: datetime,
) -> Plan:
    job = tally.job
    write = _patch(job, status)
    leaving = [*made.deleted, *stopped]
    # The finalizer is removed before the deletion: a terminating pod would count as failed.
    freed = {meta.uid(pod): remove_finalizer(pod, TRACKING) for pod in (*counted.released, *made.deleted)}
    events = [
        *event_recorder.created(job, made.made, by=_BY, now=now),
        *event_recorder.deleted(job, leaving, by=_BY, now=now),
        *_happened(job, status, now),
    ]
    stages = (
        Stage("write status", (write,) if write is not None else ()),
        Stage("remove finalizers", tuple(freed.values())),
        Stage("delete pods", tuple(_deletion(pod) for pod in leaving)),
        Stage("create pods", tuple(Create(obj=pod) for pod in made.made)),
        Stage("record events", tuple(events) if write is not None or leaving or made.made else ()),
    )
    waits = [wait for wait in (made.wait, time_left(job, moment(status.get("startTime")), now)) if wait]
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        requeue_after=min(waits, default=None) if end is None else None,
        because=end.message if end is not None else f"{made.active} active, {tally.succeeded} succeeded",
    )


def _deletion(pod: Obj) -> Delete:
    # Without a resourceVersion: its finalizer may have been removed just before.
    return Delete(ref=meta.ref(pod), uid=meta.uid(pod))


def _patch(job: Obj, status: Made) -> Patch | None:
    write = set_status(job, status)
    if write is None or "uncountedTerminatedPods" not in write.patch["status"]:
        return write
    # A merge patch does not change fields it lacks, so removed lists are nulls.
    recorded = {"succeeded": None, "failed": None, **status["uncountedTerminatedPods"]}
    return replace(write, patch={"status": {**write.patch["status"], "uncountedTerminatedPods": recorded}})


def _happened(job: Obj, status: Obj, now: datetime) -> Iterable[Emit]:
    """Yield the events about changed conditions of a Job."""
    version = meta.resource_version(job)
    before, after = conditions_of(job), status.get("conditions") or ()

    def became(name: str, value: str) -> bool:
        old, new = conditions.find(before, name), conditions.find(after, name)
        return new is not None and new["status"] == value and (old is None or old["status"] != value)

    def event(reason: str, message: str) -> Emit:
        return Emit(event=normal(job, reason, message, by=_BY, now=now, occasion=version))

    if became("Suspended", "True"):
        yield event("Suspended", "Job suspended")
    if became("Suspended", "False"):
        yield event("Resumed", "Job resumed")
    if became("Complete", "True"):
        completions = job["spec"].get("completions")
        if completions is not None and (status.get("succeeded") or 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            yield Emit(event=warning(job, "TooManySucceededPods", message, by=_BY, now=now))
        yield event("Completed", "Job completed")
    failed = conditions.find(after, "Failed")
    if became("Failed", "True") and failed is not None:
        reason, message = failed.get("reason") or "Failed", failed.get("message") or ""
        yield Emit(event=warning(job, reason, message, by=_BY, now=now))


def _claimed(held: Claim, answers: Answers) -> tuple[Patch, ...]:
    """Return the patches that adopt and release pods; adopted ones get the tracking finalizer."""
    taken = {meta.ref(pod): pod for pod in held.adoptable}
    return tuple(
        replace(one, patch=_tracked(one.patch, taken[one.ref])) if one.ref in taken else one
        for one in controller_ref.changes(held, answers)
    )


def _tracked(patch: Obj, pod: Obj) -> Made:
    finalizers = meta.finalizers(meta.with_finalizer(pod, TRACKING))
    return {**patch, "metadata": {**patch["metadata"], "finalizers": finalizers}}


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    job, failures = world.get(ref), reportable(error)
    if job is None or not failures:
        return NOTHING
    events = event_recorder.refused(job, failures, by=_BY, now=now)
    return one_stage("warn", events, because=str(failures[0]))


JOBS: Controller[View] = Controller(
    name="jobs",
    watches=(
        Watch(selects=only(*JOB), enqueue=itself),
        Watch(selects=only(*pods.POD), enqueue=controller_ref.claimants(JOB, _selector)),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
