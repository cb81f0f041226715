"""What is to become of a Deployment, and the plan that makes it so."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from lamina.actors.workloads.deployment.sets import REVISION, ReplicaSet
from lamina.actors.workloads.deployment.status import Report
from lamina.actors.workloads.replicas import wanted
from lamina.core.events import normal
from lamina.core.plan import Action, Create, Delete, Emit, Patch, Plan, Stage, change, set_status
from lamina.objects import meta
from lamina.objects.types import Made, Obj

BY = "deployment-controller"


class Next(Struct, frozen=True, kw_only=True):
    """What is to become of a Deployment: its sets, those to be forgotten, and what it says."""

    new: ReplicaSet | None
    old: tuple[ReplicaSet, ...]
    report: Report
    forgotten: tuple[ReplicaSet, ...] = ()

    @property
    def sets(self) -> tuple[ReplicaSet, ...]:
        return (*self.old, self.new) if self.new is not None else self.old


def written(deployment: Obj, next_: Next, because: str, now: datetime) -> Plan:
    """Return the plan that makes it so: first the sets, then what happened to them and what the Deployment says."""
    writes: list[Action] = [write for one in next_.sets if (write := _write(one)) is not None]
    writes += [Delete(ref=meta.ref(one.seen), uid=meta.uid(one.seen)) for one in next_.forgotten]
    told: list[Action] = [event for one in next_.sets for event in _scalings(deployment, one, now)]
    said = _said(deployment, next_)
    if said is not None:
        told.append(said)
    stages = [Stage("size the sets", tuple(writes))] if writes else []
    if told:
        stages.append(Stage("say so", tuple(told)))
    return Plan(stages=tuple(stages), look_again=next_.report.look_again, because=because)


def _write(one: ReplicaSet) -> Create | Patch | None:
    """Return what makes a set what it is to be."""
    if not one.exists:
        metadata = {**one.seen["metadata"], "annotations": dict(one.annotations)}
        spec = {**one.seen["spec"], "replicas": one.size}
        if one.min_ready:
            spec["minReadySeconds"] = one.min_ready
        return Create(obj={**one.seen, "metadata": metadata, "spec": spec})
    patch: Made = {}
    old = meta.annotations(one.seen)
    annotations = {key: value for key, value in one.annotations.items() if old.get(key) != value}
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    spec = {}
    if one.size != wanted(one.seen):
        spec["replicas"] = one.size
    if one.min_ready != (one.seen["spec"].get("minReadySeconds") or 0):
        spec["minReadySeconds"] = one.min_ready
    if spec:
        patch["spec"] = spec
    return change(one.seen, patch) if patch else None


def _scalings(deployment: Obj, one: ReplicaSet, now: datetime) -> Iterable[Emit]:
    """Yield an event for each change of size; the same one may come again, so each says on which occasion."""
    occasion = meta.resource_version(one.seen) or meta.resource_version(deployment)
    before = wanted(one.seen)
    for size in one.sizes:
        if size != before:
            way = "up" if size > before else "down"
            message = f"Scaled {way} replica set {one.name} from {before} to {size}"
            event = normal(deployment, "ScalingReplicaSet", message, by=BY, now=now, occasion=occasion)
            yield Emit(event=event)
        before = size


def _said(deployment: Obj, next_: Next) -> Patch | None:
    """Return the write of the status, which takes the number of the new set along as an annotation."""
    said = set_status(deployment, next_.report.status)
    number = next_.new.annotations.get(REVISION) if next_.new is not None else None
    if number is None or meta.annotations(deployment).get(REVISION) == number:
        return said
    patch = {**(said.patch if said is not None else {}), "metadata": {"annotations": {REVISION: number}}}
    return change(deployment, patch, subresource="status")
