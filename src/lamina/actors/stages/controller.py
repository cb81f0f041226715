"""Stages as a controller: the kinds they are for, followed, and each object taken from stage to stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.actors.nodes import is_ready
from lamina.actors.stages import planner
from lamina.actors.stages.failures import PLACE, afflicted, failures_in
from lamina.actors.stages.stage import Stage
from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import warning
from lamina.core.plan import NOTHING, Emit, Plan, change, one_stage
from lamina.core.questions import Answers
from lamina.core.world import Change, World, whole
from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Obj, Ref

KUBELET = "kubelet"

_POD, _NODE = GroupKind("", "Pod"), GroupKind("", "Node")


class View(Struct, frozen=True, kw_only=True):
    """One object, the stages for its kind and, if it is a pod, the node it is on."""

    obj: Obj
    stages: tuple[Stage, ...]
    node: Obj | None = None
    runs: bool = False
    below: str = "status"


def staging(stages: Sequence[Stage]) -> Controller[View]:
    """Return the controller that takes objects through stages."""
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
            # A pod is somebody's business once it has a node, and if that node is there.
            name = (obj.get("spec") or {}).get("nodeName")
            node = world.get(Ref("v1", "Node", "", name)) if name else None
            if node is None:
                return None
            if failures := failures_in(world.get(PLACE)):
                obj = afflicted(obj, failures)
        served = world.kinds.preferred(kind)
        return View(
            obj=obj,
            stages=by_kind[kind],
            node=node,
            runs=kind == _POD and runs_pods,
            below="status" if served is None or "status" in served.subresources else "",
        )

    watches = [
        Watch(selects=only(*kind), concerns=_placed if kind == _POD else itself, keep=whole)
        for kind in by_kind
    ]
    if _POD in by_kind:
        watches.append(Watch(selects=only(*_NODE), concerns=_its_pods, keep=whole))
        watches.append(Watch(selects=only("", PLACE.kind), concerns=_all_pods, keep=whole, named=PLACE.name))
    return Controller(
        name="stages", watches=tuple(watches), gather=gather, plan=plan, manager=KUBELET, at_once=16
    )


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.node is not None and not is_ready(view.node):
        return _abandoned(view.obj, now)
    return planner.plan(view.obj, view.node, view.stages, now, by=KUBELET, runs=view.runs, below=view.below)


def _abandoned(pod: Obj, now: datetime) -> Plan:
    """Say of a pod whose kubelet is silent that it is not ready; nothing else happens to it."""
    said = (pod.get("status") or {}).get("conditions") or ()
    ready = conditions.find(said, "Ready")
    if ready is None or ready["status"] == "False":
        return NOTHING
    made = [
        {**one, "status": "False", "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        if one["type"] == "Ready"
        else one
        for one in said
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
        "mark it",
        [change(pod, {"status": {"conditions": made}}, subresource="status"), Emit(event=event)],
        because="nobody runs its node",
    )


def _placed(world: World, change: Change) -> Iterable[Ref]:
    """A change to a pod concerns it once it has a node: until then it is nobody's business."""
    return (change.ref,) if change.obj["spec"].get("nodeName") else ()


def _all_pods(world: World, change: Change) -> Iterable[Ref]:
    """What fails from now on, or does not fail any more, concerns every pod that is on a node."""
    if change.ref != PLACE:
        return ()
    return [meta.ref(pod) for pod in world.every(_POD) if (pod.get("spec") or {}).get("nodeName")]


def _its_pods(world: World, change: Change) -> Iterable[Ref]:
    """A node that is new, gone, or ready where it was not concerns the pods on it."""
    before, after = change.before, change.after
    if before is not None and after is not None and is_ready(before) == is_ready(after):
        return ()
    name = meta.name(change.obj)
    return [meta.ref(pod) for pod in world.every(_POD) if (pod.get("spec") or {}).get("nodeName") == name]
