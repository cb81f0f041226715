"""
The counts of a Job, tracked with finalizers.

Each pod is counted exactly once, with the Job's status as the only record. The uid
of a terminated pod is added to uncountedTerminatedPods, then its finalizer is
removed, and once that is observed the uid is removed and the count incremented. A
crash in between is resumed at the same step. For an indexed Job, completedIndexes
record the succeeded pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lamina.actors.workloads import pods
from lamina.actors.workloads.job_indexes import index_of, valid_index
from lamina.actors.workloads.job_pods import failures_of, finished_at, ignored_of, is_failed, is_tracked
from lamina.actors.workloads.job_policy import Action, match_failure_policy
from lamina.objects import index_set, meta
from lamina.objects.types import Obj

MOST_UNCOUNTED = 500


def is_indexed(job: Obj) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


@dataclass(frozen=True)
class JobCounts:
    """A Job and its pods, with the counts that its sync needs."""

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

    def recorded(self, how: str) -> list[str]:
        """Return the uids in uncountedTerminatedPods, `succeeded` or `failed`."""
        return list((self.status.get("uncountedTerminatedPods") or {}).get(how) or ())

    @cached_property
    def uncounted(self) -> list[Obj]:
        """The pods with the tracking finalizer, in order of their index where they have one."""
        tracked = [pod for pod in self.members if is_tracked(pod)]
        if is_indexed(self.job):
            return sorted(tracked, key=lambda pod: -1 if (index := index_of(pod)) is None else index)
        return tracked

    @cached_property
    def newly_succeeded(self) -> list[Obj]:
        recorded = self.recorded("succeeded")
        return [
            pod
            for pod in self.uncounted
            if pods.phase(pod) == "Succeeded" and meta.uid(pod) not in recorded and self._is_valid(pod)
        ]

    @cached_property
    def newly_failed(self) -> list[Obj]:
        recorded = self.recorded("failed")
        return [
            pod
            for pod in self.uncounted
            if is_failed(self.job, pod) and meta.uid(pod) not in recorded and self._is_valid(pod)
        ]

    def _is_valid(self, pod: Obj) -> bool:
        return not is_indexed(self.job) or valid_index(pod, self.completions or 0) is not None

    @cached_property
    def succeeded(self) -> int:
        """The number of succeeded pods, of succeeded indexes for an indexed Job."""
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        already = self.status.get("succeeded") or 0
        return already + len(self.newly_succeeded) + len(self.recorded("succeeded"))

    @cached_property
    def failed(self) -> int:
        """The number of failed pods, without those the policy ignores."""
        counted = sum(match_failure_policy(self.job, pod).counts for pod in self.newly_failed)
        return (self.status.get("failed") or 0) + counted + len(self.recorded("failed"))

    @cached_property
    def succeeded_indexes(self) -> frozenset[int]:
        """The indexes that have succeeded."""
        completions = self.completions or 0
        before = index_set.parse(self.status.get("completedIndexes"), completions)
        fresh = (valid_index(pod, completions) for pod in self.newly_succeeded)
        return before.union(index for index in fresh if index is not None)

    @cached_property
    def failed_indexes(self) -> frozenset[int]:
        """The failed indexes; none without backoffLimitPerIndex."""
        limit = self.job["spec"].get("backoffLimitPerIndex")
        if limit is None:
            return frozenset()
        completions = self.completions or 0
        found = set(index_set.parse(self.status.get("failedIndexes"), completions))
        for pod in self.uncounted:
            index = valid_index(pod, completions)
            if index is None or not is_failed(self.job, pod):
                continue
            match_ = match_failure_policy(self.job, pod)
            if match_.action is Action.FAIL_INDEX or (match_.counts and failures_of(pod) >= limit):
                found.add(index)
        return frozenset(found)

    @cached_property
    def retried(self) -> dict[int, Obj]:
        """
        The last failed pod of each index that is to be retried.

        Its finalizer is kept until its replacement exists, which takes over its
        failure count.
        """
        if self.job["spec"].get("backoffLimitPerIndex") is None:
            return {}
        busy = {index_of(pod) for pod in self.active}
        held: dict[int, Obj] = {}
        for pod in self.uncounted:
            index = valid_index(pod, self.completions or 0)
            if index is None or not is_failed(self.job, pod):
                continue
            if index in self.succeeded_indexes or index in self.failed_indexes or index in busy:
                continue
            if index not in held or _is_later(pod, held[index]):
                held[index] = pod
        return held


def _is_later(pod: Obj, other: Obj) -> bool:
    more = failures_of(pod) + ignored_of(pod) >= failures_of(other) + ignored_of(other)
    return more and finished_at(pod) >= finished_at(other)
