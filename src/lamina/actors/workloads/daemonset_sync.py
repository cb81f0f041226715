"""
The pods of a DaemonSet to create and to delete.

First every node gets what it should have: a pod where one should run, none where
none may run, and at most one, or two during a surge. Only when every node is in
that state are pods of an old template replaced:

-   without a surge, the old pod is deleted first. Unavailable ones are deleted at
    once; of the others as many as may be unavailable.
-   with a surge, the new pod is created first, on as many nodes as may have two,
    and the old one is deleted when the new one is available.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from lamina.actors.workloads import pods
from lamina.actors.workloads.daemonset_nodes import Eligibility, eligibility, is_updated, node_of
from lamina.actors.workloads.job_pods import finished_at
from lamina.actors.workloads.revisions import HASH_LABEL
from lamina.objects import meta
from lamina.objects.types import Obj

MOST_AT_ONCE = 250

_PAUSE = timedelta(seconds=1)
"""The backoff before a failed pod is deleted, so that one that always fails is not recreated constantly."""


class SyncInput(Struct, frozen=True, kw_only=True):
    """A DaemonSet, the nodes, its pods by node, and the hash of its newest template."""

    daemon_set: Obj
    nodes: Mapping[str, Obj]
    pods: Mapping[str, Sequence[Obj]]
    revision_hash: str
    now: datetime

    def eligibility(self, name: str) -> Eligibility:
        node = self.nodes.get(name)
        return eligibility(self.daemon_set, node) if node is not None else Eligibility.MUST_NOT_RUN

    def is_available(self, pod: Obj) -> bool:
        return pods.is_available(pod, self.daemon_set["spec"].get("minReadySeconds") or 0, self.now)


class PodChanges(Struct):
    """The nodes that need a pod, the pods to delete, and those with events."""

    nodes: list[str] = field(default_factory=list)
    deleted: list[Obj] = field(default_factory=list)
    failed: list[tuple[str, Obj]] = field(default_factory=list)
    succeeded: list[tuple[str, Obj]] = field(default_factory=list)
    wait: timedelta | None = None

    @property
    def is_empty(self) -> bool:
        return not self.nodes and not self.deleted


def by_node(members: Sequence[Obj]) -> dict[str, list[Obj]]:
    """Return the pods of each node, oldest first, without finished ones that are being deleted."""
    found: dict[str, list[Obj]] = {}
    for pod in sorted(members, key=_age):
        node = node_of(pod)
        if node is not None and not (pods.is_finished(pod) and meta.is_deleting(pod)):
            found.setdefault(node, []).append(pod)
    return found


def _age(pod: Obj) -> tuple[bool, str, bool, str]:
    created = meta.metadata(pod).get("creationTimestamp") or ""
    # Of two that were created in the same second, a ready one comes first.
    return not pod["spec"].get("nodeName"), created, not pods.is_ready(pod), meta.name(pod)


def pod_changes(sync: SyncInput) -> PodChanges:
    """Return the pods of a DaemonSet to create and to delete."""
    found = _manage(sync)
    strategy = sync.daemon_set["spec"].get("updateStrategy") or {}
    if found.is_empty and strategy.get("type") != "OnDelete":
        wanted = sum(sync.eligibility(name) is Eligibility.SHOULD_RUN for name in sync.nodes)
        surge, unavailable = limits(sync.daemon_set, wanted)
        wait = found.wait
        found = _surge(sync, surge, wanted) if surge else _replace(sync, unavailable)
        found.wait = wait
    found.nodes, found.deleted = found.nodes[:MOST_AT_ONCE], found.deleted[:MOST_AT_ONCE]
    return found


def limits(daemon_set: Obj, wanted: int) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers of nodes."""
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", 0), wanted)
    unavailable = _share(rolling.get("maxUnavailable", 1), wanted)
    return surge, unavailable if surge or unavailable else 1


def _share(value: int | str, total: int) -> int:
    if isinstance(value, str):
        return math.ceil(int(value.removesuffix("%")) * total / 100)
    return value


