"""
Claims that bind.

A claim and a volume are bound when each names the other. The volume is written
first: a volume that names a claim is taken, whatever becomes of the rest, and
whoever finds the two half bound goes on where it was left.

1.  A claim takes the volume that names it, or else the smallest that fits.
2.  Where none does, the claim's class says who is to make one; somebody else
    does that. Without a class there is nothing to wait for but a volume.
3.  A class may have its claims wait for their first consumer. The wait is over
    when a pod that uses the claim is on a node; the node is noted on the claim.
4.  A claim that asks for a volume by name gets that one or none.
5.  A bound claim whose volume goes, or comes to name another, is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads.matching import class_of, has_no_say, is_for, misfit, smallest_fit
from lamina.actors.workloads.pods import POD
from lamina.actors.workloads.selecting import sides
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import normal, warning
from lamina.core.plan import NOTHING, Action, Emit, Plan, change, one_stage, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World
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
    """Find a volume that nobody has by its class."""
    if not (volume.get("spec") or {}).get("claimRef"):
        yield class_of(volume)


def by_claim(volume: Obj) -> Iterator[str]:
    """Find a volume by the claim it names."""
    if named := (volume.get("spec") or {}).get("claimRef"):
        yield f"{named.get('namespace')}/{named.get('name')}"


def by_unbound(claim: Obj) -> Iterator[str]:
    """Find a claim that waits for a volume by its class."""
    if not claim["spec"].get("volumeName"):
        yield class_of(claim)


def by_volume(claim: Obj) -> Iterator[str]:
    """Find a claim by the volume it names."""
    if name := claim["spec"].get("volumeName"):
        yield name


def by_use(pod: Obj) -> Iterator[str]:
    """Find a pod by the claims it uses."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if used := volume.get("persistentVolumeClaim"):
            yield f"{meta.namespace(pod)}/{used.get('claimName')}"
        elif volume.get("ephemeral"):
            yield f"{meta.namespace(pod)}/{meta.name(pod)}-{volume['name']}"


def place(claim: Obj) -> str:
    return f"{meta.namespace(claim)}/{meta.name(claim)}"


class View(Struct, frozen=True, kw_only=True):
    """A claim, the volume that is its own or could be, its class, and the pods that use it."""

    claim: Obj
    volume: Obj | None
    storage_class: Obj | None
    usual: str
    """The class of claims that leave it to others."""
    users: tuple[Obj, ...]


def gather(world: World, ref: Ref) -> View | None:
    claim = world.get(ref)
    if claim is None or meta.is_deleting(claim):
        return None
    name = claim["spec"].get("volumeName") or ""
    naming = [one for one in world.found(VOLUME, by_claim, place(claim)) if is_for(one, claim)]
    if name:
        volume = world.get(Ref("v1", "PersistentVolume", "", name))
    else:
        volume = min(naming, key=meta.name, default=None)
    storage_class = world.get(Ref("storage.k8s.io/v1", "StorageClass", "", class_of(claim)))
    if volume is None and not name and not waits(claim, storage_class):
        volume = smallest_fit(world.found(VOLUME, by_class, class_of(claim)), claim)
    return View(
        claim=claim,
        volume=volume,
        storage_class=storage_class,
        usual=_usual(world) if has_no_say(claim) else "",
        users=tuple(sorted(world.found(POD, by_use, place(claim)), key=meta.name)),
    )


def waits(claim: Obj, storage_class: Obj | None) -> bool:
    """Say whether a claim waits for its first consumer."""
    late = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    return late and NODE not in meta.annotations(claim)


def _usual(world: World) -> str:
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
        return _keep(view, now)
    if view.usual and volume is None:
        patch = {"spec": {"storageClassName": view.usual}}
        return one_stage("give it a class", [change(claim, patch)], because="there is a usual class now")
    if claim["spec"].get("volumeName"):
        return _bind_by_name(view, now)
    if volume is not None:
        return _bind(claim, volume)
    return _ask(view, now)


# ── binding ──


def _bind(claim: Obj, volume: Obj) -> Plan:
    named = (volume.get("spec") or {}).get("claimRef") or {}
    if named.get("uid") != meta.uid(claim):
        return one_stage("take the volume", [_take(volume, claim)], because=f"{meta.name(volume)} fits it")
    patch = {
        "metadata": {"annotations": {COMPLETED: "yes", BY_CONTROLLER: "yes"}},
        "spec": {"volumeName": meta.name(volume)},
    }
    return one_stage("bind it", [change(claim, patch)], because=f"{meta.name(volume)} is its own")


