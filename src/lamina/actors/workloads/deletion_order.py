"""
The order in which surplus pods are deleted (ActivePodsWithRanks).

In this order: unassigned pods; pods that are not running; pods that are not
ready; pods with a lower deletion cost; pods whose node has more related ones;
pods that became ready later; pods with more restarts; newer pods. Ages are
compared by their order of magnitude, so that the newest is not always first:
pods of about the same age are ordered by uid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from lamina.actors.workloads.pods import is_active, phase, ready_since
from lamina.objects import meta
from lamina.objects.times import moment
from lamina.objects.types import Obj

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_NOT_READY = -2


def pods_to_delete(pods: Sequence[Obj], many: int, now: datetime, related: Iterable[Obj] = ()) -> list[Obj]:
    """
    Return as many of these pods as are to be deleted, in order.

    `related` are the pods of all sets with the same owner, these among them:
    pods on nodes with several of them are deleted first.
    """
    if many >= len(pods):
        return list(pods)
    on_node = Counter(_node(pod) for pod in related if is_active(pod))
    return sorted(pods, key=lambda pod: _rank(pod, on_node[_node(pod)], now))[:many]


def _rank(pod: Obj, neighbours: int, now: datetime) -> tuple[Any, ...]:
    status = pod.get("status") or {}
    ready = _is_ready(status)
    return (
        bool(_node(pod)),
        _PHASES.get(phase(pod), 0),
        ready,
        deletion_cost(pod),
        -neighbours,
        _magnitude(ready_since(pod), now) if ready else _NOT_READY,
        -max((one.get("restartCount") or 0 for one in status.get("containerStatuses") or ()), default=0),
        _magnitude(moment(meta.metadata(pod).get("creationTimestamp")), now),
        meta.uid(pod),
    )


def deletion_cost(pod: Obj) -> int:
    """Return the deletion cost of a pod; 0 where it is not a 32-bit integer."""
    written = meta.annotations(pod).get(DELETION_COST, "0")
    digits = written[1:] if written.startswith("-") else written
    if not digits.isascii() or not digits.isdigit() or (len(digits) > 1 and digits.startswith("0")):
        return 0
    cost = int(written)
    return cost if -(2**31) <= cost < 2**31 else 0


def _node(pod: Obj) -> str:
    return (pod.get("spec") or {}).get("nodeName") or ""


def _is_ready(status: Obj) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())


def _magnitude(since: datetime | None, now: datetime) -> int:
    """Return the order of magnitude of an age, lower for younger pods."""
    if since is None:
        return -1
    age = (now - since).total_seconds() * 1e6
    return int(age).bit_length() if age > 0 else -1
