"""
Cron jobs: a job each time a schedule is due.

A job is named after the minute it was due in, so that no crash makes two of it.
It is made first and noted in the status when it is seen: the note names its
uid, which nobody knows before. What is due and there already is only noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from lamina.actors.names import MANAGER
from lamina.actors.workloads import claim, cron
from lamina.actors.workloads.cronjob_times import Due, Senseless, latest, next_look
from lamina.actors.workloads.job import JOB
from lamina.actors.workloads.job_ending import finish
from lamina.actors.workloads.refusals import serious
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import normal, warning
from lamina.core.plan import NOTHING, Create, Delete, Emit, Plan, Stage, one_stage, set_status
from lamina.core.questions import Absent, Answers, Question, Read
from lamina.core.world import Change, World
from lamina.errors import LaminaError
from lamina.objects import meta
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
    """A cron job, the jobs it controls, and the names of others that stand in its way."""

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


def questions(view: View, answers: Answers) -> tuple[Question, ...]:
    """Ask about jobs that are noted and not seen: memory may be behind."""
    asked = [Read(_where(one)) for one in _missing(view)]
    return tuple(question for question in asked if question not in answers)


def _noted(cron_job: Obj) -> Sequence[Obj]:
    return (cron_job.get("status") or {}).get("active") or ()


def _missing(view: View) -> list[Obj]:
    seen = {meta.uid(job) for job in view.jobs}
    return [one for one in _noted(view.cron_job) if one.get("uid") not in seen]


def _where(note: Obj) -> Ref:
    return Ref("batch/v1", JOB.kind, note.get("namespace") or "", note.get("name") or "")


class _Pass(Struct):
    """What one look at a cron job comes to."""

    cron_job: Obj
    now: datetime
    active: list[Obj]
    status: Made
    made: list[Made] = field(default_factory=list)
    deleted: list[Obj] = field(default_factory=list)
    told: list[Emit] = field(default_factory=list)
    wait: timedelta | None = None
    because: str = "nothing is due"

    def tell(self, reason: str, message: str, occasion: str = "") -> None:
        event = normal(self.cron_job, reason, message, by=_BY, now=self.now, occasion=occasion)
        self.told.append(Emit(event=event))

    def warn(self, reason: str, message: str) -> None:
        self.told.append(Emit(event=warning(self.cron_job, reason, message, by=_BY, now=self.now)))

    def remove(self, job: Obj) -> None:
        """Delete a job, and note it no longer."""
        self.deleted.append(job)
        self.active = [one for one in self.active if one["uid"] != meta.uid(job)]
        self.tell("SuccessfulDelete", f"Deleted job {meta.name(job)}")


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what happens next to a cron job: what is noted of its jobs, which go, and whether one is due."""
    cron_job = view.cron_job
    status = {field: value for field, value in (cron_job.get("status") or {}).items() if field != "active"}
    found = _Pass(cron_job=cron_job, now=now, active=list(_noted(cron_job)), status=status)
    _clean_up(view, found)
    _note(view, answers, found)
    if not meta.is_deleting(cron_job):
        _start(view, found)
    if found.active:
        found.status["active"] = found.active
    said = set_status(cron_job, found.status)
    ends = tuple(Delete(ref=meta.ref(job), uid=meta.uid(job)) for job in found.deleted)
    stages = (
        Stage("say so", (said,) if said is not None else ()),
        Stage("delete jobs", ends),
        Stage("make a job", tuple(Create(obj=job) for job in found.made)),
        Stage("tell", tuple(found.told)),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        look_again=found.wait,
        because=found.because,
    )


def _clean_up(view: View, found: _Pass) -> None:
    """Let the oldest finished jobs go, beyond as many of each kind as are kept."""
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