def _take(volume: Obj, claim: Obj) -> Action:
    """Return the write by which a volume comes to name a claim."""
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
        return Plan(because="the volume it asks for is not there")
    named = (volume.get("spec") or {}).get("claimRef")
    if named and not is_for(volume, claim):
        message = f'volume "{meta.name(volume)}" already bound to a different claim.'
        return _say(view, "FailedBinding", message, now, warns=True)
    if not named:
        why = misfit(volume, claim)
        if why is not None:
            message = f'Cannot bind to requested volume "{meta.name(volume)}": {why}'
            return _say(view, "VolumeMismatch", message, now, warns=True)
    if not named or named.get("uid") != meta.uid(claim):
        return one_stage("take the volume", [_take(volume, claim)], because="it asks for it by name")
    patch = {"metadata": {"annotations": {COMPLETED: "yes"}}}
    return one_stage("bind it", [change(claim, patch)], because=f"{meta.name(volume)} is its own")


def _keep(view: View, now: datetime) -> Plan:
    """Say on a bound claim what it has, or that it is lost."""
    claim, volume = view.claim, view.volume
    status = dict(claim.get("status") or {})
    if not claim["spec"].get("volumeName"):
        lost = "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
    elif volume is None:
        lost = "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    elif not (volume.get("spec") or {}).get("claimRef"):
        return one_stage("take the volume", [_take(volume, claim)], because="it is to be its own again")
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
        return one_stage("say so", [write] if write else [], because=f"{meta.name(volume)} is its own")
    reason, message = lost
    if status.get("phase") == "Lost":
        return NOTHING
    # A claim that is lost has nothing any more, and says so.
    write = set_status(claim, {"phase": "Lost"})
    event = Emit(event=warning(claim, reason, message, by=_BY, now=now))
    return one_stage("say so", [write, event] if write else [], because=message)


# ── waiting ──


def _ask(view: View, now: datetime) -> Plan:
    """Have somebody make a volume, or say what is waited for."""
    claim, storage_class = view.claim, view.storage_class
    name = class_of(claim)
    if not name:
        message = "no persistent volumes available for this claim and no storage class is set"
        return _say(view, "FailedBinding", message, now)
    if storage_class is None:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        return _say(view, "ProvisioningFailed", message, now, warns=True)
    if waits(claim, storage_class):
        return _wait(view, now)
    provisioner = storage_class.get("provisioner") or ""
    if provisioner == "kubernetes.io/no-provisioner":
        message = "no volume plugin matched name: kubernetes.io/no-provisioner"
        return _say(view, "ProvisioningFailed", message, now, warns=True)
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by "
        "the system administrator. If volume creation is delayed, please verify that the provisioner is running "
        "and correctly registered."
    )
    asked = dict.fromkeys(PROVISIONERS, provisioner)
    if all(meta.annotations(claim).get(mark) == provisioner for mark in PROVISIONERS):
        return Plan(because="somebody is to make its volume")
    write = change(claim, {"metadata": {"annotations": asked}})
    event = Emit(event=normal(claim, "ExternalProvisioning", message, by=_BY, now=now))
    return one_stage("ask for a volume", [write, event], because="its class says who makes one")


def _wait(view: View, now: datetime) -> Plan:
    placed = [pod for pod in view.users if pod["spec"].get("nodeName")]
    if placed:
        patch = {"metadata": {"annotations": {NODE: placed[0]["spec"]["nodeName"]}}}
        return one_stage("note the node", [change(view.claim, patch)], because="it has a consumer")
    if view.users:
        message = f"waiting for pod {meta.name(view.users[0])} to be scheduled"
        return _say(view, "WaitForPodScheduled", message, now)
    message = "waiting for first consumer to be created before binding"
    return _say(view, "WaitForFirstConsumer", message, now)


def _say(view: View, reason: str, message: str, now: datetime, *, warns: bool = False) -> Plan:
    """Tell what a claim waits for, once: an event in the same words is there already, and no second is made."""
    tell = warning if warns else normal
    event = Emit(event=tell(view.claim, reason, message, by=_BY, now=now))
    return one_stage("tell", [event], because=message)


# ── whom a change concerns ──


def volume_changed(world: World, change: Change) -> Iterable[Ref]:
    """A volume concerns the claim it names, the claims that name it, and while it is free those it could be for."""
    for volume in sides(change):
        named = (volume.get("spec") or {}).get("claimRef")
        if named:
            yield Ref("v1", "PersistentVolumeClaim", named.get("namespace") or "", named.get("name") or "")
    yield from map(meta.ref, world.found(CLAIM, by_volume, meta.name(change.obj)))
    after = change.after
    if after is not None and not (after.get("spec") or {}).get("claimRef"):
        yield from map(meta.ref, world.found(CLAIM, by_unbound, class_of(after)))


def class_changed(world: World, change: Change) -> Iterable[Ref]:
    """A class concerns the claims that wait for one of it, and those that wait for any."""
    for name in {meta.name(change.obj), ""}:
        yield from map(meta.ref, world.found(CLAIM, by_unbound, name))


def pod_changed(world: World, change: Change) -> Iterable[Ref]:
    """A pod concerns the claims it uses that wait for it, when it comes or is put on a node."""
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
        Watch(selects=only(*CLAIM), concerns=itself),
        Watch(selects=only(*VOLUME), concerns=volume_changed),
        Watch(selects=only(*STORAGE_CLASS), concerns=class_changed),
        Watch(selects=only(*POD), concerns=pod_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
