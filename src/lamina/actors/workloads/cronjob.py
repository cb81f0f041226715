"""
The CronJob controller: creates a Job each time a schedule is due.

A Job is named after the minute of its scheduled time, so that a crash cannot
cause two. It is created first and added to `status.active` when it is observed,
because the entry has its uid. A due Job that exists already is only added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads.cronjob_times import Due, NeverDue, latest, next_schedule_after
from lamina.actors.workloads.job import JOB
from lamina.actors.workloads.job_finish import finish
from lamina.actors.workloads.server_errors import reportable
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import NOTHING, Create, Delete, Emit, Plan, Stage, one_stage, set_status
from lamina.core.model.queries import Absent, Answers, Query, Read
from lamina.core.model.world import Change, World
from lamina.core.ownership import controller_ref
from lamina.errors import LaminaError
from lamina.objects import cron, meta
from lamina.objects.times import moment, stamp
from lamina.objects.types import GroupKind, Made, Obj, Ref

CRON_JOB = GroupKind("batch", "CronJob")
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"

_BY = "cronjob-controller"
_UNSUPPORTED = (
    "CRON_TZ or TZ used in schedule {} is not officially supported, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_TOO_MANY = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_ACTIVE = "Not starting job because prior execution is running and concurrency policy is Forbid"


class View(Struct, frozen=True, kw_only=True):
    """A CronJob, the Jobs it controls, and the names of all Jobs with its prefix."""

    cron_job: Obj
    jobs: tuple[Obj, ...]
    taken: frozenset[str]


def gather(world: World, ref: Ref) -> View | None:
    cron_job = world.get(ref)
    if cron_job is None:
        return None
    uid = meta.uid(cron_job)
    jobs = tuple(job for job in world.owned_by(uid, JOB) if meta.is_controlled_by(job, uid))
    stem = f"{ref.name}-"
    taken = frozenset(
        name for job in world.every(JOB, ref.namespace) if (name := meta.name(job)).startswith(stem)
    )
    return View(cron_job=cron_job, jobs=jobs, taken=taken)


def queries(view: View, answers: Answers) -> tuple[Query, ...]:
    """Ask for live reads of active Jobs that are not in the cache, which may be stale."""
    asked = [Read(_ref_of(one)) for one in _missing(view)]
    return tuple(question for question in asked if question not in answers)


def _active(cron_job: Obj) -> Sequence[Obj]:
    return (cron_job.get("status") or {}).get("active") or ()


def _missing(view: View) -> list[Obj]:
    seen = {meta.uid(job) for job in view.jobs}
    return [one for one in _active(view.cron_job) if one.get("uid") not in seen]


def _ref_of(note: Obj) -> Ref:
    return Ref("batch/v1", JOB.kind, note.get("namespace") or "", note.get("name") or "")


class _Sync(Struct):
    """The result of one sync of a CronJob."""

    cron_job: Obj
    now: datetime
    active: list[Obj]
    status: Made
    made: list[Made] = field(default_factory=list)
    deleted: list[Obj] = field(default_factory=list)
    events: list[Emit] = field(default_factory=list)
    wait: timedelta | None = None
    because: str = "nothing is due"

    def record(self, reason: str, message: str, occasion: str = "") -> None:
        event = normal(self.cron_job, reason, message, by=_BY, now=self.now, occasion=occasion)
        self.events.append(Emit(event=event))

    def warn(self, reason: str, message: str) -> None:
        self.events.append(Emit(event=warning(self.cron_job, reason, message, by=_BY, now=self.now)))

    def remove(self, job: Obj) -> None:
        """Delete a Job, and remove it from the active ones."""
        self.deleted.append(job)
        self.active = [one for one in self.active if one["uid"] != meta.uid(job)]
        self.record("SuccessfulDelete", f"Deleted job {meta.name(job)}")


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Plan the status of a CronJob, the Jobs to delete, and the Job that is due."""
    cron_job = view.cron_job
    status = {field: value for field, value in (cron_job.get("status") or {}).items() if field != "active"}
    found = _Sync(cron_job=cron_job, now=now, active=list(_active(cron_job)), status=status)
    _clean_up(view, found)
    _update_active(view, answers, found)
    if not meta.is_deleting(cron_job):
        _start(view, found)
    if found.active:
        found.status["active"] = found.active
    write = set_status(cron_job, found.status)
    deletes = tuple(Delete(ref=meta.ref(job), uid=meta.uid(job)) for job in found.deleted)
    stages = (
        Stage("write status", (write,) if write is not None else ()),
        Stage("delete jobs", deletes),
        Stage("create job", tuple(Create(obj=job) for job in found.made)),
        Stage("record events", tuple(found.events)),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        requeue_after=found.wait,
        because=found.because,
    )


def _clean_up(view: View, found: _Sync) -> None:
    """Delete the oldest finished Jobs beyond the history limits."""
    spec = view.cron_job["spec"]
    kept = {"Complete": spec.get("successfulJobsHistoryLimit"), "Failed": spec.get("failedJobsHistoryLimit")}
    for how, limit in kept.items():
        if limit is None:
            continue
        ended = [job for job in view.jobs if finish(job) == how and not meta.is_deleting(job)]
        for job in sorted(ended, key=_started)[: max(len(ended) - limit, 0)]:
            found.remove(job)


def _started(job: Obj) -> tuple[bool, str, str]:
    start = (job.get("status") or {}).get("startTime") or ""
    return not start, start, meta.name(job)


