"""
Whether a pod may be put on a node, and in a scheduler's words why not.

Knows nodeSelector, required node affinity, taints, cordons, host ports and the
room that is left. Says nothing about which of several nodes is best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lamina.objects import meta
from lamina.objects.types import Obj

UNHELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"

_CORDONED = "node(s) were unschedulable"
_TAINTED = "node(s) had untolerated taint(s)"
_ELSEWHERE = "node(s) didn't match Pod's node affinity/selector"
_PORTS = "node(s) didn't have free ports for the requested pod ports"
_FULL = "Too many pods"


class Room(Struct):
    """A node and what is taken of it; pods are put into it while a plan is made."""

    node: Obj
    free: dict[str, int]
    pods: int = 0
    ports: set[tuple[str, int]] = field(default_factory=set)

    @property
    def name(self) -> str:
        return meta.name(self.node)

    def take(self, requests: Mapping[str, int], ports: Sequence[tuple[str, int]]) -> None:
        """Let a pod in."""
        for name, amount in requests.items():
            self.free[name] = self.free.get(name, 0) - amount
        self.pods += 1
        self.free["pods"] = self.free.get("pods", 0) - 1000
        self.ports.update(ports)


def refusals(
    spec: Obj, requests: Mapping[str, int], ports: Sequence[tuple[str, int]], room: Room
) -> Sequence[str]:
    """Return why a pod cannot go to a node, in the order a scheduler asks; nothing where it can."""
    node = room.node
    node_spec = node.get("spec") or {}
    tolerations = spec.get("tolerations") or ()
    if node_spec.get("unschedulable") and not is_tolerated(
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, tolerations
    ):
        return (_CORDONED,)
    for taint in node_spec.get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not is_tolerated(taint, tolerations):
            return (_TAINTED,)
    if not is_wanted(spec, node):
        return (_ELSEWHERE,)
    if any(port in room.ports for port in ports):
        return (_PORTS,)
    lacking = [_FULL] if room.free.get("pods", 0) < 1000 else []
    lacking += [
        f"Insufficient {name}"
        for name, amount in requests.items()
        if amount and name != "pods" and amount > room.free.get(name, 0)
    ]
    return lacking


def explained(found: Sequence[Sequence[str]]) -> str:
    """Return the message of a scheduler that has found no node, given what each refused the pod for."""
    if not found:
        return "no nodes available to schedule pods"
    counts = Counter(reason for reasons in found for reason in reasons)
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    helps = sum(1 for reasons in found if _could_be_freed(reasons))
    after = Counter({UNHELPFUL: len(found) - helps, NO_VICTIMS: helps})
    preempted = ", ".join(sorted(f"{count} {reason}" for reason, count in after.items() if count))
    available = f"0/{len(found)} nodes are available"
    return f"{available}: {listed}. no new claims to deallocate, preemption: {available}: {preempted}."


def _could_be_freed(reasons: Sequence[str]) -> bool:
    """Say whether ending other pods could make room, as far as a scheduler can tell before it tries."""
    return any(reason in (_PORTS, _FULL) or reason.startswith("Insufficient ") for reason in reasons)


def host_ports(spec: Obj) -> list[tuple[str, int]]:
    """Return the ports of its node that a pod wants for itself."""
    return [
        (port.get("protocol") or "TCP", port["hostPort"])
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def is_tolerated(taint: Obj, tolerations: Sequence[Obj]) -> bool:
    """Say whether a taint is no hindrance to a pod with these tolerations."""
    return any(_tolerates(one, taint) for one in tolerations)


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def is_wanted(spec: Obj, node: Obj) -> bool:
    """Say whether a node is one of those a pod asks for, by its selector and required affinity."""
    labels = meta.labels(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_is_term_met(term, node) for term in required.get("nodeSelectorTerms") or ())


def _is_term_met(term: Obj, node: Obj) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    named = {"metadata.name": meta.name(node)}
    return all(_is_met(one, meta.labels(node)) for one in expressions) and all(
        _is_met(one, named) for one in fields
    )


def _is_met(expression: Obj, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _is_beyond(value, values, 1 if operator == "Gt" else -1)
        case _:
            return False


def _is_beyond(value: str | None, values: Sequence[Any], sign: int) -> bool:
    try:
        return sign * int(value or "") > sign * int(values[0])
    except (ValueError, IndexError):
        return False
