"""
Jobs: pods that run until enough of them have succeeded.

A pass goes from the record to the deed. The status says which pods ended, how
many will be active and, where it has come to that, how the job will end; then
pods are let go of, deleted and made. What a pass wrote is counted by the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lamina.actors.names import MANAGER
from lamina.actors.workloads import claim, job_indexes, pods, telling
from lamina.actors.workloads.claim import Claim
from lamina.actors.workloads.job_ending import (
    COMPLETE,
    Ending,
    announced,
    conditions_of,
    ending,
    finish,
    is_suspended,
    time_left,
    with_condition,
)
from lamina.actors.workloads.job_indexes import valid_index
from lamina.actors.workloads.job_moves import Moves, moves
from lamina.actors.workloads.job_pods import TRACKING, is_failed
from lamina.actors.workloads.job_policy import judge
from lamina.actors.workloads.job_tally import MOST_UNCOUNTED, Tally, is_indexed
from lamina.actors.workloads.refusals import serious
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import normal, warning
from lamina.core.plan import (
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
from lamina.core.questions import Answers, Question
from lamina.core.world import World
from lamina.errors import LaminaError
from lamina.objects import conditions, meta, selectors
from lamina.objects.selectors import LabelSelector
from lamina.objects.times import moment, stamp
from lamina.objects.types import Condition, GroupKind, Made, Obj, Ref

JOB = GroupKind("batch", "Job")

_BY = "job-controller"
_OURS = "kubernetes.io/job-controller"


class View(Struct, frozen=True, kw_only=True):
    """A job that has not ended, and its pods."""

    job: Obj
    pods: Claim


def gather(world: World, ref: Ref) -> View | None:
    job = world.get(ref)
    if job is None or finish(job) is not None or job["spec"].get("managedBy", _OURS) != _OURS:
        return None
    return View(job=job, pods=claim.claim(world, job, pods.POD, _selector(job)))


def _selector(job: Obj) -> LabelSelector:
    return selectors.from_object(job["spec"].get("selector"))


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    return claim.questions(view.pods, answers)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what happens next to a job: whether it ends, and if it goes on, which pods are made and which go."""
    job = view.job
    claimed = _claimed(view.pods, answers)
    if claimed:
        # What was taken in is seen again as ours, and then counted.
        return one_stage("take in and let go", claimed, because="its selector says which pods are its own")

    tally = Tally(job, claim.members(view.pods, answers))
    start = moment(tally.status.get("startTime"))
    if start is None and not is_suspended(job):
        start = now
    end = ending(tally, start, now)
    if end is not None:
        made = Moves(active=0)
    elif meta.is_deleting(job):
        made = Moves(active=len(tally.active))
    else:
        made = moves(tally, now)
    if end is None and _is_complete(tally, made.active):
        end = COMPLETE
    stopped = tally.active if end is not None else []
    counted = _count(tally, end)
    status = _status(tally, end, made, counted, stopped, start, now)
    return _staged(tally, end, made, counted, stopped, status, now)


def _is_complete(tally: Tally, active: int) -> bool:
    if active:
        return False
    return tally.succeeded > 0 if tally.completions is None else tally.succeeded >= tally.completions


# ── counting ──


class _Counted(Struct, frozen=True, kw_only=True):
    """What is noted and counted in this pass, and the pods that may go once that is written."""

    succeeded: int
    failed: int
    noted_succeeded: Sequence[str]
    noted_failed: Sequence[str]
    released: Sequence[Obj]

    @property
    def is_settled(self) -> bool:
        """Say whether every pod has been counted."""
        return not (self.noted_succeeded or self.noted_failed or self.released)


