"""
Simulated nodes: the node object, its conditions and its taints.

A simulated node is registered at start, has a large capacity, and is ready unless
its annotation says otherwise: then its conditions are those of a node whose
kubelet stopped reporting, and the pods on it are not ready either.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import normal
from lamina.core.model.plan import Action, Create, Emit, Patch, Plan, change, one_stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World, identity_only, whole
from lamina.objects import conditions, meta
from lamina.objects.digest import digest
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj, Ref

VERSION = "v1.35.4"
NOT_READY = "sim/not-ready"
"""The annotation that makes a node not ready, with any value but `false`."""

CAPACITY = {
    "cpu": "1k",
    "memory": "4Ti",
    "pods": "100k",
    "ephemeral-storage": "16Ti",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
}
UNREACHABLE = "node.kubernetes.io/unreachable"

_FINE = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_SILENT = tuple(
    (kind, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.") for kind, _, _, _ in _FINE
)


def names(count: int) -> tuple[str, ...]:
    """Return the names of the simulated nodes."""
    return tuple(f"sim-{number}" for number in range(count))


def is_ready(node: Obj) -> bool:
    """Say whether a node is ready."""
    return conditions.is_true((node.get("status") or {}).get("conditions") or (), "Ready")


def address(name: str) -> str:
    """Return the address of a node, which depends on its name alone."""
    number = int(digest(["node", name])[:8], 16)
    return f"172.18.{number // 250 % 250}.{2 + number % 250}"


def _is_silenced(node: Obj) -> bool:
    return meta.annotations(node).get(NOT_READY, "false") != "false"


class View(Struct, frozen=True, kw_only=True):
    """The name of one simulated node, and the node if it is registered."""

    name: str
    node: Obj | None


def nodes(count: int) -> Controller[View]:
    """Return the controller that keeps this many simulated nodes."""
    ours = frozenset(names(count))
    keys = tuple(Ref("v1", "Node", "", name) for name in names(count))

    def gather(world: World, ref: Ref) -> View | None:
        return View(name=ref.name, node=world.get(ref)) if ref.name in ours else None

    def at_start(world: World, change: Change) -> Iterable[Ref]:
        """A namespace that every cluster has enqueues all nodes, so that they are registered at start."""
        return keys

    return Controller(
        name="nodes",
        watches=(
            Watch(selects=only("", "Node"), enqueue=itself, keep=whole),
            Watch(
                selects=only("", "Namespace"),
                enqueue=at_start,
                keep=identity_only,
                metadata_only=True,
                named="kube-system",
            ),
        ),
        gather=gather,
        plan=plan,
        manager="kubelet",
        at_once=1,
    )


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    if view.node is None:
        return one_stage("register", [Create(obj=_new(view.name, now))], because="the node is not registered")
    actions: list[Action] = [*_corrections(view.node, now)]
    return one_stage("write status", actions, because="the node's status differs")


def _corrections(node: Obj, now: datetime) -> Iterable[Action]:
    silent = _is_silenced(node)
    old = node.get("status") or {}
    found: list[Condition] = list(old.get("conditions") or ())
    for kind, status, reason, message in _SILENT if silent else _FINE:
        old_condition = conditions.find(found, kind)
        if old_condition is None or (old_condition["status"], old_condition.get("reason")) != (
            status,
            reason,
        ):
            made = conditions.with_condition(found, kind, status, now=now, reason=reason, message=message)
            found = [_with_heartbeat(one, now) if one["type"] == kind else one for one in made]
    status_now: Made = {**_status(meta.name(node), now), **old, "conditions": found}
    patch = set_status(node, status_now)
    if patch is not None:
        # One write at a time: the second would conflict with the first.
        yield patch
        yield _event(node, silent, now)
    elif taint := _taint_patch(node, silent, now):
        yield taint


def _with_heartbeat(condition: Condition, now: datetime) -> Condition:
    made: Made = {**condition, "lastHeartbeatTime": stamp(now)}
    return made  # type: ignore[return-value]  # a node's condition has one field more


def _event(node: Obj, silent: bool, now: datetime) -> Emit:
    name = meta.name(node)
    reason, message = ("NodeNotReady", f"Node {name} status is now: NodeNotReady")
    if not silent:
        reason, message = ("NodeReady", f"Node {name} status is now: NodeReady")
    by = "node-controller" if silent else "kubelet"
    return Emit(event=normal(node, reason, message, by=by, now=now, occasion=meta.resource_version(node)))


def _taint_patch(node: Obj, silent: bool, now: datetime) -> Patch | None:
    """Return the patch that sets the unreachable taints of a silent node, or removes them and not-ready taints."""
    taints = (node.get("spec") or {}).get("taints") or []
    kept = [one for one in taints if one.get("key") not in (UNREACHABLE, "node.kubernetes.io/not-ready")]
    if silent:
        there = [one for one in taints if one.get("key") == UNREACHABLE]
        kept += there or [
            {"key": UNREACHABLE, "effect": effect, "timeAdded": stamp(now)}
            for effect in ("NoSchedule", "NoExecute")
        ]
    return None if kept == list(taints) else change(node, {"spec": {"taints": kept or None}})


def _new(name: str, now: datetime) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {},
        "status": _status(name, now),
    }


def _status(name: str, now: datetime) -> Made:
    found: list[Condition] = []
    for kind, status, reason, message in _FINE:
        found = conditions.with_condition(found, kind, status, now=now, reason=reason, message=message)
    mark = digest(["machine", name])
    return {
        "capacity": CAPACITY,
        "allocatable": CAPACITY,
        "conditions": [_with_heartbeat(one, now) for one in found],
        "addresses": [
            {"type": "InternalIP", "address": address(name)},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "kernelVersion": "0",
            "osImage": "simulated",
            "containerRuntimeVersion": "containerd://2.0.0",
            "kubeletVersion": VERSION,
            "kubeProxyVersion": "",
            "bootID": _as_uuid(mark),
            "machineID": mark[:32],
            "systemUUID": _as_uuid(mark[32:]),
        },
    }


def _as_uuid(mark: str) -> str:
    return "-".join((mark[:8], mark[8:12], mark[12:16], mark[16:20], mark[20:32]))
