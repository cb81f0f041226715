"""
The scheduler: binds pending pods to nodes.

All pending pods are scheduled in one plan, by priority, because each binding
takes resources from the next. A pod that fits no node gets the Unschedulable
condition, and is retried when a node changes or a pod frees resources.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.milli_resources import pod_requests, to_milli
from lamina.actors.node_fit import NodeInfo, fit_error, host_ports, unfit_reasons
from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.events import normal, warning
from lamina.core.model.plan import Action, Emit, Patch, Plan, Post, Stage, change
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Made, Obj, Ref

SCHEDULER = "default-scheduler"

_POD, _NODE = GroupKind("", "Pod"), GroupKind("", "Node")
_ALL = Ref("v1", "Pod", "", "")
"""Not a pod: the key for all of them."""

_TOGETHER = timedelta(milliseconds=20)
"""The delay in which more pending pods are collected: a ReplicaSet creates many at once."""


class View(Struct, frozen=True, kw_only=True):
    """The pending pods, the assigned pods, and the nodes."""

    pending: tuple[Obj, ...]
    assigned: tuple[Obj, ...]
    nodes: tuple[Obj, ...]


def gather(world: World, ref: Ref) -> View | None:
    pending: list[Obj] = []
    assigned: list[Obj] = []
    for pod in world.every(_POD):
        if pod["spec"].get("nodeName"):
            assigned.append(pod)
        elif _is_pending(pod):
            pending.append(pod)
    if not pending:
        return None
    nodes = sorted(world.every(_NODE), key=meta.name)
    return View(pending=tuple(pending), assigned=tuple(assigned), nodes=tuple(nodes))


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    node_infos = _node_infos(view)
    writes: list[Action] = []
    events: list[Action] = []
    for pod in sorted(view.pending, key=_queue_order):
        spec = pod["spec"]
        requests, ports = pod_requests(spec), host_ports(spec)
        found = [
            (node_info, unfit_reasons(spec, requests, ports, node_info)) for node_info in node_infos.values()
        ]
        free = [node_info for node_info, reasons in found if not reasons]
        if free:
            node_info = min(free, key=lambda one: (one.pods, one.name))
            node_info.assume(requests, ports)
            writes.append(_binding(pod, node_info.name))
            events.append(Emit(event=_assigned(pod, node_info.name, now)))
        else:
            message = fit_error([reasons for _, reasons in found])
            if patch := _unschedulable(pod, message, now):
                writes.append(patch)
                events.append(Emit(event=warning(pod, "FailedScheduling", message, by=SCHEDULER, now=now)))
    if not writes:
        return Plan(because="no pending pod fits a node")
    # Events are written after the bindings, so that they report what happened.
    return Plan(
        stages=(
            Stage("bind pods", tuple(writes)),
            Stage("record events", tuple(events), run_after_failure=True),
        ),
        because=f"{len(view.pending)} pods are pending",
    )


def _node_infos(view: View) -> dict[str, NodeInfo]:
    node_infos = {
        meta.name(node): NodeInfo(node, to_milli((node.get("status") or {}).get("allocatable")))
        for node in view.nodes
    }
    for pod in view.assigned:
        node_info = node_infos.get(pod["spec"]["nodeName"])
        if node_info is not None and not _is_finished(pod):
            node_info.assume(pod_requests(pod["spec"]), host_ports(pod["spec"]))
    return node_infos


def _queue_order(pod: Obj) -> tuple[int, str, str, str]:
    metadata = meta.metadata(pod)
    priority = pod["spec"].get("priority") or 0
    return -priority, str(metadata.get("creationTimestamp")), meta.namespace(pod), meta.name(pod)


def _is_pending(pod: Obj) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and (spec.get("schedulerName") or SCHEDULER) == SCHEDULER
        and not meta.is_deleting(pod)
        and not _is_finished(pod)
    )


def _is_finished(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _binding(pod: Obj, node: str) -> Post:
    return Post(
        ref=meta.ref(pod),
        subresource="binding",
        body={
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name(pod), "namespace": meta.namespace(pod), "uid": meta.uid(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        },
    )


def _assigned(pod: Obj, node: str, now: datetime) -> Made:
    message = f"Successfully assigned {meta.namespace(pod)}/{meta.name(pod)} to {node}"
    return normal(pod, "Scheduled", message, by=SCHEDULER, now=now)


def _unschedulable(pod: Obj, message: str, now: datetime) -> Patch | None:
    """Return the patch that marks a pod unschedulable, unless it is marked so already."""
    current = (pod.get("status") or {}).get("conditions") or ()
    old = conditions.find(current, "PodScheduled")
    if old is not None and old["status"] == "False" and old.get("message") == message:
        return None
    generation = meta.generation(pod) or None
    made = conditions.with_condition(
        current,
        "PodScheduled",
        "False",
        now=now,
        reason="Unschedulable",
        message=message,
        generation=generation,
    )
    return change(pod, {"status": {"conditions": made}}, subresource="status")


def enqueue(world: World, change: Change) -> Iterable[Ref]:
    """A pending pod enqueues the key for all, and so does one that frees its node's resources."""
    before, after = change.before, change.after
    if after is not None and _is_pending(after):
        return (_ALL,)
    if before is not None and before["spec"].get("nodeName") and (after is None or _is_finished(after)):
        return (_ALL,)
    return ()


def _all(world: World, change: Change) -> Iterable[Ref]:
    """A changed node enqueues the key for all."""
    return (_ALL,)


SCHEDULING: Controller[View] = Controller(
    name="scheduling",
    watches=(
        Watch(selects=only(*_POD), enqueue=enqueue, delay=_TOGETHER),
        Watch(selects=only(*_NODE), enqueue=_all),
    ),
    gather=gather,
    plan=plan,
    manager="kube-scheduler",
    at_once=1,
)
