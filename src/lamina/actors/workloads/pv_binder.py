"""
The persistent volume binder: binds claims to volumes.

A claim and a volume are bound when each refers to the other. The volume is written
first: with its claimRef it is reserved, and a half-finished binding is completed
by the next sync.

1.  A claim gets the volume whose claimRef refers to it, or else the smallest that
    matches.
2.  Without a match, the provisioner of the claim's StorageClass is asked by
    annotations to create a volume.
3.  With WaitForFirstConsumer, a claim waits until a pod that uses it is assigned
    to a node; the node is recorded in an annotation.
4.  A claim with a volumeName gets that volume or none.
5.  A bound claim whose volume is deleted, or refers to another claim, is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads.pods import POD
from lamina.actors.workloads.pv_match import class_of, has_no_class, is_for, mismatch, smallest_fit
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import NOTHING, Action, Emit, Plan, change, one_stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj, Ref

CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
VOLUME: Final = GroupKind("", "PersistentVolume")
STORAGE_CLASS: Final = GroupKind("storage.k8s.io", "StorageClass")
COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONERS: Final = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
NODE: Final = "volume.kubernetes.io/selected-node"
_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_BY: Final = "persistentvolume-controller"


def by_class(volume: Obj) -> Iterator[str]:
    """Index: the class of a volume without a claimRef."""
    if not (volume.get("spec") or {}).get("claimRef"):
        yield class_of(volume)


def by_claim(volume: Obj) -> Iterator[str]:
    """Index: the claim of a volume."""
    if named := (volume.get("spec") or {}).get("claimRef"):
        yield f"{named.get('namespace')}/{named.get('name')}"


def by_unbound(claim: Obj) -> Iterator[str]:
    """Index: the class of an unbound claim."""
    if not claim["spec"].get("volumeName"):
        yield class_of(claim)


def by_volume(claim: Obj) -> Iterator[str]:
    """Index: the volume of a claim."""
    if name := claim["spec"].get("volumeName"):
        yield name


def by_use(pod: Obj) -> Iterator[str]:
    """Index: the claims that a pod uses."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if used := volume.get("persistentVolumeClaim"):
            yield f"{meta.namespace(pod)}/{used.get('claimName')}"
        elif volume.get("ephemeral"):
            yield f"{meta.namespace(pod)}/{meta.name(pod)}-{volume['name']}"


def claim_key(claim: Obj) -> str:
    return f"{meta.namespace(claim)}/{meta.name(claim)}"


class View(Struct, frozen=True, kw_only=True):
    """A claim, its bound or matching volume, its class, and the pods that use it."""

    claim: Obj
    volume: Obj | None
    storage_class: Obj | None
    default_class: str
    """The default class, for a claim without one."""
    users: tuple[Obj, ...]


def gather(world: World, ref: Ref) -> View | None:
    claim = world.get(ref)
    if claim is None or meta.is_deleting(claim):
        return None
    name = claim["spec"].get("volumeName") or ""
    naming = [one for one in world.by_index(VOLUME, by_claim, claim_key(claim)) if is_for(one, claim)]
    if name:
        volume = world.get(Ref("v1", "PersistentVolume", "", name))
    else:
        volume = min(naming, key=meta.name, default=None)
    storage_class = world.get(Ref("storage.k8s.io/v1", "StorageClass", "", class_of(claim)))
    if volume is None and not name and not waits_for_consumer(claim, storage_class):
        volume = smallest_fit(world.by_index(VOLUME, by_class, class_of(claim)), claim)
    return View(
        claim=claim,
        volume=volume,
        storage_class=storage_class,
        default_class=_default_class(world) if has_no_class(claim) else "",
        users=tuple(sorted(world.by_index(POD, by_use, claim_key(claim)), key=meta.name)),
    )


def waits_for_consumer(claim: Obj, storage_class: Obj | None) -> bool:
    """Say whether binding waits for the first consumer."""
    late = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    return late and NODE not in meta.annotations(claim)


