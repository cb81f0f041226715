"""
The status of a pod, derived from its container statuses as a kubelet does.

Phase, conditions and addresses are computed after every stage, with a kubelet's
reasons and messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lamina.actors.nodes import address as node_address
from lamina.actors.stages.container_status import statuses
from lamina.actors.stages.template import Scope, address
from lamina.objects import conditions, meta
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj

PODS = "10.244.0.0/16"

_pod_address = address(PODS, "")
_OVER = ("Succeeded", "Failed")
_KUBELETS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def with_derived_status(pod: Obj, records: list[Made], node: Obj | None, now: datetime) -> Obj:
    """Return a pod with its derived status; the same object where nothing changes."""
    old = pod.get("status") or {}
    status: Made = {**old, **statuses(pod, records)}
    status["observedGeneration"] = meta.generation(pod) or None
    status["phase"] = old["phase"] if old.get("phase") in _OVER else phase_of(pod, records)
    if not old.get("startTime"):
        status["startTime"] = stamp(now)
    status |= _addresses(pod, node, old, records, now)
    status["conditions"] = _conditions(pod, {**pod, "status": status}, records, now)
    status = {field: value for field, value in status.items() if value is not None}
    return pod if status == old else {**pod, "status": status}


def _addresses(pod: Obj, node: Obj | None, old: Obj, records: Sequence[Obj], now: datetime) -> Made:
    if old.get("podIP"):
        return {}
    own = host = _host_address(pod, node)
    # The sandbox has an address before any image is pulled.
    if not (pod.get("spec") or {}).get("hostNetwork"):
        own = _pod_address(Scope(pod, now))
    return {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}]}


def _host_address(pod: Obj, node: Obj | None) -> str:
    if node is not None:
        for one in (node.get("status") or {}).get("addresses") or ():
            if one.get("type") == "InternalIP":
                return str(one["address"])
    return node_address((pod.get("spec") or {}).get("nodeName") or "")


def phase_of(pod: Obj, records: Sequence[Obj]) -> str:
    """Return the phase of a pod with these containers."""
    going = meta.is_deleting(pod)
    policy = (pod.get("spec") or {}).get("restartPolicy") or "Always"
    for record in records:
        if not record["init"] or record["sidecar"]:
            continue
        ended = _ended(record)
        if ended is None:
            return "Pending"
        if ended.get("exitCode"):
            return "Failed" if policy == "Never" or going else "Pending"
    own = [record for record in records if not record["init"]]
    states = [record.get("state") or {} for record in own]
    if any(
        "waiting" in state and not record.get("lastState") for record, state in zip(own, states, strict=True)
    ):
        return "Pending"
    if any("terminated" not in state for state in states):
        return "Running"
    if policy == "Always" and not going:
        return "Running"
    if any(state["terminated"].get("exitCode") for state in states):
        return "Running" if policy == "OnFailure" and not going else "Failed"
    return "Succeeded"


def _ended(record: Obj) -> Obj | None:
    """Return how a container terminated, now or before its back-off."""
    state, last = record.get("state") or {}, record.get("lastState") or {}
    if "running" in state:
        return None
    found: Obj | None = state.get("terminated") or last.get("terminated")
    return found


def _conditions(pod: Obj, new: Obj, records: Sequence[Obj], now: datetime) -> list[Condition]:
    current: Sequence[Condition] = (pod.get("status") or {}).get("conditions") or ()
    phase = new["status"]["phase"]
    ready = _containers_ready(records, phase)
    wanted: dict[str, tuple[str, str, str]] = {
        "PodReadyToStartContainers": ("False" if phase in _OVER else "True", "", ""),
        "Initialized": _initialized(records, phase),
        "Ready": ready if ready[0] == "False" else _gates(pod, current),
        "ContainersReady": ready,
        "PodScheduled": ("True", "", ""),
    }
    generation = meta.generation(pod) or None
    made: list[Condition] = []
    for kind in _KUBELETS:
        status, reason, message = wanted[kind]
        was = conditions.find(current, kind)
        kept = was is not None and was["status"] == status and was.get("lastTransitionTime")
        one = Condition(type=kind, status=status, lastTransitionTime=kept or stamp(now))
        if reason:
            one["reason"] = reason
        if message:
            one["message"] = message
        if generation:
            one["observedGeneration"] = generation
        made.append({**one, "lastProbeTime": None})  # type: ignore[typeddict-unknown-key]  # a pod's has one more
    return [*made, *(one for one in current if one["type"] not in _KUBELETS)]


def _initialized(records: Sequence[Obj], phase: str) -> tuple[str, str, str]:
    waiting = [
        record["name"]
        for record in records
        if record["init"] and not (record.get("started") if record["sidecar"] else _is_done(record))
    ]
    if phase == "Succeeded":
        return "True", "PodCompleted", ""
    if not waiting:
        return "True", "", ""
    return (
        "False",
        "ContainersNotInitialized",
        f"containers with incomplete status: [{' '.join(waiting)}]",
    )


def _is_done(record: Obj) -> bool:
    ended = _ended(record)
    return ended is not None and not ended.get("exitCode")


def _containers_ready(records: Sequence[Obj], phase: str) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return "False", "PodCompleted", ""
    if phase == "Failed":
        return "False", "PodFailed", ""
    unready = [
        record["name"]
        for record in records
        if not record.get("ready") and (not record["init"] or record["sidecar"])
    ]
    if not unready:
        return "True", "", ""
    return "False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"


def _gates(pod: Obj, current: Sequence[Condition]) -> tuple[str, str, str]:
    """Return the Ready condition by the pod's readiness gates."""
    messages = []
    for gate in (pod.get("spec") or {}).get("readinessGates") or ():
        kind = gate.get("conditionType")
        found = conditions.find(current, kind)
        if found is None:
            messages.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found["status"] != "True":
            messages.append(f'the status of pod readiness gate "{kind}" is not "True", but {found["status"]}')
    return ("False", "ReadinessGatesNotReady", ", ".join(messages)) if messages else ("True", "", "")
