"""
The TTL-after-finished controller, and the removal of tracking finalizers from orphan pods.

A Job with ttlSecondsAfterFinished is deleted that long after it has finished, with
its pods. The finalizer of a pod whose Job is deleted or finished is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import pods
from lamina.actors.workloads.job import JOB
from lamina.actors.workloads.job_finish import finish, finished_at
from lamina.actors.workloads.job_pods import TRACKING, is_tracked
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import NOTHING, Plan, Propagation, delete, one_stage, remove_finalizer
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.model.world import Change, World
from lamina.core.ownership import controller_ref
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


class Expiring(Struct, frozen=True, kw_only=True):
    """A finished Job, and when it expires."""

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
        return Plan(requeue_after=left, because="it has finished, and has not expired")
    return one_stage("delete", [delete(view.job, Propagation.FOREGROUND)], because="it has expired")


JOB_EXPIRY: Controller[Expiring] = Controller(
    name="job-expiry",
    watches=(Watch(selects=only(*JOB), enqueue=itself),),
    gather=gather,
    plan=plan,
    manager=MANAGER,
    at_once=2,
)


class Orphan(Struct, frozen=True, kw_only=True):
    """A pod with the tracking finalizer, and its Job, None if that is finished."""

    pod: Obj
    job: Ref | None
    job_uid: str = ""


def gather_orphan(world: World, ref: Ref) -> Orphan | None:
    pod = world.get(ref)
    if pod is None or not is_tracked(pod):
        return None
    controller = meta.controller_of(pod)
    if controller is None:
        return Orphan(pod=pod, job=None)
    if (controller["apiVersion"], controller["kind"]) != ("batch/v1", JOB.kind):
        return None
    job = controller_ref.owner_of(world, pod, JOB)
    if job is not None:
        return Orphan(pod=pod, job=None) if finish(job) is not None else None
    where = Ref("batch/v1", JOB.kind, meta.namespace(pod), controller["name"])
    return Orphan(pod=pod, job=where, job_uid=controller["uid"])


def orphan_queries(view: Orphan, answers: Answers) -> tuple[Query, ...]:
    """Ask for a live read of the Job, which may not be in the cache yet."""
    return (Read(view.job),) if view.job is not None and Read(view.job) not in answers else ()


def plan_orphan(view: Orphan, answers: Answers, now: datetime) -> Plan:
    match answers.get(Read(view.job)) if view.job is not None else None:
        case Found(job) if meta.uid(job) == view.job_uid:
            return NOTHING
        case _:
            write = remove_finalizer(view.pod, TRACKING)
            return one_stage("remove finalizer", [write], because="no Job tracks it")


def _enqueue_pods(world: World, change: Change) -> Iterable[Ref]:
    """A deleted or finished Job enqueues its tracked pods."""
    before, after = change.before, change.after
    if after is None or finish(after) is not None:
        yield from (
            meta.ref(pod) for pod in world.owned_by(meta.uid(change.obj), pods.POD) if is_tracked(pod)
        )
    if before is not None and after is not None and meta.uid(before) != meta.uid(after):
        yield from (meta.ref(pod) for pod in world.owned_by(meta.uid(before), pods.POD) if is_tracked(pod))


def _enqueue_tracked(world: World, change: Change) -> Iterable[Ref]:
    """A tracked pod without an unfinished Job is enqueued."""
    pod = change.after
    if pod is not None and is_tracked(pod):
        job = controller_ref.owner_of(world, pod, JOB)
        if job is None or finish(job) is not None:
            yield change.ref


JOB_LEFTOVERS: Controller[Orphan] = Controller(
    name="job-leftovers",
    watches=(
        Watch(selects=only(*JOB), enqueue=_enqueue_pods),
        Watch(selects=only(*pods.POD), enqueue=_enqueue_tracked),
    ),
    gather=gather_orphan,
    queries=orphan_queries,
    plan=plan_orphan,
    manager=MANAGER,
    at_once=2,
)