def _default_class(world: World) -> str:
    marked = [
        one
        for one in world.every(STORAGE_CLASS)
        if any(meta.annotations(one).get(mark) == "true" for mark in _DEFAULT)
    ]
    marked.sort(key=meta.name)
    marked.sort(key=lambda one: str(meta.metadata(one).get("creationTimestamp")), reverse=True)
    return meta.name(marked[0]) if marked else ""


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    claim, volume = view.claim, view.volume
    if COMPLETED in meta.annotations(claim):
        return _sync_bound(view, now)
    if view.default_class and volume is None:
        patch = {"spec": {"storageClassName": view.default_class}}
        return one_stage("set class", [change(claim, patch)], because="there is a default class now")
    if claim["spec"].get("volumeName"):
        return _bind_by_name(view, now)
    if volume is not None:
        return _bind(claim, volume)
    return _provision(view, now)


# Binding


def _bind(claim: Obj, volume: Obj) -> Plan:
    named = (volume.get("spec") or {}).get("claimRef") or {}
    if named.get("uid") != meta.uid(claim):
        return one_stage("reserve volume", [_reserve(volume, claim)], because=f"{meta.name(volume)} matches")
    patch = {
        "metadata": {"annotations": {COMPLETED: "yes", BY_CONTROLLER: "yes"}},
        "spec": {"volumeName": meta.name(volume)},
    }
    return one_stage("bind", [change(claim, patch)], because=f"{meta.name(volume)} is reserved for it")


def _reserve(volume: Obj, claim: Obj) -> Action:
    """Return the write of a volume's claimRef."""
    named = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": meta.namespace(claim),
        "name": meta.name(claim),
        "uid": meta.uid(claim),
        "resourceVersion": meta.resource_version(claim),
    }
    patch: Made = {"spec": {"claimRef": named}}
    if not (volume.get("spec") or {}).get("claimRef"):
        patch["metadata"] = {"annotations": {BY_CONTROLLER: "yes"}}
    return change(volume, patch)


def _bind_by_name(view: View, now: datetime) -> Plan:
    claim, volume = view.claim, view.volume
    if volume is None:
        return Plan(because="its volume does not exist")
    named = (volume.get("spec") or {}).get("claimRef")
    if named and not is_for(volume, claim):
        message = f'volume "{meta.name(volume)}" already bound to a different claim.'
        return _report(view, "FailedBinding", message, now, warns=True)
    if not named:
        why = mismatch(volume, claim)
        if why is not None:
            message = f'Cannot bind to requested volume "{meta.name(volume)}": {why}'
            return _report(view, "VolumeMismatch", message, now, warns=True)
    if not named or named.get("uid") != meta.uid(claim):
        return one_stage(
            "reserve volume", [_reserve(volume, claim)], because="it requests the volume by name"
        )
    patch = {"metadata": {"annotations": {COMPLETED: "yes"}}}
    return one_stage("bind", [change(claim, patch)], because=f"{meta.name(volume)} is reserved for it")


def _sync_bound(view: View, now: datetime) -> Plan:
    """Write the status of a bound claim: its capacity, or that it is lost."""
    claim, volume = view.claim, view.volume
    status = dict(claim.get("status") or {})
    if not claim["spec"].get("volumeName"):
        lost = "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
    elif volume is None:
        lost = "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    elif not (volume.get("spec") or {}).get("claimRef"):
        return one_stage("reserve volume", [_reserve(volume, claim)], because="its volume lost its claimRef")
    elif not is_for(volume, claim):
        lost = (
            "ClaimMisbound",
            "Two claims are bound to the same volume, this one is bound incorrectly",
        )
    else:
        spec = volume["spec"]
        if status.get("phase") != "Bound":
            status |= {
                "phase": "Bound",
                "capacity": spec.get("capacity"),
                "accessModes": spec.get("accessModes"),
            }
        write = set_status(claim, status)
        return one_stage(
            "write status", [write] if write else [], because=f"it is bound to {meta.name(volume)}"
        )
    reason, message = lost
    if status.get("phase") == "Lost":
        return NOTHING
    # A lost claim has no capacity.
    write = set_status(claim, {"phase": "Lost"})
    event = Emit(event=warning(claim, reason, message, by=_BY, now=now))
    return one_stage("write status", [write, event] if write else [], because=message)


# Provisioning and waiting


