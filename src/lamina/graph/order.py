"""
The order of nodes: dependencies first, and otherwise as they are listed.

Deletion goes in waves, from the nodes that nothing depends on to those that everything
depends on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

Dependencies = Mapping[str, Sequence[str]]
"""The dependencies of each node, each of them once, in the order of the list."""


def topological_order(dependencies: Dependencies) -> tuple[str, ...]:
    """Return the nodes with dependencies first; of those that may be next, the first in the list is."""
    positions = {id_: index for index, id_ in enumerate(dependencies)}
    dependents = dependents_of(dependencies)
    waiting = {id_: len(needed) for id_, needed in dependencies.items()}
    possible = [(positions[id_], id_) for id_, count in waiting.items() if not count]
    heapify(possible)
    order: list[str] = []
    while possible:
        _, id_ = heappop(possible)
        order.append(id_)
        for dependent in dependents[id_]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heappush(possible, (positions[dependent], dependent))
    return tuple(order)


def dependents_of(dependencies: Dependencies) -> dict[str, tuple[str, ...]]:
    """Return the direct dependents of each node, in the order of the list."""
    found: dict[str, list[str]] = {id_: [] for id_ in dependencies}
    for id_, needed in dependencies.items():
        for other in needed:
            found[other].append(id_)
    return {id_: tuple(dependents) for id_, dependents in found.items()}


def deletion_waves(dependencies: Dependencies) -> dict[str, int]:
    """
    Return the wave of each node; the highest is deleted first.

    Layers of nodes without remaining dependents are taken off, and the first layer
    has as many as there are layers.
    """
    remaining = {id_: len(found) for id_, found in dependents_of(dependencies).items()}
    layers: list[list[str]] = []
    layer = [id_ for id_, count in remaining.items() if not count]
    while layer:
        layers.append(layer)
        following: list[str] = []
        for id_ in layer:
            for needed in dependencies[id_]:
                remaining[needed] -= 1
                if not remaining[needed]:
                    following.append(needed)
        layer = following
    return {id_: len(layers) - index for index, layer in enumerate(layers) for id_ in layer}


def cycle_in(dependencies: Dependencies) -> tuple[str, ...]:
    """Return a cycle that begins and ends with the same node, its dependency after each; empty without one."""
    done: set[str] = set()
    for first in dependencies:
        path: list[str] = []
        trails = [iter((first,))]
        while trails:
            id_ = next(trails[-1], None)
            if id_ is None:
                trails.pop()
                if path:
                    done.add(path.pop())
            elif id_ in path:
                return (*path[path.index(id_) :], id_)
            elif id_ not in done:
                path.append(id_)
                trails.append(iter(dependencies[id_]))
    return ()
