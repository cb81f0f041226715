"""
The phase of volumes, and the protection finalizers of volumes and claims.

A volume is Available without a claimRef, Bound while its claim exists, and
Released after that. A deleted claim stays while an assigned pod uses it; a deleted
volume stays while it is bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads.pods import POD
from lamina.actors.workloads.pv_binder import BY_CONTROLLER, CLAIM, VOLUME, by_claim, by_use, claim_key
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import Action, Plan, change, one_stage, remove_finalizer, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

CLAIM_HELD: Final = "kubernetes.io/pvc-protection"
VOLUME_HELD: Final = "kubernetes.io/pv-protection"


class View(Struct, frozen=True, kw_only=True):
    """A volume, and its claim if that exists."""

    volume: Obj
    claim: Obj | None


def gather(world: World, ref: Ref) -> View | None:
    volume = world.get(ref)
    if volume is None:
        return None
    named = (volume.get("spec") or {}).get("claimRef") or {}
    claim = world.get(
        Ref("v1", "PersistentVolumeClaim", named.get("namespace") or "", named.get("name") or "")
    )
    if claim is not None and named.get("uid") not in (None, "", meta.uid(claim)):
        # A claim of the same name with another uid is another claim.
        claim = None
    return View(volume=volume, claim=claim)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    volume = view.volume
    phase = phase_of(volume, view.claim)
    status = volume.get("status") or {}
    actions: list[Action] = []
    if phase is not None and status.get("phase") != phase:
        # The server sets lastPhaseTransitionTime.
        write = set_status(volume, {**status, "phase": phase})
        actions += [write] if write else []
    elif _is_unused_reservation(volume, view.claim):
        patch = {"spec": {"claimRef": None}, "metadata": {"annotations": {BY_CONTROLLER: None}}}
        actions.append(change(volume, patch))
    elif meta.is_deleting(volume) and VOLUME_HELD in meta.finalizers(volume) and phase != "Bound":
        actions.append(remove_finalizer(volume, VOLUME_HELD))
    return one_stage("write volume", actions, because=f"it is {(phase or 'to be bound').lower()}")


def phase_of(volume: Obj, claim: Obj | None) -> str | None:
    """Return the phase of a volume; None while its claim is being bound to it."""
    named = (volume.get("spec") or {}).get("claimRef")
    if not named or not named.get("uid"):
        return "Available"
    if claim is None:
        failed = (volume.get("status") or {}).get("phase") == "Failed"
        return "Failed" if failed else "Released"
    if claim["spec"].get("volumeName") == meta.name(volume):
        return "Bound"
    return None


def _is_unused_reservation(volume: Obj, claim: Obj | None) -> bool:
    """Say whether a volume is reserved for a claim that is bound to another one."""
    other = claim is not None and claim["spec"].get("volumeName") not in (None, "", meta.name(volume))
    named = (volume.get("spec") or {}).get("claimRef") or {}
    return other and bool(named.get("uid")) and BY_CONTROLLER in meta.annotations(volume)


def claim_changed(world: World, change: Change) -> Iterable[Ref]:
    """A claim enqueues the volumes that refer to it, and its volume."""
    yield from map(meta.ref, world.by_index(VOLUME, by_claim, claim_key(change.obj)))
    if name := change.obj["spec"].get("volumeName"):
        yield Ref("v1", "PersistentVolume", "", name)


VOLUMES: Controller[View] = Controller(
    name="volumes",
    watches=(
        Watch(selects=only(*VOLUME), enqueue=itself),
        Watch(selects=only(*CLAIM), enqueue=claim_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)


# Claim protection


class ProtectedClaim(Struct, frozen=True, kw_only=True):
    """A claim that is being deleted, and how many assigned pods use it."""

    claim: Obj
    users: int


def gather_protected(world: World, ref: Ref) -> ProtectedClaim | None:
    claim = world.get(ref)
    if claim is None or not meta.is_deleting(claim) or CLAIM_HELD not in meta.finalizers(claim):
        return None
    users = [pod for pod in world.by_index(POD, by_use, claim_key(claim)) if pod["spec"].get("nodeName")]
    return ProtectedClaim(claim=claim, users=len(users))


def plan_protected(view: ProtectedClaim, answers: Answers, now: datetime) -> Plan:
    if view.users:
        return Plan(because=f"{view.users} pods use it")
    return one_stage("remove finalizer", [remove_finalizer(view.claim, CLAIM_HELD)], because="no pod uses it")


def pod_deleted(world: World, change: Change) -> Iterable[Ref]:
    """A deleted pod enqueues the claims it used."""
    if (
        change.after is not None
        and change.before is not None
        and meta.uid(change.after) == meta.uid(change.before)
    ):
        return
    for used in by_use(change.before) if change.before is not None else ():
        namespace, _, name = used.partition("/")
        yield Ref("v1", "PersistentVolumeClaim", namespace, name)


HELD_CLAIMS: Controller[ProtectedClaim] = Controller(
    name="held claims",
    watches=(
        Watch(selects=only(*CLAIM), enqueue=itself),
        Watch(selects=only(*POD), enqueue=pod_deleted),
    ),
    gather=gather_protected,
    plan=plan_protected,
    manager=MANAGER,
)
