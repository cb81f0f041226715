"""
Pods leave a node that will not have them.

A taint with the effect NoExecute sends away whoever does not put up with it, at
once or, where a toleration says for how long, later. A node whose kubelet is
silent has such a taint, and pods put up with that one for five minutes unless
they say otherwise. The kubelet of such a node cannot end them: they are on their
way out until it is back, and others take their place meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.placing import is_tolerated
from lamina.core.controller import Controller, Watch, only
from lamina.core.events import normal
from lamina.core.plan import NOTHING, Delete, Emit, Plan, Stage, change
from lamina.core.questions import Answers
from lamina.core.world import Change, World, whole
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Obj, Ref

MANAGER = "taint-eviction-controller"

_POD, _NODE = GroupKind("", "Pod"), GroupKind("", "Node")
_OVER = ("Succeeded", "Failed")


class View(Struct, frozen=True, kw_only=True):
    """A pod, and the taints of its node that send pods away."""

    pod: Obj
    taints: tuple[Obj, ...]


def gather(world: World, ref: Ref) -> View | None:
    pod = world.get(ref)
    if pod is None or meta.is_deleting(pod) or (pod.get("status") or {}).get("phase") in _OVER:
        return None
    taints = _taints(_node_of(world, pod))
    return View(pod=pod, taints=taints) if taints else None


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    leaves = leaves_at(view.pod, view.taints, now)
    if leaves is None:
        return NOTHING
    if leaves > now:
        return Plan(look_again=leaves - now, because="it puts up with its node for a while")
    pod, ref = view.pod, meta.ref(view.pod)
    told = normal(
        pod,
        "TaintManagerEviction",
        f"Marking for deletion Pod {ref.namespace}/{ref.name}",
        by=MANAGER,
        now=now,
    )
    said = conditions.with_condition(
        (pod.get("status") or {}).get("conditions") or (),
        "DisruptionTarget",
        "True",
        now=now,
        reason="DeletionByTaintManager",
        message="Taint manager: deleting due to NoExecute taint",
        generation=meta.generation(pod) or None,
    )
    return Plan(
        stages=(
            Stage(
                "say why",
                (change(pod, {"status": {"conditions": said}}, subresource="status"), Emit(event=told)),
            ),
            Stage("send it away", (Delete(ref=ref, uid=meta.uid(pod)),)),
        ),
        because="its node will not have it",
    )


def leaves_at(pod: Obj, taints: Sequence[Obj], now: datetime) -> datetime | None:
    """Return when a pod has to leave a node with these taints; None if it may stay."""
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    moments: list[datetime] = []
    for taint in taints:
        tolerated = next((one for one in tolerations if is_tolerated(taint, (one,))), None)
        if tolerated is None:
            return now
        seconds = tolerated.get("tolerationSeconds")
        if seconds is not None:
            # Not every taint says since when it is there; the pod has borne it no longer than it has been there.
            since = (
                moment(taint.get("timeAdded")) or moment((pod.get("status") or {}).get("startTime")) or now
            )
            moments.append(since + timedelta(seconds=max(0, seconds)))
    return min(moments, default=None)


def _taints(node: Obj | None) -> tuple[Obj, ...]:
    listed = ((node or {}).get("spec") or {}).get("taints") or ()
    return tuple(taint for taint in listed if taint.get("effect") == "NoExecute")


def _node_of(world: World, pod: Obj) -> Obj | None:
    name = (pod.get("spec") or {}).get("nodeName")
    return world.get(Ref("v1", "Node", "", name)) if name else None


def _itself(world: World, change: Change) -> Iterable[Ref]:
    """A pod is of interest where its node sends pods away."""
    return (change.ref,) if change.after is not None and _taints(_node_of(world, change.after)) else ()


def _its_pods(world: World, change: Change) -> Iterable[Ref]:
    """A node that sends pods away as it did not before concerns those on it."""
    taints = _taints(change.after)
    if not taints or taints == _taints(change.before):
        return ()
    name = meta.name(change.obj)
    return [meta.ref(pod) for pod in world.every(_POD) if (pod.get("spec") or {}).get("nodeName") == name]


EVICTING: Controller[View] = Controller(
    name="evicting",
    watches=(
        Watch(selects=only(*_POD), concerns=_itself, keep=whole),
        Watch(selects=only(*_NODE), concerns=_its_pods, keep=whole),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