def _note(view: View, answers: Answers, found: _Pass) -> None:
    """Note which jobs are active, and when one last succeeded."""
    noted = {one["uid"] for one in _noted(view.cron_job)}
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
            found.tell("SawCompletedJob", f"Saw completed job: {meta.name(job)}, condition: {ended}")
        done = (job.get("status") or {}).get("completionTime")
        if ended == "Complete" and done:
            found.status["lastSuccessfulTime"] = max(done, found.status.get("lastSuccessfulTime") or "")
    for one in _missing(view):
        if isinstance(answers.get(Read(_where(one))), Absent):
            found.active.remove(one)
            found.tell("MissingJob", f"Active job went missing: {one['name']}")


def _is_ours(cron_job: Obj, job: Obj) -> bool:
    """Say whether a job was made for a time that was due, and not by somebody in between."""
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


def _start(view: View, found: _Pass) -> None:
    spec, now = view.cron_job["spec"], found.now
    text, zone = spec["schedule"], spec.get("timeZone") or ""
    try:
        cron.zone_named(zone)
    except cron.UnknownZone as error:
        found.warn("UnknownTimeZone", f'invalid timeZone: "{zone}": {error}')
        return
    if spec.get("suspend"):
        found.because = "it is suspended"
        return
    if "TZ" in text:
        found.warn("UnsupportedSchedule", _UNSUPPORTED.format(f'"{text}"'))
    try:
        schedule = cron.read(text, zone)
        due = latest(view.cron_job, schedule, now, within_deadline=True)
        found.wait = next_look(view.cron_job, schedule, now)
    except Senseless as error:
        found.warn("InvalidSchedule", f"invalid schedule: {text} : {error}")
    except ValueError as error:
        found.warn("UnparseableSchedule", f'unparseable schedule: "{text}" : {error}')
    else:
        if due.too_many:
            found.warn("TooManyMissedTimes", _TOO_MANY)
        _meet(view, due, found)


def _meet(view: View, due: Due, found: _Pass) -> None:
    """Make the job that is due, or note the one that is there."""
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
        found.because = f"{name} is there"
        return
    if name in view.taken:
        found.because = f"{name} is somebody else's"
        return
    policy = cron_job["spec"].get("concurrencyPolicy")
    if policy == "Forbid" and found.active:
        found.because = _ACTIVE
        found.tell("JobAlreadyActive", _ACTIVE, occasion=moment_due)
        return
    if policy == "Replace":
        running = {one["uid"] for one in found.active}
        for job in view.jobs:
            if meta.uid(job) in running:
                found.remove(job)
    found.made.append(make_job(cron_job, at))
    found.tell("SuccessfulCreate", f"Created job {name}")
    found.because = f"{name} is due"


def job_name(cron_job: Obj, at: datetime) -> str:
    """Return what the job of a time that was due is called."""
    return f"{meta.name(cron_job)}-{int(at.timestamp()) // 60}"


def make_job(cron_job: Obj, at: datetime) -> Made:
    """Return the job for a time that was due."""
    template: Obj = cron_job["spec"]["jobTemplate"]
    local = at.astimezone(cron.zone_named(cron_job["spec"].get("timeZone") or ""))
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
    cron_job, failures = world.get(ref), serious(error)
    if cron_job is None or not failures:
        return NOTHING
    message = f"Error creating job: {failures[0]}"
    event = warning(cron_job, "FailedCreate", message, by=_BY, now=now)
    return one_stage("warn", [Emit(event=event)], because=message)


def _concerns(world: World, change: Change) -> Iterable[Ref]:
    """A job concerns the cron job that controls it, or did."""
    for job in (change.before, change.after):
        owner = claim.owner_of(world, job, CRON_JOB) if job is not None else None
        if owner is not None:
            yield meta.ref(owner)


CRON_JOBS: Controller[View] = Controller(
    name="cronjobs",
    watches=(
        Watch(selects=only(*CRON_JOB), concerns=itself),
        Watch(selects=only(*JOB), concerns=_concerns),
    ),
    gather=gather,
    questions=questions,
    plan=plan,
    complain=complain,
    manager=MANAGER,
)