def _manage(sync: SyncInput) -> PodChanges:
    found = PodChanges()
    for name in sorted(sync.nodes):
        there, wanted = sync.pods.get(name, ()), sync.eligibility(name)
        if wanted is Eligibility.MUST_NOT_RUN:
            found.deleted += [pod for pod in there if not meta.is_deleting(pod)]
        elif not there:
            found.nodes += [name] if wanted is Eligibility.SHOULD_RUN else []
        else:
            _manage_node(sync, name, wanted, found)
    for name in sorted(set(sync.pods) - set(sync.nodes)):
        # A pending pod for a deleted node is never scheduled, and no other controller deletes it.
        unplaced = [pod for pod in sync.pods[name] if not pod["spec"].get("nodeName")]
        found.deleted += [pod for pod in unplaced if not meta.is_deleting(pod)]
    return found


def _manage_node(sync: SyncInput, name: str, wanted: Eligibility, found: PodChanges) -> None:
    running: list[Obj] = []
    for pod in sync.pods[name]:
        if meta.is_deleting(pod):
            continue
        match pods.phase(pod):
            case "Failed":
                left = finished_at(pod) + _PAUSE - sync.now
                if left > timedelta(0):
                    found.wait = min(left, found.wait or left)
                    continue
                found.failed.append((name, pod))
                found.deleted.append(pod)
            case "Succeeded":
                found.succeeded.append((name, pod))
                found.deleted.append(pod)
            case _:
                running.append(pod)
    if not limits(sync.daemon_set, 1)[0]:
        found.deleted += running[1:]
    elif not running:
        found.nodes += [name] if wanted is Eligibility.SHOULD_RUN else []
    else:
        found.deleted += _beyond_two(sync, running)


def _beyond_two(sync: SyncInput, running: Sequence[Obj]) -> list[Obj]:
    """Return the surplus pods of a node where an old pod may stay until a new one is available."""
    new = [pod for pod in running if meta.labels(pod).get(HASH_LABEL) == sync.revision_hash]
    old = [pod for pod in running if pod not in new]
    gone = new[1:] + old[1:]
    if new and old and (not pods.is_ready(old[0]) or sync.is_available(new[0])):
        gone.append(old[0])
    return gone


def _old_and_new(sync: SyncInput, there: Sequence[Obj]) -> tuple[list[Obj], list[Obj]]:
    staying = [pod for pod in there if not meta.is_deleting(pod)]
    new = [pod for pod in staying if is_updated(sync.daemon_set, pod, sync.revision_hash)]
    return [pod for pod in staying if pod not in new], new


def _nodes(sync: SyncInput) -> list[str]:
    """Return the nodes that have a daemon pod, or should."""
    return sorted(
        {*sync.pods, *(name for name in sync.nodes if sync.eligibility(name) is Eligibility.SHOULD_RUN)}
    )


def _replace(sync: SyncInput, most_unavailable: int) -> PodChanges:
    at_once: list[Obj] = []
    candidates: list[Obj] = []
    unavailable = 0
    for name in _nodes(sync):
        old, new = _old_and_new(sync, sync.pods.get(name, ()))
        if len(old) + len(new) != 1:
            unavailable += 1
        elif new:
            unavailable += not sync.is_available(new[0])
        elif not sync.is_available(old[0]):
            at_once += old
            unavailable += 1
        else:
            candidates += old
    return PodChanges(deleted=at_once + candidates[: max(most_unavailable - unavailable, 0)])


def _surge(sync: SyncInput, most: int, wanted: int) -> PodChanges:
    done: list[Obj] = []
    misplaced: list[Obj] = []
    at_once: list[str] = []
    candidates: list[str] = []
    surging = available = 0
    for name in _nodes(sync):
        old, new = _old_and_new(sync, sync.pods.get(name, ()))
        if len(old) > 1 or len(new) > 1:
            surging += 1
            continue
        available += any(sync.is_available(pod) for pod in (old or new))
        if not old:
            continue
        if new:
            if sync.is_available(new[0]):
                done += old
            else:
                surging += 1
        elif sync.eligibility(name) is not Eligibility.SHOULD_RUN:
            (misplaced if sync.is_available(old[0]) else done).append(old[0])
        else:
            (candidates if sync.is_available(old[0]) else at_once).append(name)
    spare = max(available - wanted, 0)
    return PodChanges(
        nodes=at_once + candidates[: max(most - surging, 0)],
        deleted=done + misplaced[:spare],
    )
