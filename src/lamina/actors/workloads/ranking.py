"""
Which pods go first when there are too many.

In this order: one that no node has taken; one that is not running yet; one
that is not ready; one whose deletion is said to cost less; one whose node has
more of its kind; one that became ready later; one that was restarted more
often; one that is newer. Ages are compared by their order of magnitude, so
that not always the newest goes: pods of about the same age are told apart by
their uid.
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


def first_to_go(pods: Sequence[Obj], many: int, now: datetime, related: Iterable[Obj] = ()) -> list[Obj]:
    """
    Return as many of these pods as are to go, the first of them first.

    `related` are the pods that serve the same purpose, these among them: where
    several of those share a node, one can be spared.
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
    """Return what a pod says its deletion costs; what is no 32-bit integer costs nothing."""
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
    """Return the order of magnitude of an age, less for what is younger."""
    if since is None:
        return -1
    age = (now - since).total_seconds() * 1e6
    return int(age).bit_length() if age > 0 else -1
