"""
The pods of a job: how one is made, when it ended, and how long to wait after one that failed.

A pod of a job carries a finalizer from the beginning, so that it cannot go
before it has been counted. A pod of an indexed job knows which part of the job
it does, by annotation, label, hostname and an environment variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from lamina.actors.workloads import pods
from lamina.actors.workloads.job_indexes import INDEX
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Made, Obj

TRACKING = "batch.kubernetes.io/job-tracking"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

_VARIABLE = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58
_SUFFIX = 5
_FIRST_WAIT = timedelta(seconds=10)
_LONGEST_WAIT = timedelta(minutes=10)


def is_tracked(pod: Obj) -> bool:
    """Say whether a pod has still to be counted."""
    return TRACKING in meta.finalizers(pod)


def is_failed(job: Obj, pod: Obj) -> bool:
    """Say whether a pod counts as failed: it has, or it is going and is to be replaced before it has gone."""
    phase = pods.phase(pod)
    if phase == "Failed":
        return True
    return meta.is_deleting(pod) and phase != "Succeeded" and not replaces_only_failed(job)


def replaces_only_failed(job: Obj) -> bool:
    """Say whether a pod that is going is replaced when it has gone, rather than at once."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def make(job: Obj, name: str) -> Made:
    """Return a pod of a job."""
    made = pods.from_template(job, job["spec"]["template"], name)
    return meta.with_finalizer(made, TRACKING)


def make_indexed(job: Obj, name: str, index: int, replaced: Obj | None, *, counted: bool) -> Made:
    """
    Return the pod that does one part of an indexed job; its name ends as the one given does.

    Where failures are counted for each index, the pod carries on the count of
    the one it replaces: one more failure, which `counted` says counts, or is
    only noted.
    """
    suffix = f"-{index}-"
    generate = meta.name(job)[: _LONGEST_PREFIX - len(suffix)] + suffix
    made = make(job, generate + name[-_SUFFIX:])
    annotations = {**meta.annotations(made), INDEX: str(index)}
    if job["spec"].get("backoffLimitPerIndex") is not None:
        failures = failures_of(replaced) + counted if replaced is not None else 0
        ignored = ignored_of(replaced) + (not counted) if replaced is not None else 0
        annotations[FAILURES] = str(failures)
        if ignored:
            annotations[IGNORED_FAILURES] = str(ignored)
    made = meta.with_metadata(
        made, annotations=annotations, labels={**meta.labels(made), INDEX: str(index)}, generateName=generate
    )
    spec = {**made["spec"], "hostname": f"{meta.name(job)}-{index}"}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_told_its_index(container) for container in spec[field]]
    return {**made, "spec": spec}


def _told_its_index(container: Obj) -> Obj:
    variables = container.get("env") or []
    if any(variable["name"] == _VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": _VARIABLE, "valueFrom": source}]}


def failures_of(pod: Obj) -> int:
    """Return how many pods of the same index failed before this one, and counted."""
    return _count(pod, FAILURES)


def ignored_of(pod: Obj) -> int:
    return _count(pod, IGNORED_FAILURES)


def _count(pod: Obj, annotation: str) -> int:
    text = meta.annotations(pod).get(annotation) or ""
    return int(text) if text.isascii() and text.isdigit() and int(text) < 2**31 else 0


def finished_at(pod: Obj) -> datetime:
    """Return when a pod ended: by its containers, its readiness, its deletion, or at worst its beginning."""
    status: Obj = pod.get("status") or {}
    ended = [
        moment(((one.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for one in status.get("containerStatuses") or ()
    ]
    known = [at for at in ended if at is not None]
    if known and len(known) == len(ended):
        return max(known)
    ready = conditions.find(status.get("conditions") or (), "Ready")
    if ready is not None and ready["status"] == "False":
        since = moment(ready.get("lastTransitionTime"))
        if since is not None:
            return since
    metadata = meta.metadata(pod)
    deleted = moment(metadata.get("deletionTimestamp"))
    if deleted is not None:
        return deleted - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
    created = moment(metadata.get("creationTimestamp"))
    assert created is not None, "the server stamps what it creates"
    return created


def wait_after(failed: Iterable[Obj], succeeded: Iterable[Obj], now: datetime) -> timedelta:
    """Return how long to wait before another pod is made: longer with each that failed since one succeeded."""
    last_success = max(map(finished_at, succeeded), default=None)
    failures = sorted(at for at in map(finished_at, failed) if last_success is None or at > last_success)
    return wait_for(len(failures), failures[-1], now) if failures else timedelta(0)


def wait_at_index(replaced: Obj | None, now: datetime) -> timedelta:
    """Return how long to wait before the pod of an index is replaced."""
    if replaced is None:
        return timedelta(0)
    return wait_for(failures_of(replaced) + ignored_of(replaced) + 1, finished_at(replaced), now)


def wait_for(failures: int, last: datetime, now: datetime) -> timedelta:
    """Return what is left of the wait after that many failures in a row: ten seconds, doubled each time."""
    wait: timedelta = min(_FIRST_WAIT * (1 << min(failures - 1, 16)), _LONGEST_WAIT)
    return max(last + wait - now, timedelta(0))


def restarts(members: Sequence[Obj]) -> int:
    """Return how often containers of pods that still run were started again."""
    return sum(
        container.get("restartCount") or 0
        for pod in members
        if pods.phase(pod) in ("Running", "Pending")
        for field in ("initContainerStatuses", "containerStatuses")
        for container in (pod.get("status") or {}).get(field) or ()
    )
