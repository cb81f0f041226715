"""
The scheduler's filter plugins: whether a pod fits a node, and kube-scheduler's message where it does not.

They cover nodeSelector, required node affinity, taints, unschedulable nodes, host
ports and free resources. There is no scoring.
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

_UNSCHEDULABLE = "node(s) were unschedulable"
_TAINTED = "node(s) had untolerated taint(s)"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_PORTS = "node(s) didn't have free ports for the requested pod ports"
_TOO_MANY_PODS = "Too many pods"


class NodeInfo(Struct):
    """A node with its free resources and used ports; assumed pods are added while a plan is made."""

    node: Obj
    free: dict[str, int]
    pods: int = 0
    ports: set[tuple[str, int]] = field(default_factory=set)

    @property
    def name(self) -> str:
        return meta.name(self.node)

    def assume(self, requests: Mapping[str, int], ports: Sequence[tuple[str, int]]) -> None:
        """Assume a pod on this node."""
        for name, amount in requests.items():
            self.free[name] = self.free.get(name, 0) - amount
        self.pods += 1
        self.free["pods"] = self.free.get("pods", 0) - 1000
        self.ports.update(ports)


def unfit_reasons(
    spec: Obj, requests: Mapping[str, int], ports: Sequence[tuple[str, int]], node_info: NodeInfo
) -> Sequence[str]:
    """Return the reasons why a pod does not fit a node, in the order of kube-scheduler's filters; none where it fits."""
    node = node_info.node
    node_spec = node.get("spec") or {}
    tolerations = spec.get("tolerations") or ()
    if node_spec.get("unschedulable") and not is_tolerated(
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, tolerations
    ):
        return (_UNSCHEDULABLE,)
    for taint in node_spec.get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not is_tolerated(taint, tolerations):
            return (_TAINTED,)
    if not matches_affinity(spec, node):
        return (_AFFINITY,)
    if any(port in node_info.ports for port in ports):
        return (_PORTS,)
    lacking = [_TOO_MANY_PODS] if node_info.free.get("pods", 0) < 1000 else []
    lacking += [
        f"Insufficient {name}"
        for name, amount in requests.items()
        if amount and name != "pods" and amount > node_info.free.get(name, 0)
    ]
    return lacking


def fit_error(found: Sequence[Sequence[str]]) -> str:
    """Return kube-scheduler's message for a pod that fits no node, given the reasons of each."""
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
    """Say whether preemption could help on a node with these reasons."""
    return any(reason in (_PORTS, _TOO_MANY_PODS) or reason.startswith("Insufficient ") for reason in reasons)


def host_ports(spec: Obj) -> list[tuple[str, int]]:
    """Return the host ports of a pod."""
    return [
        (port.get("protocol") or "TCP", port["hostPort"])
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def is_tolerated(taint: Obj, tolerations: Sequence[Obj]) -> bool:
    """Say whether one of these tolerations tolerates a taint."""
    return any(_tolerates(one, taint) for one in tolerations)


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def matches_affinity(spec: Obj, node: Obj) -> bool:
    """Say whether a node matches a pod's nodeSelector and required node affinity."""
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
