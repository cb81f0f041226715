"""
The pods of a Job: their creation, their finish time, and the backoff after failures.

A pod of a Job is created with the tracking finalizer, so that it is counted before
it is removed. A pod of an indexed Job has its index in an annotation, a label, the
hostname and an environment variable.
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
_FIRST_BACKOFF = timedelta(seconds=10)
_LONGEST_BACKOFF = timedelta(minutes=10)


def is_tracked(pod: Obj) -> bool:
    """Say whether a pod has the tracking finalizer, and is not counted yet."""
    return TRACKING in meta.finalizers(pod)


def is_failed(job: Obj, pod: Obj) -> bool:
    """Say whether a pod counts as failed: it has failed, or it is terminating and is replaced at once."""
    phase = pods.phase(pod)
    if phase == "Failed":
        return True
    return meta.is_deleting(pod) and phase != "Succeeded" and not replaces_only_failed(job)


def replaces_only_failed(job: Obj) -> bool:
    """Say whether a terminating pod is replaced only when it has terminated."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def make(job: Obj, name: str) -> Made:
    """Return a pod of a job."""
    made = pods.from_template(job, job["spec"]["template"], name)
    return meta.with_finalizer(made, TRACKING)


def make_indexed(job: Obj, name: str, index: int, predecessor: Obj | None, *, counted: bool) -> Made:
    """
    Return the pod of one index of an indexed Job; its name has the suffix of `name`.

    With backoffLimitPerIndex, the pod has the failure counts of the one it
    replaces, plus one: of counted failures with `counted`, else of ignored ones.
    """
    suffix = f"-{index}-"
    generate = meta.name(job)[: _LONGEST_PREFIX - len(suffix)] + suffix
    made = make(job, generate + name[-_SUFFIX:])
    annotations = {**meta.annotations(made), INDEX: str(index)}
    if job["spec"].get("backoffLimitPerIndex") is not None:
        failures = failures_of(predecessor) + counted if predecessor is not None else 0
        ignored = ignored_of(predecessor) + (not counted) if predecessor is not None else 0
        annotations[FAILURES] = str(failures)
        if ignored:
            annotations[IGNORED_FAILURES] = str(ignored)
    made = meta.with_metadata(
        made, annotations=annotations, labels={**meta.labels(made), INDEX: str(index)}, generateName=generate
    )
    spec = {**made["spec"], "hostname": f"{meta.name(job)}-{index}"}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_with_index_variable(container) for container in spec[field]]
    return {**made, "spec": spec}


def _with_index_variable(container: Obj) -> Obj:
    variables = container.get("env") or []
    if any(variable["name"] == _VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": _VARIABLE, "valueFrom": source}]}


def failures_of(pod: Obj) -> int:
    """Return the counted failures of a pod's index before this pod."""
    return _count(pod, FAILURES)


def ignored_of(pod: Obj) -> int:
    return _count(pod, IGNORED_FAILURES)


def _count(pod: Obj, annotation: str) -> int:
    text = meta.annotations(pod).get(annotation) or ""
    return int(text) if text.isascii() and text.isdigit() and int(text) < 2**31 else 0


def finished_at(pod: Obj) -> datetime:
    """Return when a pod finished: by its containers, readiness, deletion or, last, its creation."""
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


def backoff_after(failed: Iterable[Obj], succeeded: Iterable[Obj], now: datetime) -> timedelta:
    """Return the backoff before the next pod, which grows with the failures since the last success."""
    last_success = max(map(finished_at, succeeded), default=None)
    failures = sorted(at for at in map(finished_at, failed) if last_success is None or at > last_success)
    return backoff(len(failures), failures[-1], now) if failures else timedelta(0)


def backoff_at_index(predecessor: Obj | None, now: datetime) -> timedelta:
    """Return the backoff before the pod of an index is replaced."""
    if predecessor is None:
        return timedelta(0)
    return backoff(failures_of(predecessor) + ignored_of(predecessor) + 1, finished_at(predecessor), now)


def backoff(failures: int, last: datetime, now: datetime) -> timedelta:
    """Return the remaining backoff after consecutive failures: ten seconds, doubled each time."""
    wait: timedelta = min(_FIRST_BACKOFF * (1 << min(failures - 1, 16)), _LONGEST_BACKOFF)
    return max(last + wait - now, timedelta(0))


def restarts(members: Sequence[Obj]) -> int:
    """Return the number of container restarts of unfinished pods."""
    return sum(
        container.get("restartCount") or 0
        for pod in members
        if pods.phase(pod) in ("Running", "Pending")
        for field in ("initContainerStatuses", "containerStatuses")
        for container in (pod.get("status") or {}).get(field) or ()
    )
