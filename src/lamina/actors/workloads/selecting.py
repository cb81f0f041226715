"""
Who selects whom.

Pods are found by each label they have. Whoever selects pods is found by one
label it insists on, the first by name; one that insists on none is found
beside all of them. So neither a pod's change nor a look at a service costs more
than those it may concern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lamina.actors.workloads.pods import POD
from lamina.core.world import Change, Index, World
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector
from lamina.objects.types import GroupKind, Obj

_ANY = "*"


def by_label(obj: Obj) -> Iterator[str]:
    """Find an object by each of its labels, in its namespace."""
    namespace = meta.namespace(obj)
    for key, value in meta.labels(obj).items():
        yield labelled(namespace, key, value)


def labelled(namespace: str, key: str, value: str) -> str:
    """Return the key under which `by_label` has the objects with a label."""
    return f"{namespace}/{key}={value}"


def insisted(namespace: str, selector: LabelSelector) -> str:
    """Return the one key under which a selector's owner is found."""
    for requirement in selector.requirements:
        if requirement.operator in ("=", "==") or (
            requirement.operator == "in" and len(requirement.values) == 1
        ):
            return labelled(namespace, requirement.key, requirement.values[0])
    return f"{namespace}/{_ANY}"


def selected(world: World, namespace: str, selector: LabelSelector) -> list[Obj]:
    """Return the pods in a namespace that a selector selects, in the order of their names."""
    fewest: Iterable[Obj] | None = None
    many = 0
    for requirement in selector.requirements:
        if requirement.operator in ("=", "=="):
            found = world.found(POD, by_label, labelled(namespace, requirement.key, requirement.values[0]))
            if fewest is None or len(found) < many:
                fewest, many = found, len(found)
    if fewest is None:
        fewest = world.every(POD, namespace)
    return sorted((pod for pod in fewest if selector.matches(meta.labels(pod))), key=meta.name)


def selecting(
    world: World, kind: GroupKind, by: Index, selector_of: Callable[[Obj], LabelSelector | None], pod: Obj
) -> Iterator[Obj]:
    """Yield the objects of a kind, found as `insisted` says by `by`, that select a pod."""
    labels = meta.labels(pod)
    for key in (*by_label(pod), f"{meta.namespace(pod)}/{_ANY}"):
        for one in world.found(kind, by, key):
            selector = selector_of(one)
            if selector is not None and selector.matches(labels):
                yield one


def sides(change: Change) -> tuple[Obj, ...]:
    """Return an object as it was and as it is, as far as it was and is."""
    return tuple(one for one in (change.before, change.after) if one is not None)


def same(change: Change, told: Callable[[Obj], Any]) -> bool:
    """Say whether a change left alone what `told` tells of an object."""
    before, after = change.before, change.after
    return before is not None and after is not None and bool(told(before) == told(after))


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """Return the merge patch that makes one map of labels or annotations another."""
    patch: dict[str, str | None] = {key: value for key, value in new.items() if old.get(key) != value}
    return patch | {key: None for key in old if key not in new}
