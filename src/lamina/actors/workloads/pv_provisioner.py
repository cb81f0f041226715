"""
A provisioner of simulated volumes, for clusters without storage.

A claim of its class gets a volume of the requested size, which is expanded with the
claim and deleted after it, by the reclaim policy. It follows the protocol of
external provisioners, and so works with a real cluster's volume controllers.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeAlias

from msgspec import Struct

from lamina.actors.workloads.pv_binder import CLAIM, PROVISIONERS, STORAGE_CLASS, VOLUME, by_unbound
from lamina.actors.workloads.pv_match import class_of, requested, size
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import normal
from lamina.core.model.plan import Create, Emit, Plan, Stage, change, delete, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

PROVISIONER: Final = "sim/volumes"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"

STANDARD: Final[Made] = {
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}
"""The default class."""


class Requested(Struct, frozen=True, kw_only=True):
    """A claim that requests a volume from this provisioner, and its class."""

    claim: Obj
    storage_class: Obj


class Expanded(Struct, frozen=True, kw_only=True):
    """A claim that requests more than its capacity, and its volume."""

    claim: Obj
    volume: Obj


class Released(Struct, frozen=True, kw_only=True):
    """A released volume of this provisioner, to be deleted."""

    volume: Obj


View: TypeAlias = Requested | Expanded | Released


def gather(world: World, ref: Ref) -> View | None:
    if ref.kind == "PersistentVolume":
        volume = world.get(ref)
        return Released(volume=volume) if volume is not None and _is_reclaimable(volume) else None
    claim = world.get(ref)
    if claim is None or meta.is_deleting(claim):
        return None
    name = claim["spec"].get("volumeName") or ""
    if name:
        volume = world.get(Ref("v1", "PersistentVolume", "", name))
        expanded = volume is not None and _is_ours(volume) and _needs_expansion(claim, volume)
        return Expanded(claim=claim, volume=volume) if volume is not None and expanded else None
    if meta.annotations(claim).get(PROVISIONERS[1]) != PROVISIONER:
        return None
    storage_class = world.get(Ref("storage.k8s.io/v1", "StorageClass", "", class_of(claim)))
    made = world.get(Ref("v1", "PersistentVolume", "", volume_name(claim)))
    return (
        Requested(claim=claim, storage_class=storage_class)
        if storage_class is not None and not made
        else None
    )


def _is_ours(volume: Obj) -> bool:
    return meta.annotations(volume).get(PROVISIONED_BY) == PROVISIONER


def _is_reclaimable(volume: Obj) -> bool:
    released = (volume.get("status") or {}).get("phase") == "Released"
    reclaimed = (volume.get("spec") or {}).get("persistentVolumeReclaimPolicy") == "Delete"
    return _is_ours(volume) and released and reclaimed and not meta.is_deleting(volume)


def _needs_expansion(claim: Obj, volume: Obj) -> bool:
    status = claim.get("status") or {}
    return status.get("phase") == "Bound" and (
        requested(claim) > size(volume) or status.get("capacity") != volume["spec"].get("capacity")
    )


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    match view:
        case Released(volume=volume):
            return one_stage("delete volume", [delete(volume)], because="it is released")
        case Expanded(claim=claim, volume=volume):
            return _expand(claim, volume)
        case Requested(claim=claim, storage_class=storage_class):
            return _provision(claim, storage_class, now)


def _expand(claim: Obj, volume: Obj) -> Plan:
    if requested(claim) > size(volume):
        wanted = {"storage": claim["spec"]["resources"]["requests"]["storage"]}
        write = change(volume, {"spec": {"capacity": wanted}})
        return one_stage("expand volume", [write], because="its claim requests more")
    write = change(claim, {"status": {"capacity": volume["spec"]["capacity"]}}, subresource="status")
    return one_stage("write status", [write], because="its volume was expanded")


def volume_name(claim: Obj) -> str:
    """Return the name of the volume for a claim, which is unique."""
    return f"pvc-{meta.uid(claim)}"


def _provision(claim: Obj, storage_class: Obj, now: datetime) -> Plan:
    name = volume_name(claim)
    began = (
        f'External provisioner is provisioning volume for claim "{meta.namespace(claim)}/{meta.name(claim)}"'
    )
    done = f"Successfully provisioned volume {name}"
    return Plan(
        stages=(
            Stage(
                "record events", (Emit(event=normal(claim, "Provisioning", began, by=PROVISIONER, now=now)),)
            ),
            Stage("create volume", (Create(obj=_volume(name, claim, storage_class)),)),
            Stage(
                "record events",
                (Emit(event=normal(claim, "ProvisioningSucceeded", done, by=PROVISIONER, now=now)),),
            ),
        ),
        because="its class has this provisioner",
    )


def _volume(name: str, claim: Obj, storage_class: Obj) -> Made:
    spec = claim["spec"]
    made: Made = {
        "accessModes": list(spec.get("accessModes") or ()),
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": meta.namespace(claim),
            "name": meta.name(claim),
            "uid": meta.uid(claim),
            "resourceVersion": meta.resource_version(claim),
        },
        "hostPath": {"path": f"/sim/volumes/{name}"},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": meta.name(storage_class),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
    }
    if storage_class.get("mountOptions"):
        made["mountOptions"] = list(storage_class["mountOptions"])
    metadata = {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": made}


def volume_changed(world: World, change: Change) -> Iterable[Ref]:
    """A volume of this provisioner is enqueued, and enqueues its claim."""
    if not _is_ours(change.obj):
        return
    yield change.ref
    named = (change.obj.get("spec") or {}).get("claimRef") or {}
    yield Ref("v1", "PersistentVolumeClaim", named.get("namespace") or "", named.get("name") or "")


def class_changed(world: World, change: Change) -> Iterable[Ref]:
    """A class enqueues its unbound claims."""
    return map(meta.ref, world.by_index(CLAIM, by_unbound, meta.name(change.obj)))


PROVISIONING: Controller[View] = Controller(
    name="provisioning",
    watches=(
        Watch(selects=only(*CLAIM), enqueue=itself),
        Watch(selects=only(*VOLUME), enqueue=volume_changed),
        Watch(selects=only(*STORAGE_CLASS), enqueue=class_changed),
    ),
    gather=gather,
    plan=plan,
    manager=PROVISIONER,
)
