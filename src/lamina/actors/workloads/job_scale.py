"""
The pods of a Job to create and to delete.

The number of active pods is the parallelism, and at most the remaining
completions. One sync either deletes or creates pods, not both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.workloads import job_indexes, job_pods, pods
from lamina.actors.workloads.deletion_order import pods_to_delete
from lamina.actors.workloads.job_finish import is_suspended
from lamina.actors.workloads.job_indexes import index_of, valid_index
from lamina.actors.workloads.job_policy import match_failure_policy
from lamina.actors.workloads.job_tracking import JobCounts, is_indexed
from lamina.objects.types import Made, Obj

MOST_AT_ONCE = 500


class PodChanges(Struct, frozen=True, kw_only=True):
    """The pods to create and to delete, the active pods after that, and the backoff before more are created."""

    active: int
    made: Sequence[Made] = ()
    deleted: Sequence[Obj] = ()
    wait: timedelta | None = None


def pod_changes(counts: JobCounts, now: datetime) -> PodChanges:
    """Return the pods of an unfinished Job to create and to delete."""
    job, active = counts.job, len(counts.active)
    if is_suspended(job):
        return PodChanges(active=0, deleted=counts.active)
    wanted = _wanted(counts)
    surplus = _surplus(counts, max(active - wanted, 0), now)[:MOST_AT_ONCE]
    if surplus:
        return PodChanges(active=active - len(surplus), deleted=surplus)
    terminating = len(counts.terminating) if job_pods.replaces_only_failed(job) else 0
    missing = min(wanted - terminating - active, MOST_AT_ONCE)
    if missing <= 0:
        return PodChanges(active=active)
    return _to_create(counts, missing, now)


def _wanted(counts: JobCounts) -> int:
    parallelism: int = counts.job["spec"].get("parallelism", 1)
    if counts.completions is None:
        # Without completions, no more pods are created once one has succeeded.
        return len(counts.active) if counts.succeeded else parallelism
    return max(min(counts.completions - counts.succeeded, parallelism), 0)


def _surplus(counts: JobCounts, at_least: int, now: datetime) -> list[Obj]:
    """Return pods to delete: those without a valid index, duplicates of an index, and more to reach `at_least`."""
    if not is_indexed(counts.job):
        return pods_to_delete(counts.active, at_least, now)
    by_index: dict[int, list[Obj]] = {}
    gone: list[Obj] = []
    for pod in counts.active:
        index = valid_index(pod, counts.completions or 0)
        if index is None:
            gone.append(pod)
        else:
            by_index.setdefault(index, []).append(pod)
    left: list[Obj] = []
    for duplicates in by_index.values():
        ranked = pods_to_delete(duplicates, len(duplicates) - 1, now) if len(duplicates) > 1 else []
        gone += ranked
        left += [pod for pod in duplicates if pod not in ranked]
    return gone + pods_to_delete(left, max(at_least - len(gone), 0), now)


def _to_create(counts: JobCounts, many: int, now: datetime) -> PodChanges:
    job = counts.job
    if job["spec"].get("backoffLimitPerIndex") is None:
        wait = job_pods.backoff_after(_failed(counts), _succeeded(counts), now)
        if wait:
            return PodChanges(active=len(counts.active), wait=wait)
    if not is_indexed(job):
        names = pods.free_names(job, counts.members, many)
        made = [job_pods.make(job, name) for name in names]
        return PodChanges(active=len(counts.active) + len(made), made=made)
    taken = counts.succeeded_indexes | counts.failed_indexes | {index_of(pod) for pod in counts.active}
    if job_pods.replaces_only_failed(job):
        taken |= {index_of(pod) for pod in counts.terminating}
    free = job_indexes.first_free(
        many, counts.completions or 0, frozenset(one for one in taken if one is not None)
    )
    waits = {index: job_pods.backoff_at_index(counts.retried.get(index), now) for index in free}
    due = [index for index in free if not waits[index]]
    if free and not due:
        return PodChanges(active=len(counts.active), wait=min(waits.values()))
    names = pods.free_names(job, counts.members, len(due))
    made = [_of_index(counts, name, index) for name, index in zip(names, due, strict=True)]
    later = min((wait for wait in waits.values() if wait), default=None)
    return PodChanges(active=len(counts.active) + len(made), made=made, wait=later)


def _of_index(counts: JobCounts, name: str, index: int) -> Made:
    predecessor = counts.retried.get(index)
    counted = predecessor is None or match_failure_policy(counts.job, predecessor).counts
    return job_pods.make_indexed(counts.job, name, index, predecessor, counted=counted)


def _failed(counts: JobCounts) -> list[Obj]:
    return [pod for pod in counts.members if job_pods.is_failed(counts.job, pod)]


def _succeeded(counts: JobCounts) -> list[Obj]:
    return [pod for pod in counts.members if pods.phase(pod) == "Succeeded"]
