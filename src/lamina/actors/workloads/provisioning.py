"""
Volumes made to order, of nothing.

A provisioner for clusters without storage: a claim of a class that names it
gets a volume of the size it asks for, which grows when the claim does and goes
when the claim has gone, if its class says so. It keeps to what provisioners of
real storage do, and so works beside the volume controllers of a real cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeAlias

from msgspec import Struct

from lamina.actors.workloads.claims import CLAIM, PROVISIONERS, STORAGE_CLASS, VOLUME, by_unbound
from lamina.actors.workloads.matching import asked, class_of, size
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import normal
from lamina.core.plan import Create, Emit, Plan, Stage, change, delete, one_stage
from lamina.core.questions import Answers
from lamina.core.world import Change, World
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
"""The class of claims that name none."""


class Wanted(Struct, frozen=True, kw_only=True):
    """A claim that waits for a volume of ours, and its class."""

    claim: Obj
    storage_class: Obj


class Grown(Struct, frozen=True, kw_only=True):
    """A claim that asks for more than it says it has, and its volume."""

    claim: Obj
    volume: Obj


class Left(Struct, frozen=True, kw_only=True):
    """A volume of ours that nobody has any more, and nobody wants."""

    volume: Obj


View: TypeAlias = Wanted | Grown | Left


def gather(world: World, ref: Ref) -> View | None:
    if ref.kind == "PersistentVolume":
        volume = world.get(ref)
        return Left(volume=volume) if volume is not None and _is_left(volume) else None
    claim = world.get(ref)
    if claim is None or meta.is_deleting(claim):
        return None
    name = claim["spec"].get("volumeName") or ""
    if name:
        volume = world.get(Ref("v1", "PersistentVolume", "", name))
        grown = volume is not None and _is_ours(volume) and _is_grown(claim, volume)
        return Grown(claim=claim, volume=volume) if volume is not None and grown else None
    if meta.annotations(claim).get(PROVISIONERS[1]) != PROVISIONER:
        return None
    storage_class = world.get(Ref("storage.k8s.io/v1", "StorageClass", "", class_of(claim)))
    made = world.get(Ref("v1", "PersistentVolume", "", volume_name(claim)))
    return (
        Wanted(claim=claim, storage_class=storage_class) if storage_class is not None and not made else None
    )


def _is_ours(volume: Obj) -> bool:
    return meta.annotations(volume).get(PROVISIONED_BY) == PROVISIONER


def _is_left(volume: Obj) -> bool:
    released = (volume.get("status") or {}).get("phase") == "Released"
    doomed = (volume.get("spec") or {}).get("persistentVolumeReclaimPolicy") == "Delete"
    return _is_ours(volume) and released and doomed and not meta.is_deleting(volume)


def _is_grown(claim: Obj, volume: Obj) -> bool:
    status = claim.get("status") or {}
    return status.get("phase") == "Bound" and (
        asked(claim) > size(volume) or status.get("capacity") != volume["spec"].get("capacity")
    )


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    match view:
        case Left(volume=volume):
            return one_stage("take it down", [delete(volume)], because="nobody has it any more")
        case Grown(claim=claim, volume=volume):
            return _grow(claim, volume)
        case Wanted(claim=claim, storage_class=storage_class):
            return _make(claim, storage_class, now)


def _grow(claim: Obj, volume: Obj) -> Plan:
    if asked(claim) > size(volume):
        wanted = {"storage": claim["spec"]["resources"]["requests"]["storage"]}
        write = change(volume, {"spec": {"capacity": wanted}})
        return one_stage("make it larger", [write], because="its claim asks for more")
    write = change(claim, {"status": {"capacity": volume["spec"]["capacity"]}}, subresource="status")
    return one_stage("say so", [write], because="its volume is larger now")


def volume_name(claim: Obj) -> str:
    """Return the name of the volume made for a claim; there is never a second one."""
    return f"pvc-{meta.uid(claim)}"


def _make(claim: Obj, storage_class: Obj, now: datetime) -> Plan:
    name = volume_name(claim)
    began = (
        f'External provisioner is provisioning volume for claim "{meta.namespace(claim)}/{meta.name(claim)}"'
    )
    done = f"Successfully provisioned volume {name}"
    return Plan(
        stages=(
            Stage("tell", (Emit(event=normal(claim, "Provisioning", began, by=PROVISIONER, now=now)),)),
            Stage("make it", (Create(obj=_volume(name, claim, storage_class)),)),
            Stage(
                "tell", (Emit(event=normal(claim, "ProvisioningSucceeded", done, by=PROVISIONER, now=now)),)
            ),
        ),
        because="its class says that we make one",
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
    """A volume of ours concerns itself, and the claim it was made for."""
    if not _is_ours(change.obj):
        return
    yield change.ref
    named = (change.obj.get("spec") or {}).get("claimRef") or {}
    yield Ref("v1", "PersistentVolumeClaim", named.get("namespace") or "", named.get("name") or "")


def class_changed(world: World, change: Change) -> Iterable[Ref]:
    """A class concerns the claims that wait for a volume of it."""
    return map(meta.ref, world.found(CLAIM, by_unbound, meta.name(change.obj)))


PROVISIONING: Controller[View] = Controller(
    name="provisioning",
    watches=(
        Watch(selects=only(*CLAIM), concerns=itself),
        Watch(selects=only(*VOLUME), concerns=volume_changed),
        Watch(selects=only(*STORAGE_CLASS), concerns=class_changed),
    ),
    gather=gather,
    plan=plan,
    manager=PROVISIONER,
)
