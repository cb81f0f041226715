"""
What a kubelet says about a pod as a whole, given what has become of its containers.

Its phase, its conditions and its addresses follow from its containers, whoever
changed them; here they are worked out, in the words of a kubelet.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lamina.actors.nodes import address as node_address
from lamina.actors.stages.containers import statuses
from lamina.actors.stages.template import Scope, address
from lamina.objects import conditions, meta
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj

PODS = "10.244.0.0/16"

_pod_address = address(PODS, "")
_OVER = ("Succeeded", "Failed")
_KUBELETS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def settled(pod: Obj, cards: list[Made], node: Obj | None, now: datetime) -> Obj:
    """Return a pod whose status says what its containers add up to; the same one where it says so already."""
    old = pod.get("status") or {}
    status: Made = {**old, **statuses(pod, cards)}
    status["observedGeneration"] = meta.generation(pod) or None
    status["phase"] = old["phase"] if old.get("phase") in _OVER else phase_of(pod, cards)
    if not old.get("startTime"):
        status["startTime"] = stamp(now)
    status |= _addresses(pod, node, old, cards, now)
    status["conditions"] = _conditions(pod, {**pod, "status": status}, cards, now)
    status = {field: value for field, value in status.items() if value is not None}
    return pod if status == old else {**pod, "status": status}


def _addresses(pod: Obj, node: Obj | None, old: Obj, cards: Sequence[Obj], now: datetime) -> Made:
    if old.get("podIP"):
        return {}
    own = host = _host_address(pod, node)
    # The sandbox has an address before any image is there.
    if not (pod.get("spec") or {}).get("hostNetwork"):
        own = _pod_address(Scope(pod, now))
    return {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}]}


def _host_address(pod: Obj, node: Obj | None) -> str:
    if node is not None:
        for one in (node.get("status") or {}).get("addresses") or ():
            if one.get("type") == "InternalIP":
                return str(one["address"])
    return node_address((pod.get("spec") or {}).get("nodeName") or "")


def phase_of(pod: Obj, cards: Sequence[Obj]) -> str:
    """Return the phase that containers add up to."""
    going = meta.is_deleting(pod)
    policy = (pod.get("spec") or {}).get("restartPolicy") or "Always"
    for card in cards:
        if not card["init"] or card["sidecar"]:
            continue
        ended = _ended(card)
        if ended is None:
            return "Pending"
        if ended.get("exitCode"):
            return "Failed" if policy == "Never" or going else "Pending"
    own = [card for card in cards if not card["init"]]
    states = [card.get("state") or {} for card in own]
    if any("waiting" in state and not card.get("lastState") for card, state in zip(own, states, strict=True)):
        return "Pending"
    if any("terminated" not in state for state in states):
        return "Running"
    if policy == "Always" and not going:
        return "Running"
    if any(state["terminated"].get("exitCode") for state in states):
        return "Running" if policy == "OnFailure" and not going else "Failed"
    return "Succeeded"


def _ended(card: Obj) -> Obj | None:
    """Return how a container ended, now or before its back-off."""
    state, last = card.get("state") or {}, card.get("lastState") or {}
    if "running" in state:
        return None
    found: Obj | None = state.get("terminated") or last.get("terminated")
    return found


def _conditions(pod: Obj, new: Obj, cards: Sequence[Obj], now: datetime) -> list[Condition]:
    said: Sequence[Condition] = (pod.get("status") or {}).get("conditions") or ()
    phase = new["status"]["phase"]
    ready = _containers_ready(cards, phase)
    wanted: dict[str, tuple[str, str, str]] = {
        "PodReadyToStartContainers": ("False" if phase in _OVER else "True", "", ""),
        "Initialized": _initialized(cards, phase),
        "Ready": ready if ready[0] == "False" else _gates(pod, said),
        "ContainersReady": ready,
        "PodScheduled": ("True", "", ""),
    }
    generation = meta.generation(pod) or None
    made: list[Condition] = []
    for kind in _KUBELETS:
        status, reason, message = wanted[kind]
        was = conditions.find(said, kind)
        kept = was is not None and was["status"] == status and was.get("lastTransitionTime")
        one = Condition(type=kind, status=status, lastTransitionTime=kept or stamp(now))
        if reason:
            one["reason"] = reason
        if message:
            one["message"] = message
        if generation:
            one["observedGeneration"] = generation
        made.append({**one, "lastProbeTime": None})  # type: ignore[typeddict-unknown-key]  # a pod's has one more
    return [*made, *(one for one in said if one["type"] not in _KUBELETS)]


def _initialized(cards: Sequence[Obj], phase: str) -> tuple[str, str, str]:
    waiting = [
        card["name"]
        for card in cards
        if card["init"] and not (card.get("started") if card["sidecar"] else _is_done(card))
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


def _is_done(card: Obj) -> bool:
    ended = _ended(card)
    return ended is not None and not ended.get("exitCode")


def _containers_ready(cards: Sequence[Obj], phase: str) -> tuple[str, str, str]:
    if phase == "Succeeded":
        return "False", "PodCompleted", ""
    if phase == "Failed":
        return "False", "PodFailed", ""
    unready = [
        card["name"] for card in cards if not card.get("ready") and (not card["init"] or card["sidecar"])
    ]
    if not unready:
        return "True", "", ""
    return "False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"


def _gates(pod: Obj, said: Sequence[Condition]) -> tuple[str, str, str]:
    """Return whether everything else that a pod's readiness hangs on is so."""
    troubles = []
    for gate in (pod.get("spec") or {}).get("readinessGates") or ():
        kind = gate.get("conditionType")
        found = conditions.find(said, kind)
        if found is None:
            troubles.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found["status"] != "True":
            troubles.append(f'the status of pod readiness gate "{kind}" is not "True", but {found["status"]}')
    return ("False", "ReadinessGatesNotReady", ", ".join(troubles)) if troubles else ("True", "", "")
