"""The controller of stages: watches the kinds of its stages, and plays the stages that are due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.actors.nodes import is_ready
from lamina.actors.stages import planner
from lamina.actors.stages.failures import FAILURES_REF, failures_in, with_failures
from lamina.actors.stages.stage import Stage
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import warning
from lamina.core.model.plan import NOTHING, Emit, Plan, change, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, whole
from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Obj, Ref

KUBELET = "kubelet"

_POD, _NODE = GroupKind("", "Pod"), GroupKind("", "Node")


class View(Struct, frozen=True, kw_only=True):
    """One object, the stages of its kind and, if it is a pod, its node."""

    obj: Obj
    stages: tuple[Stage, ...]
    node: Obj | None = None
    runs: bool = False
    below: str = "status"


def stages_controller(stages: Sequence[Stage]) -> Controller[View]:
    """Return the controller that plays these stages."""
    by_kind: dict[GroupKind, tuple[Stage, ...]] = {}
    for one in stages:
        by_kind[one.kind] = (*by_kind.get(one.kind, ()), one)
    runs_pods = any(one.selector.containers is not None for one in by_kind.get(_POD, ()))

    def gather(world: World, ref: Ref) -> View | None:
        obj = world.get(ref)
        kind = GroupKind(ref.group, ref.kind)
        if obj is None or kind not in by_kind:
            return None
        node = None
        if kind == _POD:
            # Without a node that exists, no kubelet runs the pod.
            name = (obj.get("spec") or {}).get("nodeName")
            node = world.get(Ref("v1", "Node", "", name)) if name else None
            if node is None:
                return None
            if failures := failures_in(world.get(FAILURES_REF)):
                obj = with_failures(obj, failures)
        served = world.kinds.preferred(kind)
        return View(
            obj=obj,
            stages=by_kind[kind],
            node=node,
            runs=kind == _POD and runs_pods,
            below="status" if served is None or "status" in served.subresources else "",
        )

    watches = [
        Watch(selects=only(*kind), enqueue=_enqueue_assigned if kind == _POD else itself, keep=whole)
        for kind in by_kind
    ]
    if _POD in by_kind:
        watches.append(Watch(selects=only(*_NODE), enqueue=_enqueue_pods_of_node, keep=whole))
        watches.append(
            Watch(
                selects=only("", FAILURES_REF.kind),
                enqueue=_enqueue_all_pods,
                keep=whole,
                named=FAILURES_REF.name,
            )
        )
    return Controller(
        name="stages", watches=tuple(watches), gather=gather, plan=plan, manager=KUBELET, at_once=16
    )


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.node is not None and not is_ready(view.node):
        return _mark_not_ready(view.obj, now)
    return planner.plan(view.obj, view.node, view.stages, now, by=KUBELET, runs=view.runs, below=view.below)


def _mark_not_ready(pod: Obj, now: datetime) -> Plan:
    """Mark a pod on a node that is not ready as not ready; its stages pause."""
    current = (pod.get("status") or {}).get("conditions") or ()
    ready = conditions.find(current, "Ready")
    if ready is None or ready["status"] == "False":
        return NOTHING
    made = [
        {**one, "status": "False", "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        if one["type"] == "Ready"
        else one
        for one in current
    ]
    event = warning(
        pod,
        "NodeNotReady",
        "Node is not ready",
        by="node-controller",
        now=now,
        occasion=meta.resource_version(pod),
    )
    return one_stage(
        "write status",
        [change(pod, {"status": {"conditions": made}}, subresource="status"), Emit(event=event)],
        because="its node is not ready",
    )


def _enqueue_assigned(world: World, change: Change) -> Iterable[Ref]:
    """A changed pod is enqueued once it has a node."""
    return (change.ref,) if change.obj["spec"].get("nodeName") else ()


def _enqueue_all_pods(world: World, change: Change) -> Iterable[Ref]:
    """Changed failures enqueue every pod that has a node."""
    if change.ref != FAILURES_REF:
        return ()
    return [meta.ref(pod) for pod in world.every(_POD) if (pod.get("spec") or {}).get("nodeName")]


def _enqueue_pods_of_node(world: World, change: Change) -> Iterable[Ref]:
    """A node that is new, deleted, or has changed its readiness enqueues its pods."""
    before, after = change.before, change.after
    if before is not None and after is not None and is_ready(before) == is_ready(after):
        return ()
    name = meta.name(change.obj)
    return [meta.ref(pod) for pod in world.every(_POD) if (pod.get("spec") or {}).get("nodeName") == name]
