"""The desired ReplicaSets and status of a Deployment, and the plan that writes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from lamina.actors.workloads.deployment.sets import REVISION, ReplicaSet
from lamina.actors.workloads.deployment.status import Report
from lamina.actors.workloads.replica_sync import wanted
from lamina.core.model.events import normal
from lamina.core.model.plan import Action, Create, Delete, Emit, Patch, Plan, Stage, change, set_status
from lamina.objects import meta
from lamina.objects.types import Made, Obj

BY = "deployment-controller"


class Desired(Struct, frozen=True, kw_only=True):
    """The desired ReplicaSets of a Deployment, those to delete, and its status."""

    new: ReplicaSet | None
    old: tuple[ReplicaSet, ...]
    report: Report
    deleted: tuple[ReplicaSet, ...] = ()

    @property
    def sets(self) -> tuple[ReplicaSet, ...]:
        return (*self.old, self.new) if self.new is not None else self.old


def to_plan(deployment: Obj, desired: Desired, because: str, now: datetime) -> Plan:
    """Return the plan that writes it: first the ReplicaSets, then the events and the status."""
    writes: list[Action] = [write for one in desired.sets if (write := _write(one)) is not None]
    writes += [Delete(ref=meta.ref(one.observed), uid=meta.uid(one.observed)) for one in desired.deleted]
    reports: list[Action] = [event for one in desired.sets for event in _scalings(deployment, one, now)]
    write = _status_write(deployment, desired)
    if write is not None:
        reports.append(write)
    stages = [Stage("write ReplicaSets", tuple(writes))] if writes else []
    if reports:
        stages.append(Stage("write status", tuple(reports)))
    return Plan(stages=tuple(stages), requeue_after=desired.report.requeue_after, because=because)


def _write(one: ReplicaSet) -> Create | Patch | None:
    """Return the write of a ReplicaSet, None where nothing changes."""
    if not one.exists:
        metadata = {**one.observed["metadata"], "annotations": dict(one.annotations)}
        spec = {**one.observed["spec"], "replicas": one.size}
        if one.min_ready:
            spec["minReadySeconds"] = one.min_ready
        return Create(obj={**one.observed, "metadata": metadata, "spec": spec})
    patch: Made = {}
    old = meta.annotations(one.observed)
    annotations = {key: value for key, value in one.annotations.items() if old.get(key) != value}
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    spec = {}
    if one.size != wanted(one.observed):
        spec["replicas"] = one.size
    if one.min_ready != (one.observed["spec"].get("minReadySeconds") or 0):
        spec["minReadySeconds"] = one.min_ready
    if spec:
        patch["spec"] = spec
    return change(one.observed, patch) if patch else None


def _scalings(deployment: Obj, one: ReplicaSet, now: datetime) -> Iterable[Emit]:
    """Yield an event for each change of replicas; equal ones may recur, so each has an occasion."""
    occasion = meta.resource_version(one.observed) or meta.resource_version(deployment)
    before = wanted(one.observed)
    for size in one.sizes:
        if size != before:
            way = "up" if size > before else "down"
            message = f"Scaled {way} replica set {one.name} from {before} to {size}"
            event = normal(deployment, "ScalingReplicaSet", message, by=BY, now=now, occasion=occasion)
            yield Emit(event=event)
        before = size


def _status_write(deployment: Obj, desired: Desired) -> Patch | None:
    """Return the write of the status, with the revision of the new ReplicaSet as an annotation."""
    write = set_status(deployment, desired.report.status)
    number = desired.new.annotations.get(REVISION) if desired.new is not None else None
    if number is None or meta.annotations(deployment).get(REVISION) == number:
        return write
    patch = {**(write.patch if write is not None else {}), "metadata": {"annotations": {REVISION: number}}}
    return change(deployment, patch, subresource="status")
