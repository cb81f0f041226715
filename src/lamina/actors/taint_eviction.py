"""
The taint eviction controller: deletes pods that do not tolerate a NoExecute taint of their node.

A pod without a toleration is deleted at once, one with tolerationSeconds after
that time. An unreachable node has such a taint, which pods tolerate for five
minutes by default. Its kubelet cannot terminate them: they stay terminating until
it reports again, and their controllers create others meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.node_fit import is_tolerated
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.events import normal
from lamina.core.model.plan import NOTHING, Delete, Emit, Plan, Stage, change
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, whole
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import GroupKind, Obj, Ref

MANAGER = "taint-eviction-controller"

_POD, _NODE = GroupKind("", "Pod"), GroupKind("", "Node")
_OVER = ("Succeeded", "Failed")


class View(Struct, frozen=True, kw_only=True):
    """A pod, and the NoExecute taints of its node."""

    pod: Obj
    taints: tuple[Obj, ...]


def gather(world: World, ref: Ref) -> View | None:
    pod = world.get(ref)
    if pod is None or meta.is_deleting(pod) or (pod.get("status") or {}).get("phase") in _OVER:
        return None
    taints = _taints(_node_of(world, pod))
    return View(pod=pod, taints=taints) if taints else None


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    at = evicted_at(view.pod, view.taints, now)
    if at is None:
        return NOTHING
    if at > now:
        return Plan(requeue_after=at - now, because="it tolerates the taint for a while")
    pod, ref = view.pod, meta.ref(view.pod)
    event = normal(
        pod,
        "TaintManagerEviction",
        f"Marking for deletion Pod {ref.namespace}/{ref.name}",
        by=MANAGER,
        now=now,
    )
    wanted = conditions.with_condition(
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
                "write condition",
                (change(pod, {"status": {"conditions": wanted}}, subresource="status"), Emit(event=event)),
            ),
            Stage("delete", (Delete(ref=ref, uid=meta.uid(pod)),)),
        ),
        because="it does not tolerate a taint of its node",
    )


def evicted_at(pod: Obj, taints: Sequence[Obj], now: datetime) -> datetime | None:
    """Return when a pod is evicted from a node with these taints; None if it may stay."""
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    moments: list[datetime] = []
    for taint in taints:
        tolerated = next((one for one in tolerations if is_tolerated(taint, (one,))), None)
        if tolerated is None:
            return now
        seconds = tolerated.get("tolerationSeconds")
        if seconds is not None:
            # Not every taint has timeAdded; the toleration begins with the pod at the earliest.
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


def _enqueue_tainted(world: World, change: Change) -> Iterable[Ref]:
    """A changed pod is enqueued if its node has NoExecute taints."""
    return (change.ref,) if change.after is not None and _taints(_node_of(world, change.after)) else ()


def _enqueue_pods_of_node(world: World, change: Change) -> Iterable[Ref]:
    """A node with changed NoExecute taints enqueues its pods."""
    taints = _taints(change.after)
    if not taints or taints == _taints(change.before):
        return ()
    name = meta.name(change.obj)
    return [meta.ref(pod) for pod in world.every(_POD) if (pod.get("spec") or {}).get("nodeName") == name]


EVICTING: Controller[View] = Controller(
    name="evicting",
    watches=(
        Watch(selects=only(*_POD), enqueue=_enqueue_tainted, keep=whole),
        Watch(selects=only(*_NODE), enqueue=_enqueue_pods_of_node, keep=whole),
    ),
    gather=gather,
    plan=plan,
    manager=MANAGER,
)
