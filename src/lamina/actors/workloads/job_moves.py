"""
Which pods of a job are made and which go.

As many pods are active as may run side by side, and never more than there are
completions left. Either pods are deleted or pods are made, not both at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.workloads import job_indexes, job_pods, pods
from lamina.actors.workloads.job_ending import is_suspended
from lamina.actors.workloads.job_indexes import index_of, valid_index
from lamina.actors.workloads.job_policy import judge
from lamina.actors.workloads.job_tally import Tally, is_indexed
from lamina.actors.workloads.ranking import first_to_go
from lamina.objects.types import Made, Obj

MOST_AT_ONCE = 500


class Moves(Struct, frozen=True, kw_only=True):
    """The pods to make, the pods to delete uncounted, how many are active then, and how long to wait for more."""

    active: int
    made: Sequence[Made] = ()
    deleted: Sequence[Obj] = ()
    wait: timedelta | None = None


def moves(tally: Tally, now: datetime) -> Moves:
    """Return what happens to the pods of a job that goes on."""
    job, active = tally.job, len(tally.active)
    if is_suspended(job):
        return Moves(active=0, deleted=tally.active)
    wanted = _wanted(tally)
    superfluous = _superfluous(tally, max(active - wanted, 0), now)[:MOST_AT_ONCE]
    if superfluous:
        return Moves(active=active - len(superfluous), deleted=superfluous)
    going = len(tally.terminating) if job_pods.replaces_only_failed(job) else 0
    missing = min(wanted - going - active, MOST_AT_ONCE)
    if missing <= 0:
        return Moves(active=active)
    return _made(tally, missing, now)


def _wanted(tally: Tally) -> int:
    parallelism: int = tally.job["spec"].get("parallelism", 1)
    if tally.completions is None:
        # Nobody knows how many it takes; once one has succeeded, no more are begun.
        return len(tally.active) if tally.succeeded else parallelism
    return max(min(tally.completions - tally.succeeded, parallelism), 0)


def _superfluous(tally: Tally, at_least: int, now: datetime) -> list[Obj]:
    """Return pods to delete: those without a valid index, all but one of each index, and as many more as it takes."""
    if not is_indexed(tally.job):
        return first_to_go(tally.active, at_least, now)
    by_index: dict[int, list[Obj]] = {}
    gone: list[Obj] = []
    for pod in tally.active:
        index = valid_index(pod, tally.completions or 0)
        if index is None:
            gone.append(pod)
        else:
            by_index.setdefault(index, []).append(pod)
    left: list[Obj] = []
    for twins in by_index.values():
        ranked = first_to_go(twins, len(twins) - 1, now) if len(twins) > 1 else []
        gone += ranked
        left += [pod for pod in twins if pod not in ranked]
    return gone + first_to_go(left, max(at_least - len(gone), 0), now)


def _made(tally: Tally, many: int, now: datetime) -> Moves:
    job = tally.job
    if job["spec"].get("backoffLimitPerIndex") is None:
        wait = job_pods.wait_after(_failed(tally), _succeeded(tally), now)
        if wait:
            return Moves(active=len(tally.active), wait=wait)
    if not is_indexed(job):
        names = pods.free_names(job, tally.members, many)
        made = [job_pods.make(job, name) for name in names]
        return Moves(active=len(tally.active) + len(made), made=made)
    taken = tally.done | tally.lost | {index_of(pod) for pod in tally.active}
    if job_pods.replaces_only_failed(job):
        taken |= {index_of(pod) for pod in tally.terminating}
    free = job_indexes.first_free(
        many, tally.completions or 0, frozenset(one for one in taken if one is not None)
    )
    waits = {index: job_pods.wait_at_index(tally.held_back.get(index), now) for index in free}
    due = [index for index in free if not waits[index]]
    if free and not due:
        return Moves(active=len(tally.active), wait=min(waits.values()))
    names = pods.free_names(job, tally.members, len(due))
    made = [_of_index(tally, name, index) for name, index in zip(names, due, strict=True)]
    later = min((wait for wait in waits.values() if wait), default=None)
    return Moves(active=len(tally.active) + len(made), made=made, wait=later)


def _of_index(tally: Tally, name: str, index: int) -> Made:
    replaced = tally.held_back.get(index)
    counted = replaced is None or judge(tally.job, replaced).counts
    return job_pods.make_indexed(tally.job, name, index, replaced, counted=counted)


def _failed(tally: Tally) -> list[Obj]:
    return [pod for pod in tally.members if job_pods.is_failed(tally.job, pod)]


def _succeeded(tally: Tally) -> list[Obj]:
    return [pod for pod in tally.members if pods.phase(pod) == "Succeeded"]