def _update_active(view: View, answers: Answers, found: _Sync) -> None:
    """Update the active Jobs and lastSuccessfulTime."""
    noted = {one["uid"] for one in _active(view.cron_job)}
    for job in view.jobs:
        uid, ended = meta.uid(job), finish(job)
        if ended is None:
            if uid in noted:
                continue
            if _is_ours(view.cron_job, job):
                found.active.append(_reference(job))
            else:
                message = f"Saw a job that the controller did not create or forgot: {meta.name(job)}"
                found.warn("UnexpectedJob", message)
            continue
        if uid in noted:
            found.active = [one for one in found.active if one["uid"] != uid]
            found.record("SawCompletedJob", f"Saw completed job: {meta.name(job)}, condition: {ended}")
        done = (job.get("status") or {}).get("completionTime")
        if ended == "Complete" and done:
            found.status["lastSuccessfulTime"] = max(done, found.status.get("lastSuccessfulTime") or "")
    for one in _missing(view):
        if isinstance(answers.get(Read(_ref_of(one))), Absent):
            found.active.remove(one)
            found.record("MissingJob", f"Active job went missing: {one['name']}")


def _is_ours(cron_job: Obj, job: Obj) -> bool:
    """Say whether a Job was created for a scheduled time, by its name."""
    at = moment(meta.annotations(job).get(SCHEDULED))
    return at is not None and meta.name(job) == job_name(cron_job, at)


def _reference(job: Obj) -> Made:
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": meta.name(job),
        "namespace": meta.namespace(job),
        "resourceVersion": meta.resource_version(job),
        "uid": meta.uid(job),
    }


def _start(view: View, found: _Sync) -> None:
    spec, now = view.cron_job["spec"], found.now
    text, zone = spec["schedule"], spec.get("timeZone") or ""
    try:
        cron.time_zone(zone)
    except cron.UnknownTimeZone as error:
        found.warn("UnknownTimeZone", f'invalid timeZone: "{zone}": {error}')
        return
    if spec.get("suspend"):
        found.because = "it is suspended"
        return
    if "TZ" in text:
        found.warn("UnsupportedSchedule", _UNSUPPORTED.format(f'"{text}"'))
    try:
        schedule = cron.parse(text, zone)
        due = latest(view.cron_job, schedule, now, within_deadline=True)
        found.wait = next_schedule_after(view.cron_job, schedule, now)
    except NeverDue as error:
        found.warn("InvalidSchedule", f"invalid schedule: {text} : {error}")
    except ValueError as error:
        found.warn("UnparseableSchedule", f'unparseable schedule: "{text}" : {error}')
    else:
        if due.too_many:
            found.warn("TooManyMissedTimes", _TOO_MANY)
        _create_due(view, due, found)


def _create_due(view: View, due: Due, found: _Sync) -> None:
    """Create the Job that is due, or record the one that exists."""
    cron_job, at = view.cron_job, due.at
    if at is None:
        return
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if deadline is not None and at + timedelta(seconds=deadline) < found.now:
        shown = at.strftime("%a, %d %b %Y %H:%M:%S +0000")
        found.warn("MissSchedule", f"Missed scheduled time to start a job: {shown}")
        return
    name, moment_due = job_name(cron_job, at), stamp(at)
    if found.status.get("lastScheduleTime") == moment_due:
        return
    if any(meta.name(job) == name for job in view.jobs):
        found.status["lastScheduleTime"] = moment_due
        found.because = f"{name} exists"
        return
    if name in view.taken:
        found.because = f"{name} is not controlled by it"
        return
    policy = cron_job["spec"].get("concurrencyPolicy")
    if policy == "Forbid" and found.active:
        found.because = _ACTIVE
        found.record("JobAlreadyActive", _ACTIVE, occasion=moment_due)
        return
    if policy == "Replace":
        running = {one["uid"] for one in found.active}
        for job in view.jobs:
            if meta.uid(job) in running:
                found.remove(job)
    found.made.append(make_job(cron_job, at))
    found.record("SuccessfulCreate", f"Created job {name}")
    found.because = f"{name} is due"


def job_name(cron_job: Obj, at: datetime) -> str:
    """Return the name of the Job for a scheduled time."""
    return f"{meta.name(cron_job)}-{int(at.timestamp()) // 60}"


def make_job(cron_job: Obj, at: datetime) -> Made:
    """Return the Job for a scheduled time."""
    template: Obj = cron_job["spec"]["jobTemplate"]
    local = at.astimezone(cron.time_zone(cron_job["spec"].get("timeZone") or ""))
    shown = local.isoformat(timespec="seconds").replace("+00:00", "Z")
    metadata: Made = {
        "name": job_name(cron_job, at),
        "namespace": meta.namespace(cron_job),
        "annotations": {**meta.annotations(template), SCHEDULED: shown},
        "ownerReferences": [meta.owner_ref(cron_job, controller=True, blocks=True)],
    }
    if meta.labels(template):
        metadata["labels"] = dict(meta.labels(template))
    return {
        "apiVersion": "batch/v1",
        "kind": JOB.kind,
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    cron_job, failures = world.get(ref), reportable(error)
    if cron_job is None or not failures:
        return NOTHING
    message = f"Error creating job: {failures[0]}"
    event = warning(cron_job, "FailedCreate", message, by=_BY, now=now)
    return one_stage("warn", [Emit(event=event)], because=message)


def _enqueue_owner(world: World, change: Change) -> Iterable[Ref]:
    """A changed Job enqueues the CronJob that controls it, or did."""
    for job in (change.before, change.after):
        owner = controller_ref.owner_of(world, job, CRON_JOB) if job is not None else None
        if owner is not None:
            yield meta.ref(owner)


CRON_JOBS: Controller[View] = Controller(
    name="cronjobs",
    watches=(
        Watch(selects=only(*CRON_JOB), enqueue=itself),
        Watch(selects=only(*JOB), enqueue=_enqueue_owner),
    ),
    gather=gather,
    queries=queries,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
