"""
Which pods of a daemon set are made and which go.

First every node gets what it should have: a pod where one belongs and none is,
nothing where none belongs, and no more than one, or two while a new one takes
over from an old. Only when every node is in order are pods of an old template
replaced:

-   without a surge, the old pod goes first. One that is not available goes at
    once, since nothing is lost; of the others as many as may be unavailable.
-   with a surge, the new pod comes first, on as many nodes as may have two, and
    the old one goes when the new one is available.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct, field

from lamina.actors.workloads import pods
from lamina.actors.workloads.daemonset_nodes import Standing, is_updated, node_of, standing
from lamina.actors.workloads.job_pods import finished_at
from lamina.actors.workloads.revisions import HASH_LABEL
from lamina.objects import meta
from lamina.objects.types import Obj

MOST_AT_ONCE = 250

_PAUSE = timedelta(seconds=1)
"""How long a pod that failed is left alone, so that one that always fails is not made all the time."""


class Situation(Struct, frozen=True, kw_only=True):
    """A daemon set, the nodes, its pods by node, and the mark of its newest template."""

    daemon_set: Obj
    nodes: Mapping[str, Obj]
    pods: Mapping[str, Sequence[Obj]]
    mark: str
    now: datetime

    def standing(self, name: str) -> Standing:
        node = self.nodes.get(name)
        return standing(self.daemon_set, node) if node is not None else Standing.REFUSES

    def is_available(self, pod: Obj) -> bool:
        return pods.is_available(pod, self.daemon_set["spec"].get("minReadySeconds") or 0, self.now)


class Moves(Struct):
    """The nodes to make a pod for, the pods to delete, and what to say about some of those."""

    nodes: list[str] = field(default_factory=list)
    deleted: list[Obj] = field(default_factory=list)
    failed: list[tuple[str, Obj]] = field(default_factory=list)
    succeeded: list[tuple[str, Obj]] = field(default_factory=list)
    wait: timedelta | None = None

    @property
    def is_nothing(self) -> bool:
        return not self.nodes and not self.deleted


def by_node(members: Sequence[Obj]) -> dict[str, list[Obj]]:
    """Return the pods at each node, oldest first; those that have finished and are going are no longer counted."""
    found: dict[str, list[Obj]] = {}
    for pod in sorted(members, key=_age):
        node = node_of(pod)
        if node is not None and not (pods.is_finished(pod) and meta.is_deleting(pod)):
            found.setdefault(node, []).append(pod)
    return found


def _age(pod: Obj) -> tuple[bool, str, bool, str]:
    created = meta.metadata(pod).get("creationTimestamp") or ""
    # Of two that were made in the same second, the one that serves was there first.
    return not pod["spec"].get("nodeName"), created, not pods.is_ready(pod), meta.name(pod)


def moves(seen: Situation) -> Moves:
    """Return what happens to the pods of a daemon set."""
    found = _put_in_order(seen)
    strategy = seen.daemon_set["spec"].get("updateStrategy") or {}
    if found.is_nothing and strategy.get("type") != "OnDelete":
        wanted = sum(seen.standing(name) is Standing.RUNS for name in seen.nodes)
        surge, unavailable = limits(seen.daemon_set, wanted)
        wait = found.wait
        found = _surge(seen, surge, wanted) if surge else _replace(seen, unavailable)
        found.wait = wait
    found.nodes, found.deleted = found.nodes[:MOST_AT_ONCE], found.deleted[:MOST_AT_ONCE]
    return found


def limits(daemon_set: Obj, wanted: int) -> tuple[int, int]:
    """Return on how many nodes there may be two pods, and on how many none, while pods are replaced."""
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


def _put_in_order(seen: Situation) -> Moves:
    found = Moves()
    for name in sorted(seen.nodes):
        there, wanted = seen.pods.get(name, ()), seen.standing(name)
        if wanted is Standing.REFUSES:
            found.deleted += [pod for pod in there if not meta.is_deleting(pod)]
        elif not there:
            found.nodes += [name] if wanted is Standing.RUNS else []
        else:
            _put_node_in_order(seen, name, wanted, found)
    for name in sorted(set(seen.pods) - set(seen.nodes)):
        # A pod for a node that is gone is never scheduled, and nobody else would delete it.
        unplaced = [pod for pod in seen.pods[name] if not pod["spec"].get("nodeName")]
        found.deleted += [pod for pod in unplaced if not meta.is_deleting(pod)]
    return found


def _put_node_in_order(seen: Situation, name: str, wanted: Standing, found: Moves) -> None:
    running: list[Obj] = []
    for pod in seen.pods[name]:
        if meta.is_deleting(pod):
            continue
        match pods.phase(pod):
            case "Failed":
                left = finished_at(pod) + _PAUSE - seen.now
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
    if not limits(seen.daemon_set, 1)[0]:
        found.deleted += running[1:]
    elif not running:
        found.nodes += [name] if wanted is Standing.RUNS else []
    else:
        found.deleted += _beyond_two(seen, running)


def _beyond_two(seen: Situation, running: Sequence[Obj]) -> list[Obj]:
    """Return what is too much where an old pod may stay until a new one takes over."""
    new = [pod for pod in running if meta.labels(pod).get(HASH_LABEL) == seen.mark]
    old = [pod for pod in running if pod not in new]
    gone = new[1:] + old[1:]
    if new and old and (not pods.is_ready(old[0]) or seen.is_available(new[0])):
        gone.append(old[0])
    return gone


def _old_and_new(seen: Situation, there: Sequence[Obj]) -> tuple[list[Obj], list[Obj]]:
    staying = [pod for pod in there if not meta.is_deleting(pod)]
    new = [pod for pod in staying if is_updated(seen.daemon_set, pod, seen.mark)]
    return [pod for pod in staying if pod not in new], new


def _nodes(seen: Situation) -> list[str]:
    """Return the nodes that have a pod, or should."""
    return sorted({*seen.pods, *(name for name in seen.nodes if seen.standing(name) is Standing.RUNS)})


def _replace(seen: Situation, most_unavailable: int) -> Moves:
    at_once: list[Obj] = []
    candidates: list[Obj] = []
    unavailable = 0
    for name in _nodes(seen):
        old, new = _old_and_new(seen, seen.pods.get(name, ()))
        if len(old) + len(new) != 1:
            unavailable += 1
        elif new:
            unavailable += not seen.is_available(new[0])
        elif not seen.is_available(old[0]):
            at_once += old
            unavailable += 1
        else:
            candidates += old
    return Moves(deleted=at_once + candidates[: max(most_unavailable - unavailable, 0)])


def _surge(seen: Situation, most: int, wanted: int) -> Moves:
    done: list[Obj] = []
    misplaced: list[Obj] = []
    at_once: list[str] = []
    candidates: list[str] = []
    surging = available = 0
    for name in _nodes(seen):
        old, new = _old_and_new(seen, seen.pods.get(name, ()))
        if len(old) > 1 or len(new) > 1:
            surging += 1
            continue
        available += any(seen.is_available(pod) for pod in (old or new))
        if not old:
            continue
        if new:
            if seen.is_available(new[0]):
                done += old
            else:
                surging += 1
        elif seen.standing(name) is not Standing.RUNS:
            (misplaced if seen.is_available(old[0]) else done).append(old[0])
        else:
            (candidates if seen.is_available(old[0]) else at_once).append(name)
    spare = max(available - wanted, 0)
    return Moves(
        nodes=at_once + candidates[: max(most - surging, 0)],
        deleted=done + misplaced[:spare],
    )
