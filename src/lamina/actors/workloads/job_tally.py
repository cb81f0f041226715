"""
How far a job has come.

A pod is counted once, though nobody remembers more than the job's status does.
A pod that ended is first noted there by its uid, then its finalizer is removed,
and when that is seen the uid is dropped and the number goes up. Whatever
crashes in between is found as it was left. For an indexed job the index of a
pod that succeeded is note enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lamina.actors.workloads import job_indexes, pods
from lamina.actors.workloads.job_indexes import index_of, valid_index
from lamina.actors.workloads.job_pods import failures_of, finished_at, ignored_of, is_failed, is_tracked
from lamina.actors.workloads.job_policy import Verdict, judge
from lamina.objects import meta
from lamina.objects.types import Obj

MOST_UNCOUNTED = 500


def is_indexed(job: Obj) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


@dataclass(frozen=True)
class Tally:
    """A job and its pods, counted in every way that matters."""

    job: Obj
    members: Sequence[Obj]

    @property
    def status(self) -> Obj:
        return self.job.get("status") or {}

    @property
    def completions(self) -> int | None:
        count: int | None = self.job["spec"].get("completions")
        return count

    @cached_property
    def active(self) -> list[Obj]:
        return [pod for pod in self.members if pods.is_active(pod)]

    @cached_property
    def terminating(self) -> list[Obj]:
        return [pod for pod in self.members if pods.is_terminating(pod)]

    def noted(self, how: str) -> list[str]:
        """Return the uids that are noted in the status as `succeeded` or `failed`, and not counted yet."""
        return list((self.status.get("uncountedTerminatedPods") or {}).get(how) or ())

    @cached_property
    def uncounted(self) -> list[Obj]:
        """The pods that count and carry the finalizer, in order of their index where they have one."""
        tracked = [pod for pod in self.members if is_tracked(pod)]
        if is_indexed(self.job):
            return sorted(tracked, key=lambda pod: -1 if (index := index_of(pod)) is None else index)
        return tracked

    @cached_property
    def newly_succeeded(self) -> list[Obj]:
        noted = self.noted("succeeded")
        return [
            pod
            for pod in self.uncounted
            if pods.phase(pod) == "Succeeded" and meta.uid(pod) not in noted and self._is_valid(pod)
        ]

    @cached_property
    def newly_failed(self) -> list[Obj]:
        noted = self.noted("failed")
        return [
            pod
            for pod in self.uncounted
            if is_failed(self.job, pod) and meta.uid(pod) not in noted and self._is_valid(pod)
        ]

    def _is_valid(self, pod: Obj) -> bool:
        return not is_indexed(self.job) or valid_index(pod, self.completions or 0) is not None

    @cached_property
    def succeeded(self) -> int:
        """How many pods have succeeded, or for an indexed job how many indexes have."""
        if is_indexed(self.job):
            return len(self.done)
        already = self.status.get("succeeded") or 0
        return already + len(self.newly_succeeded) + len(self.noted("succeeded"))

    @cached_property
    def failed(self) -> int:
        """How many pods have failed, those a policy ignores left out."""
        counted = sum(judge(self.job, pod).counts for pod in self.newly_failed)
        return (self.status.get("failed") or 0) + counted + len(self.noted("failed"))

    @cached_property
    def done(self) -> frozenset[int]:
        """The indexes that have succeeded."""
        completions = self.completions or 0
        before = job_indexes.read(self.status.get("completedIndexes"), completions)
        fresh = (valid_index(pod, completions) for pod in self.newly_succeeded)
        return before.union(index for index in fresh if index is not None)

    @cached_property
    def lost(self) -> frozenset[int]:
        """The indexes that have failed for good; none where failures are not counted for each."""
        limit = self.job["spec"].get("backoffLimitPerIndex")
        if limit is None:
            return frozenset()
        completions = self.completions or 0
        found = set(job_indexes.read(self.status.get("failedIndexes"), completions))
        for pod in self.uncounted:
            index = valid_index(pod, completions)
            if index is None or not is_failed(self.job, pod):
                continue
            judged = judge(self.job, pod)
            if judged.verdict is Verdict.FAIL_INDEX or (judged.counts and failures_of(pod) >= limit):
                found.add(index)
        return frozenset(found)

    @cached_property
    def held_back(self) -> dict[int, Obj]:
        """
        The last pod that failed at each index that is to be tried again.

        It is kept until its replacement is there, which carries on its count.
        """
        if self.job["spec"].get("backoffLimitPerIndex") is None:
            return {}
        busy = {index_of(pod) for pod in self.active}
        held: dict[int, Obj] = {}
        for pod in self.uncounted:
            index = valid_index(pod, self.completions or 0)
            if index is None or not is_failed(self.job, pod):
                continue
            if index in self.done or index in self.lost or index in busy:
                continue
            if index not in held or _is_later(pod, held[index]):
                held[index] = pod
        return held


def _is_later(pod: Obj, other: Obj) -> bool:
    more = failures_of(pod) + ignored_of(pod) >= failures_of(other) + ignored_of(other)
    return more and finished_at(pod) >= finished_at(other)