def _provision(view: View, now: datetime) -> Plan:
    """Request a volume from the provisioner, or report why the claim waits."""
    claim, storage_class = view.claim, view.storage_class
    name = class_of(claim)
    if not name:
        message = "no persistent volumes available for this claim and no storage class is set"
        return _report(view, "FailedBinding", message, now)
    if storage_class is None:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        return _report(view, "ProvisioningFailed", message, now, warns=True)
    if waits_for_consumer(claim, storage_class):
        return _wait(view, now)
    provisioner = storage_class.get("provisioner") or ""
    if provisioner == "kubernetes.io/no-provisioner":
        message = "no volume plugin matched name: kubernetes.io/no-provisioner"
        return _report(view, "ProvisioningFailed", message, now, warns=True)
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by "
        "the system administrator. If volume creation is delayed, please verify that the provisioner is running "
        "and correctly registered."
    )
    asked = dict.fromkeys(PROVISIONERS, provisioner)
    if all(meta.annotations(claim).get(mark) == provisioner for mark in PROVISIONERS):
        return Plan(because="waiting for its provisioner")
    write = change(claim, {"metadata": {"annotations": asked}})
    event = Emit(event=normal(claim, "ExternalProvisioning", message, by=_BY, now=now))
    return one_stage("request volume", [write, event], because="its class has a provisioner")


def _wait(view: View, now: datetime) -> Plan:
    placed = [pod for pod in view.users if pod["spec"].get("nodeName")]
    if placed:
        patch = {"metadata": {"annotations": {NODE: placed[0]["spec"]["nodeName"]}}}
        return one_stage("record node", [change(view.claim, patch)], because="it has a consumer")
    if view.users:
        message = f"waiting for pod {meta.name(view.users[0])} to be scheduled"
        return _report(view, "WaitForPodScheduled", message, now)
    message = "waiting for first consumer to be created before binding"
    return _report(view, "WaitForFirstConsumer", message, now)


def _report(view: View, reason: str, message: str, now: datetime, *, warns: bool = False) -> Plan:
    """Record an event about why a claim waits; an equal event is not repeated."""
    make_event = warning if warns else normal
    event = Emit(event=make_event(view.claim, reason, message, by=_BY, now=now))
    return one_stage("record events", [event], because=message)


# Enqueueing


def volume_changed(world: World, change: Change) -> Iterable[Ref]:
    """A volume enqueues its claim, the claims that refer to it and, while it is free, unbound claims of its class."""
    for volume in change.versions:
        named = (volume.get("spec") or {}).get("claimRef")
        if named:
            yield Ref("v1", "PersistentVolumeClaim", named.get("namespace") or "", named.get("name") or "")
    yield from map(meta.ref, world.by_index(CLAIM, by_volume, meta.name(change.obj)))
    after = change.after
    if after is not None and not (after.get("spec") or {}).get("claimRef"):
        yield from map(meta.ref, world.by_index(CLAIM, by_unbound, class_of(after)))


def class_changed(world: World, change: Change) -> Iterable[Ref]:
    """A class enqueues its unbound claims, and those without a class."""
    for name in {meta.name(change.obj), ""}:
        yield from map(meta.ref, world.by_index(CLAIM, by_unbound, name))


def pod_changed(world: World, change: Change) -> Iterable[Ref]:
    """A pod that is created or assigned enqueues the unbound claims it uses."""
    before, after = change.before, change.after
    if after is None or (before is not None and _node(before) == _node(after)):
        return
    for used in by_use(after):
        namespace, _, name = used.partition("/")
        ref = Ref("v1", "PersistentVolumeClaim", namespace, name)
        claim = world.get(ref)
        if claim is not None and not claim["spec"].get("volumeName"):
            yield ref


def _node(pod: Obj) -> str:
    return (pod.get("spec") or {}).get("nodeName") or ""


CLAIMS: Controller[View] = Controller(
    name="claims",
    watches=(
        Watch(selects=only(*CLAIM), enqueue=itself),
        Watch(selects=only(*VOLUME), enqueue=volume_changed),
        Watch(selects=only(*STORAGE_CLASS), enqueue=class_changed),
        Watch(selects=only(*POD), enqueue=pod_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
