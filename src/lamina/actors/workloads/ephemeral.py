"""
The ephemeral volume controller: claims for the volumeClaimTemplates of pods.

The claim is named after the pod and the volume, and owned by the pod, with which
it is deleted. A claim of that name with another owner is left alone, and the pod
stays pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from lamina.actors.field_manager import MANAGER
from lamina.actors.workloads import pods
from lamina.actors.workloads.pods import POD
from lamina.actors.workloads.pv_binder import CLAIM
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.events import warning
from lamina.core.model.plan import Action, Create, Emit, Plan, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref

_BY = "ephemeral_volume"


class View(Struct, frozen=True, kw_only=True):
    """A pod with volumeClaimTemplates, and the existing claims of their names."""

    pod: Obj
    claims: dict[str, Obj]


def claim_templates(pod: Obj) -> Iterator[tuple[str, Obj]]:
    """Yield the name and the template of each ephemeral claim of a pod."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if source := volume.get("ephemeral"):
            yield f"{meta.name(pod)}-{volume['name']}", source.get("volumeClaimTemplate") or {}


def gather(world: World, ref: Ref) -> View | None:
    pod = world.get(ref)
    if pod is None or meta.is_deleting(pod) or pods.is_finished(pod):
        return None
    names = [name for name, _ in claim_templates(pod)]
    found = {name: world.get(Ref("v1", "PersistentVolumeClaim", ref.namespace, name)) for name in names}
    there = {name: claim for name, claim in found.items() if claim is not None}
    return View(pod=pod, claims=there) if names else None


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    actions: list[Action] = []
    for name, template in claim_templates(view.pod):
        there = view.claims.get(name)
        if there is None:
            actions.append(Create(obj=_claim(view.pod, name, template)))
        elif not meta.is_controlled_by(there, meta.uid(view.pod)):
            place = meta.namespace(there)
            message = (
                f"PVC {place}/{name} was not created for pod {place}/{meta.name(view.pod)} (pod is not owner)"
            )
            actions.append(Emit(event=warning(view.pod, "FailedBinding", message, by=_BY, now=now)))
    return one_stage("create claims", actions, because="it has ephemeral volumes")


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
    """A new pod is enqueued, if it has ephemeral volumes."""
    after = change.after
    if after is None or change.before is not None:
        return ()
    return (change.ref,) if any(True for _ in claim_templates(after)) else ()


def claim_changed(world: World, change: Change) -> Iterable[Ref]:
    """A deleted claim enqueues its pod."""
    owner = meta.controller_of(change.obj)
    if change.after is not None or owner is None or owner["kind"] != "Pod":
        return ()
    return (Ref("v1", "Pod", change.ref.namespace, owner["name"]),)


EPHEMERAL_CLAIMS: Controller[View] = Controller(
    name="ephemeral claims",
    watches=(
        Watch(selects=only(*POD), enqueue=pod_changed),
        Watch(selects=only(*CLAIM), enqueue=claim_changed),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
