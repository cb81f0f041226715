"""
Finding a node for every pod that waits for one.

All pods that wait are looked at together, most important first, because one
pod's place is another pod's want of room. A pod that fits nowhere is told why,
and is looked at again when a node changes or a place becomes free.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.actors.amounts import counted, requested
from lamina.actors.placing import Room, explained, host_ports, refusals
from lamina.core.controller import Controller, Watch, only
from lamina.core.events import normal, warning
from lamina.core.plan import Action, Emit, Patch, Plan, Post, Stage, change
from lamina.core.questions import Answers
from lamina.core.world import Change, World
from lamina.objects import conditions, meta
from lamina.objects.types import GroupKind, Made, Obj, Ref

SCHEDULER = "default-scheduler"

_POD, _NODE = GroupKind("", "Pod"), GroupKind("", "Node")
_ALL = Ref("v1", "Pod", "", "")
"""Not a pod: the key under which all of them are looked at together."""

_TOGETHER = timedelta(milliseconds=20)
"""How long a pod waits for others that come with it: a ReplicaSet makes many at once."""


class View(Struct, frozen=True, kw_only=True):
    """The pods that wait for a node, those that have one, and the nodes."""

    waiting: tuple[Obj, ...]
    placed: tuple[Obj, ...]
    nodes: tuple[Obj, ...]


def gather(world: World, ref: Ref) -> View | None:
    waiting: list[Obj] = []
    placed: list[Obj] = []
    for pod in world.every(_POD):
        if pod["spec"].get("nodeName"):
            placed.append(pod)
        elif _waits(pod):
            waiting.append(pod)
    if not waiting:
        return None
    nodes = sorted(world.every(_NODE), key=meta.name)
    return View(waiting=tuple(waiting), placed=tuple(placed), nodes=tuple(nodes))


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    rooms = _rooms(view)
    deeds: list[Action] = []
    told: list[Action] = []
    for pod in sorted(view.waiting, key=_turn):
        spec = pod["spec"]
        requests, ports = requested(spec), host_ports(spec)
        found = [(room, refusals(spec, requests, ports, room)) for room in rooms.values()]
        free = [room for room, reasons in found if not reasons]
        if free:
            room = min(free, key=lambda one: (one.pods, one.name))
            room.take(requests, ports)
            deeds.append(_binding(pod, room.name))
            told.append(Emit(event=_assigned(pod, room.name, now)))
        else:
            message = explained([reasons for _, reasons in found])
            if held := _held_back(pod, message, now):
                deeds.append(held)
                told.append(Emit(event=warning(pod, "FailedScheduling", message, by=SCHEDULER, now=now)))
    if not deeds:
        return Plan(because="no pod that waits fits anywhere")
    # Told afterwards: who hears of it may then rely on it.
    return Plan(
        stages=(
            Stage("place pods", tuple(deeds)),
            Stage("say so", tuple(told), even_after_failure=True),
        ),
        because=f"{len(view.waiting)} pods wait for a node",
    )


def _rooms(view: View) -> dict[str, Room]:
    rooms = {
        meta.name(node): Room(node, counted((node.get("status") or {}).get("allocatable")))
        for node in view.nodes
    }
    for pod in view.placed:
        room = rooms.get(pod["spec"]["nodeName"])
        if room is not None and not _is_over(pod):
            room.take(requested(pod["spec"]), host_ports(pod["spec"]))
    return rooms


def _turn(pod: Obj) -> tuple[int, str, str, str]:
    metadata = meta.metadata(pod)
    priority = pod["spec"].get("priority") or 0
    return -priority, str(metadata.get("creationTimestamp")), meta.namespace(pod), meta.name(pod)


def _waits(pod: Obj) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and (spec.get("schedulerName") or SCHEDULER) == SCHEDULER
        and not meta.is_deleting(pod)
        and not _is_over(pod)
    )


def _is_over(pod: Obj) -> bool:
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


def _held_back(pod: Obj, message: str, now: datetime) -> Patch | None:
    """Return what says on a pod that it has no place, unless it says so already."""
    said = (pod.get("status") or {}).get("conditions") or ()
    was = conditions.find(said, "PodScheduled")
    if was is not None and was["status"] == "False" and was.get("message") == message:
        return None
    generation = meta.generation(pod) or None
    made = conditions.with_condition(
        said,
        "PodScheduled",
        "False",
        now=now,
        reason="Unschedulable",
        message=message,
        generation=generation,
    )
    return change(pod, {"status": {"conditions": made}}, subresource="status")


def concerns(world: World, change: Change) -> Iterable[Ref]:
    """A pod that waits concerns everybody, and so does one that leaves its place."""
    before, after = change.before, change.after
    if after is not None and _waits(after):
        return (_ALL,)
    if before is not None and before["spec"].get("nodeName") and (after is None or _is_over(after)):
        return (_ALL,)
    return ()


def _all(world: World, change: Change) -> Iterable[Ref]:
    """What becomes of a node concerns every pod that waits for one."""
    return (_ALL,)


SCHEDULING: Controller[View] = Controller(
    name="scheduling",
    watches=(
        Watch(selects=only(*_POD), concerns=concerns, delay=_TOGETHER),
        Watch(selects=only(*_NODE), concerns=_all),
    ),
    gather=gather,
    plan=plan,
    manager="kube-scheduler",
    at_once=1,
)