def _count(tally: Tally, end: Ending | None) -> _Counted:
    """Count what was noted and let go of before, and note what has ended since."""
    held = {meta.uid(pod) for pod in tally.uncounted}
    noted = {how: [uid for uid in tally.noted(how) if uid in held] for how in ("succeeded", "failed")}
    gone = {how: len(tally.noted(how)) - len(noted[how]) for how in noted}
    released: list[Obj] = []
    indexed = is_indexed(tally.job)
    fresh = 0
    for pod in tally.uncounted:
        if fresh + len(noted["succeeded"]) + len(noted["failed"]) >= MOST_UNCOUNTED:
            break
        if not _may_go(tally, pod, end):
            continue
        released.append(pod)
        uid = meta.uid(pod)
        if pods.phase(pod) == "Succeeded" and uid not in noted["failed"]:
            if indexed:
                fresh += 1
            elif uid not in noted["succeeded"]:
                noted["succeeded"].append(uid)
        elif uid not in noted["failed"] and _counts_as_failed(tally, pod, end):
            noted["failed"].append(uid)
    succeeded = len(tally.done) if indexed else (tally.status.get("succeeded") or 0) + gone["succeeded"]
    return _Counted(
        succeeded=succeeded,
        failed=(tally.status.get("failed") or 0) + gone["failed"],
        noted_succeeded=noted["succeeded"],
        noted_failed=noted["failed"],
        released=released,
    )


def _may_go(tally: Tally, pod: Obj, end: Ending | None) -> bool:
    """Say whether a pod has been of use for the last time: it ended, or the job does."""
    if end is not None or meta.is_deleting(tally.job) or pods.phase(pod) == "Succeeded":
        return True
    if not is_failed(tally.job, pod):
        return False
    index = valid_index(pod, tally.completions or 0)
    kept = tally.held_back.get(index) if index is not None else None
    return kept is None or meta.uid(kept) != meta.uid(pod)


def _counts_as_failed(tally: Tally, pod: Obj, end: Ending | None) -> bool:
    """Say whether a pod is one more failure; once a job has failed, whatever still runs is."""
    if not is_failed(tally.job, pod) and (end is None or end.well):
        return False
    if is_indexed(tally.job) and valid_index(pod, tally.completions or 0) is None:
        return False
    return judge(tally.job, pod).counts


# ── telling ──


def _status(
    tally: Tally,
    end: Ending | None,
    made: Moves,
    counted: _Counted,
    stopped: Sequence[Obj],
    start: datetime | None,
    now: datetime,
) -> Made:
    job, old = tally.job, tally.status
    leaving = [*made.deleted, *stopped]
    terminating = len(tally.terminating) + len(leaving)
    ready = sum(map(pods.is_ready, tally.active)) - sum(map(pods.is_ready, leaving))
    said = list(conditions_of(job))
    started = stamp(start) if start is not None else None
    if end is not None:
        said = with_condition(said, end.announced, "True", end.reason, end.message, now)
    elif not meta.is_deleting(job):
        said = _suspension(job, said, now)
        if said != list(conditions_of(job)) and not is_suspended(job):
            # A job that goes on begins anew: the time it was suspended does not count.
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
        status |= {"completedIndexes": job_indexes.written(tally.done)} if tally.done else {}
        if job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = job_indexes.written(tally.lost)
    if end is not None and announced(job) is not None and counted.is_settled and not terminating:
        said = with_condition(said, end.reached, "True", end.reason, end.message, now)
        if end.well:
            status["completionTime"] = stamp(now)
    return {**status, "conditions": said} if said else status


def _suspension(job: Obj, said: Sequence[Condition], now: datetime) -> list[Condition]:
    if is_suspended(job):
        return with_condition(said, "Suspended", "True", "JobSuspended", "Job suspended", now)
    return with_condition(said, "Suspended", "False", "JobResumed", "Job resumed", now)


def _positive(**counts: int) -> Made:
    return {field: count for field, count in counts.items() if count}


