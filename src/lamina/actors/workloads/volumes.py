"""
How volumes stand, and what holds volumes and claims that are to go.

A volume is available until it names a claim, bound while that claim is there,
and released once it is gone. A claim that is to go stays while a pod on a node
uses it; a volume stays while it is bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads.claims import BY_CONTROLLER, CLAIM, VOLUME, by_claim, by_use, place
from lamina.actors.workloads.pods import POD
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import Action, Plan, change, one_stage, remove_finalizer, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

CLAIM_HELD: Final = "kubernetes.io/pvc-protection"
VOLUME_HELD: Final = "kubernetes.io/pv-protection"


class View(Struct, frozen=True, kw_only=True):
    """A volume, and the claim it names if that is there."""

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
        # Another of the same name is not the one it was bound to.
        claim = None
    return View(volume=volume, claim=claim)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    volume = view.volume
    phase = phase_of(volume, view.claim)
    status = volume.get("status") or {}
    actions: list[Action] = []
    if phase is not None and status.get("phase") != phase:
        # The server notes when.
        write = set_status(volume, {**status, "phase": phase})
        actions += [write] if write else []
    elif _is_given_back(volume, view.claim):
        patch = {"spec": {"claimRef": None}, "metadata": {"annotations": {BY_CONTROLLER: None}}}
        actions.append(change(volume, patch))
    elif meta.is_deleting(volume) and VOLUME_HELD in meta.finalizers(volume) and phase != "Bound":
        actions.append(remove_finalizer(volume, VOLUME_HELD))
    return one_stage("say so", actions, because=f"it is {(phase or 'to be bound').lower()}")


def phase_of(volume: Obj, claim: Obj | None) -> str | None:
    """Return how a volume stands; None while it and its claim are being bound, and nothing is to be said yet."""
    named = (volume.get("spec") or {}).get("claimRef")
    if not named or not named.get("uid"):
        return "Available"
    if claim is None:
        failed = (volume.get("status") or {}).get("phase") == "Failed"
        return "Failed" if failed else "Released"
    if claim["spec"].get("volumeName") == meta.name(volume):
        return "Bound"
    return None


def _is_given_back(volume: Obj, claim: Obj | None) -> bool:
    """Say whether a volume was taken for a claim that has another by now."""
    other = claim is not None and claim["spec"].get("volumeName") not in (None, "", meta.name(volume))
    named = (volume.get("spec") or {}).get("claimRef") or {}
    return other and bool(named.get("uid")) and BY_CONTROLLER in meta.annotations(volume)


def claim_changed(world: World, change: Change) -> Iterable[Ref]:
    """A claim concerns the volumes that name it, and the one it names."""
    yield from map(meta.ref, world.found(VOLUME, by_claim, place(change.obj)))
    if name := change.obj["spec"].get("volumeName"):
        yield Ref("v1", "PersistentVolume", "", name)


VOLUMES: Controller[View] = Controller(
    name="volumes",
    watches=(
        Watch(selects=only(*VOLUME), concerns=itself),
        Watch(selects=only(*CLAIM), concerns=claim_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)


# ── claims that are to go ──


class Held(Struct, frozen=True, kw_only=True):
    """A claim that is to go, and how many pods on nodes use it."""

    claim: Obj
    users: int


def gather_held(world: World, ref: Ref) -> Held | None:
    claim = world.get(ref)
    if claim is None or not meta.is_deleting(claim) or CLAIM_HELD not in meta.finalizers(claim):
        return None
    users = [pod for pod in world.found(POD, by_use, place(claim)) if pod["spec"].get("nodeName")]
    return Held(claim=claim, users=len(users))


def plan_held(view: Held, answers: Answers, now: datetime) -> Plan:
    if view.users:
        return Plan(because=f"{view.users} pods use it")
    return one_stage("let it go", [remove_finalizer(view.claim, CLAIM_HELD)], because="no pod uses it")


def pod_went(world: World, change: Change) -> Iterable[Ref]:
    """A pod that is gone concerns the claims it used."""
    if (
        change.after is not None
        and change.before is not None
        and meta.uid(change.after) == meta.uid(change.before)
    ):
        return
    for used in by_use(change.before) if change.before is not None else ():
        namespace, _, name = used.partition("/")
        yield Ref("v1", "PersistentVolumeClaim", namespace, name)


HELD_CLAIMS: Controller[Held] = Controller(
    name="held claims",
    watches=(
        Watch(selects=only(*CLAIM), concerns=itself),
        Watch(selects=only(*POD), concerns=pod_went),
    ),
    gather=gather_held,
    plan=plan_held,
    manager=MANAGER,
)
