"""
Indexes by label and by selector: which objects a selector matches, and which selectors match an object.

Objects are indexed by each of their labels. An owner is indexed by the labels of
which its selector requires one; a selector that requires none is indexed under
every label. So neither a change of an object nor a lookup by a selector costs
more than the few candidates it may concern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

from lamina.core.model.world import Index, World
from lamina.errors import BadRequest
from lamina.objects import meta
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import GroupKind, Obj

_ANY = "*"
_FEW = 16
"""How many orphans are compared one by one before an index of their labels pays."""


def labelled(namespace: str, key: str, value: str) -> str:
    """Return the key under which `by_label` has the objects with a label."""
    return f"{namespace}/{key}={value}"


def by_label(obj: Obj) -> Iterator[str]:
    """Index an object by each of its labels, in its namespace."""
    namespace = meta.namespace(obj)
    for key, value in meta.labels(obj).items():
        yield labelled(namespace, key, value)


def _orphans_by_label(obj: Obj) -> Iterator[str]:
    """Index an object without controller by each of its labels, in its namespace and in all of them."""
    if meta.controller_of(obj) is not None:
        return
    namespace = meta.namespace(obj)
    for key, value in meta.labels(obj).items():
        yield labelled("", key, value)
        if namespace:
            yield labelled(namespace, key, value)


def _required(namespace: str, selector: LabelSelector) -> tuple[str, ...]:
    """Return the keys of the labels of which a selector requires one; none where it requires no value."""
    for key, operator, values in selector.requirements:
        if operator in ("=", "==", "in"):
            return tuple(labelled(namespace, key, value) for value in values)
    return ()


def selector_keys(namespace: str, selector: LabelSelector) -> tuple[str, ...]:
    """Return the keys under which the owner of a selector is indexed, for `selecting`."""
    return _required(namespace, selector) or (labelled(namespace, _ANY, _ANY),)


def by_spec_selector(owner: Obj) -> Iterator[str]:
    """Index an owner by its `spec.selector`; one that is empty or cannot be read selects nothing."""
    try:
        selector = from_object((owner.get("spec") or {}).get("selector"))
    except (BadRequest, AttributeError, TypeError):
        return
    if selector.requirements:
        yield from selector_keys(meta.namespace(owner), selector)


def by_uid(obj: Obj) -> Iterator[str]:
    yield meta.uid(obj)


def selecting(
    world: World,
    kind: GroupKind,
    by: Index,
    selector_of: Callable[[Obj], LabelSelector | None],
    namespace: str,
    labels: Mapping[str, str],
) -> Iterator[Obj]:
    """Yield the owners of a kind in a namespace, indexed as `selector_keys` says by `by`, that select labels."""
    for key, value in (*labels.items(), (_ANY, _ANY)):
        for one in world.by_index(kind, by, labelled(namespace, key, value)):
            selector = selector_of(one)
            if selector is not None and selector.matches(labels):
                yield one


def selected(world: World, kind: GroupKind, namespace: str, selector: LabelSelector) -> list[Obj]:
    """Return the objects of a kind in a namespace that a selector matches, in the order of their names."""
    fewest: Iterable[Obj] | None = None
    count = 0
    for requirement in selector.requirements:
        if requirement.operator in ("=", "=="):
            key = labelled(namespace, requirement.key, requirement.values[0])
            found = world.by_index(kind, by_label, key)
            if fewest is None or len(found) < count:
                fewest, count = found, len(found)
    if fewest is None:
        fewest = world.every(kind, namespace)
    return sorted((one for one in fewest if selector.matches(meta.labels(one))), key=meta.name)


def orphans(world: World, kind: GroupKind, namespace: str, selector: LabelSelector) -> Iterator[Obj]:
    """Yield the objects without controller that a selector matches and that are not being deleted; without a namespace, of all."""
    required = _required(namespace, selector)
    there: Iterable[Obj]
    if not required:
        there = world.unclaimed(kind, namespace or None)
    elif namespace and len(few := world.unclaimed(kind, namespace)) <= _FEW:
        there = few
    else:
        there = chain.from_iterable(world.by_index(kind, _orphans_by_label, key) for key in required)
    for obj in there:
        if selector.matches(meta.labels(obj)) and not meta.is_deleting(obj):
            yield obj
