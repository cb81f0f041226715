"""
Volumes that live as long as their pod.

A pod may bring the template of a claim along. The claim is made for it, under
the names of both, and is its dependent: it goes when the pod has gone. A claim
of that name that is somebody else's is left alone, and the pod waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from lamina.actors.names import MANAGER
from lamina.actors.workloads import pods
from lamina.actors.workloads.claims import CLAIM
from lamina.actors.workloads.pods import POD
from lamina.core.controller import Controller, Watch, only
from lamina.core.events import warning
from lamina.core.plan import Action, Create, Emit, Plan, one_stage
from lamina.core.questions import Answers
from lamina.core.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

_BY = "ephemeral_volume"


class View(Struct, frozen=True, kw_only=True):
    """A pod that brings templates of claims, and the claims of those names that are there."""

    pod: Obj
    claims: dict[str, Obj]


def brought(pod: Obj) -> Iterator[tuple[str, Obj]]:
    """Yield the name of each claim that is to be made for a pod, and what it is made of."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if source := volume.get("ephemeral"):
            yield f"{meta.name(pod)}-{volume['name']}", source.get("volumeClaimTemplate") or {}


def gather(world: World, ref: Ref) -> View | None:
    pod = world.get(ref)
    if pod is None or meta.is_deleting(pod) or pods.is_finished(pod):
        return None
    names = [name for name, _ in brought(pod)]
    found = {name: world.get(Ref("v1", "PersistentVolumeClaim", ref.namespace, name)) for name in names}
    there = {name: claim for name, claim in found.items() if claim is not None}
    return View(pod=pod, claims=there) if names else None


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    actions: list[Action] = []
    for name, template in brought(view.pod):
        there = view.claims.get(name)
        if there is None:
            actions.append(Create(obj=_claim(view.pod, name, template)))
        elif not meta.is_controlled_by(there, meta.uid(view.pod)):
            place = meta.namespace(there)
            message = (
                f"PVC {place}/{name} was not created for pod {place}/{meta.name(view.pod)} (pod is not owner)"
            )
            actions.append(Emit(event=warning(view.pod, "FailedBinding", message, by=_BY, now=now)))
    return one_stage("make its claims", actions, because="it brings templates of claims")


def _claim(pod: Obj, name: str, template: Obj) -> Made:
    head = template.get("metadata") or {}
    metadata: Made = {"name": name, "namespace": meta.namespace(pod)}
    for field in ("labels", "annotations"):
        if head.get(field):
            metadata[field] = dict(head[field])
    metadata["ownerReferences"] = [meta.owner_ref(pod, controller=True, blocks=True)]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }


def pod_changed(world: World, change: Change) -> Iterable[Ref]:
    """A pod that comes concerns itself, if it brings anything."""
    after = change.after
    if after is None or change.before is not None:
        return ()
    return (change.ref,) if any(True for _ in brought(after)) else ()


def claim_changed(world: World, change: Change) -> Iterable[Ref]:
    """A claim that is gone is missed by the pod it was made for."""
    owner = meta.controller_of(change.obj)
    if change.after is not None or owner is None or owner["kind"] != "Pod":
        return ()
    return (Ref("v1", "Pod", change.ref.namespace, owner["name"]),)


EPHEMERAL_CLAIMS: Controller[View] = Controller(
    name="ephemeral claims",
    watches=(
        Watch(selects=only(*POD), concerns=pod_changed),
        Watch(selects=only(*CLAIM), concerns=claim_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
