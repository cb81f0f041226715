"""
How long finished jobs are kept, and pods that nobody counts any more.

A job that says so goes some time after it has finished, its pods with it. A pod
whose job has gone or has finished is let go of: nobody is left to count it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads import claim, pods
from lamina.actors.workloads.job import JOB
from lamina.actors.workloads.job_ending import finish, finished_at
from lamina.actors.workloads.job_pods import TRACKING, is_tracked
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import NOTHING, Plan, Propagation, delete, one_stage, remove_finalizer
from lamina.core.questions import Answers, Found, Question, Read
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


class Expiring(Struct, frozen=True, kw_only=True):
    """A job that has finished, and when it goes."""

    job: Obj
    at: datetime


def gather(world: World, ref: Ref) -> Expiring | None:
    job = world.get(ref)
    if job is None or meta.is_deleting(job):
        return None
    seconds, ended = job["spec"].get("ttlSecondsAfterFinished"), finished_at(job)
    if seconds is None or ended is None:
        return None
    return Expiring(job=job, at=ended + timedelta(seconds=seconds))


def plan(view: Expiring, answers: Answers, now: datetime) -> Plan:
    left = view.at - now
    if left > timedelta(0):
        return Plan(look_again=left, because="it has finished, and is kept for a while")
    return one_stage(
        "clean up", [delete(view.job, Propagation.FOREGROUND)], because="it finished long enough ago"
    )


JOB_EXPIRY: Controller[Expiring] = Controller(
    name="job-expiry",
    watches=(Watch(selects=only(*JOB), concerns=itself),),
    gather=gather,
    plan=plan,
    manager=MANAGER,
    at_once=2,
)


class Left(Struct, frozen=True, kw_only=True):
    """A pod that carries a job's finalizer, and the job it names if that is not known to have finished."""

    pod: Obj
    job: Ref | None
    job_uid: str = ""


def gather_left(world: World, ref: Ref) -> Left | None:
    pod = world.get(ref)
    if pod is None or not is_tracked(pod):
        return None
    controller = meta.controller_of(pod)
    if controller is None:
        return Left(pod=pod, job=None)
    if (controller["apiVersion"], controller["kind"]) != ("batch/v1", JOB.kind):
        return None
    job = claim.owner_of(world, pod, JOB)
    if job is not None:
        return Left(pod=pod, job=None) if finish(job) is not None else None
    where = Ref("batch/v1", JOB.kind, meta.namespace(pod), controller["name"])
    return Left(pod=pod, job=where, job_uid=controller["uid"])


def questions_left(view: Left, answers: Answers) -> tuple[Question, ...]:
    """Ask whether the job is really gone: a pod may be seen before its job is."""
    return (Read(view.job),) if view.job is not None and Read(view.job) not in answers else ()


def plan_left(view: Left, answers: Answers, now: datetime) -> Plan:
    match answers.get(Read(view.job)) if view.job is not None else None:
        case Found(job) if meta.uid(job) == view.job_uid:
            return NOTHING
        case _:
            let_go = remove_finalizer(view.pod, TRACKING)
            return one_stage("let it go", [let_go], because="nobody counts it any more")


def _left_by(world: World, change: Change) -> Iterable[Ref]:
    """A job that is gone or has finished concerns the pods it leaves."""
    before, after = change.before, change.after
    if after is None or finish(after) is not None:
        yield from (
            meta.ref(pod) for pod in world.owned_by(meta.uid(change.obj), pods.POD) if is_tracked(pod)
        )
    if before is not None and after is not None and meta.uid(before) != meta.uid(after):
        yield from (meta.ref(pod) for pod in world.owned_by(meta.uid(before), pods.POD) if is_tracked(pod))


def _tracked(world: World, change: Change) -> Iterable[Ref]:
    """A pod concerns itself while it is tracked and its job does not look after it."""
    pod = change.after
    if pod is not None and is_tracked(pod):
        job = claim.owner_of(world, pod, JOB)
        if job is None or finish(job) is not None:
            yield change.ref


JOB_LEFTOVERS: Controller[Left] = Controller(
    name="job-leftovers",
    watches=(
        Watch(selects=only(*JOB), concerns=_left_by),
        Watch(selects=only(*pods.POD), concerns=_tracked),
    ),
    gather=gather_left,
    questions=questions_left,
    plan=plan_left,
    manager=MANAGER,
    at_once=2,
)