def _staged(
    tally: Tally,
    end: Ending | None,
    made: Moves,
    counted: _Counted,
    stopped: Sequence[Obj],
    status: Made,
    now: datetime,
) -> Plan:
    job = tally.job
    said = _patch(job, status)
    leaving = [*made.deleted, *stopped]
    # Let go of first and deleted then: a pod that is going would count as one more failure.
    freed = {meta.uid(pod): remove_finalizer(pod, TRACKING) for pod in (*counted.released, *made.deleted)}
    events = [
        *telling.created(job, made.made, by=_BY, now=now),
        *telling.deleted(job, leaving, by=_BY, now=now),
        *_happened(job, status, now),
    ]
    stages = (
        Stage("say so", (said,) if said is not None else ()),
        Stage("let pods go", tuple(freed.values())),
        Stage("delete pods", tuple(_deletion(pod) for pod in leaving)),
        Stage("make pods", tuple(Create(obj=pod) for pod in made.made)),
        Stage("tell", tuple(events) if said is not None or leaving or made.made else ()),
    )
    waits = [wait for wait in (made.wait, time_left(job, moment(status.get("startTime")), now)) if wait]
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        look_again=min(waits, default=None) if end is None else None,
        because=end.message if end is not None else f"{made.active} active, {tally.succeeded} succeeded",
    )


def _deletion(pod: Obj) -> Delete:
    # Its finalizer may have been removed since it was seen, which is no reason to keep it.
    return Delete(ref=meta.ref(pod), uid=meta.uid(pod))


def _patch(job: Obj, status: Made) -> Patch | None:
    said = set_status(job, status)
    if said is None or "uncountedTerminatedPods" not in said.patch["status"]:
        return said
    # A merge patch leaves alone what it does not name.
    noted = {"succeeded": None, "failed": None, **status["uncountedTerminatedPods"]}
    return replace(said, patch={"status": {**said.patch["status"], "uncountedTerminatedPods": noted}})


def _happened(job: Obj, status: Obj, now: datetime) -> Iterable[Emit]:
    """Tell what has become true of a job."""
    version = meta.resource_version(job)
    before, after = conditions_of(job), status.get("conditions") or ()

    def became(name: str, value: str) -> bool:
        old, new = conditions.find(before, name), conditions.find(after, name)
        return new is not None and new["status"] == value and (old is None or old["status"] != value)

    def tell(reason: str, message: str) -> Emit:
        return Emit(event=normal(job, reason, message, by=_BY, now=now, occasion=version))

    if became("Suspended", "True"):
        yield tell("Suspended", "Job suspended")
    if became("Suspended", "False"):
        yield tell("Resumed", "Job resumed")
    if became("Complete", "True"):
        completions = job["spec"].get("completions")
        if completions is not None and (status.get("succeeded") or 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            yield Emit(event=warning(job, "TooManySucceededPods", message, by=_BY, now=now))
        yield tell("Completed", "Job completed")
    failed = conditions.find(after, "Failed")
    if became("Failed", "True") and failed is not None:
        reason, message = failed.get("reason") or "Failed", failed.get("message") or ""
        yield Emit(event=warning(job, reason, message, by=_BY, now=now))


def _claimed(held: Claim, answers: Answers) -> tuple[Patch, ...]:
    """Return what makes the claim good; a pod that is taken in is tracked from then on."""
    taken = {meta.ref(pod): pod for pod in held.adoptable}
    return tuple(
        replace(one, patch=_tracked(one.patch, taken[one.ref])) if one.ref in taken else one
        for one in claim.changes(held, answers)
    )


def _tracked(patch: Obj, pod: Obj) -> Made:
    finalizers = meta.finalizers(meta.with_finalizer(pod, TRACKING))
    return {**patch, "metadata": {**patch["metadata"], "finalizers": finalizers}}


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    job, failures = world.get(ref), serious(error)
    if job is None or not failures:
        return NOTHING
    said = telling.refused(job, failures, by=_BY, now=now)
    return one_stage("warn", said, because=str(failures[0]))


JOBS: Controller[View] = Controller(
    name="jobs",
    watches=(
        Watch(selects=only(*JOB), concerns=itself),
        Watch(selects=only(*pods.POD), concerns=claim.claimants(JOB, _selector)),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
