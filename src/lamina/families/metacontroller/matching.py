"""
Who may adopt whom, found without looking at everybody.

A selector nearly always names a label and its value. Parents are found by the
first that theirs names, orphans by each label they have, both in their own
namespace; only a selector that names none is compared with all there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lamina.core.world import World
from lamina.errors import BadRequest
from lamina.families.metacontroller.names import CONTROLLER_UID
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import GroupKind, Obj


def adopters(world: World, kind: Kind, orphan: Obj) -> Iterator[Obj]:
    """Yield the parents of a kind whose selector may match an orphan's labels."""
    reach = meta.namespace(orphan) if kind.namespaced else ""
    labels = ["", *(f"{key}={value}" for key, value in meta.labels(orphan).items())]
    for label in labels:
        yield from world.found(kind.group_kind, _by_selector, f"{reach}/{label}")


def owner_named(world: World, kind: Kind, orphan: Obj) -> Iterator[Obj]:
    """Yield the parent that an orphan names by its uid, where selectors are generated."""
    uid = meta.labels(orphan).get(CONTROLLER_UID)
    yield from world.found(kind.group_kind, _by_uid, uid) if uid else ()


def orphans(world: World, kind: GroupKind, namespace: str, selector: LabelSelector) -> Iterator[Obj]:
    """Yield the objects of a kind that nobody controls, match a selector, and stay; without a namespace, of all."""
    named = _named(selector)
    there: Iterable[Obj] = (
        chain.from_iterable(world.found(kind, _by_label, f"{namespace}/{label}") for label in named)
        if named
        else world.unclaimed(kind, namespace or None)
    )
    for obj in there:
        if selector.matches(meta.labels(obj)) and not meta.is_deleting(obj):
            yield obj


def _named(selector: LabelSelector) -> tuple[str, ...]:
    """Return the labels of which a selector wants one, as `key=value`; none where it names no values."""
    for key, operator, values in selector.requirements:
        if operator in ("=", "==", "in"):
            return tuple(f"{key}={value}" for value in values)
    return ()


def _by_selector(parent: Obj) -> Iterator[str]:
    try:
        selector = from_object((parent.get("spec") or {}).get("selector"))
    except (BadRequest, AttributeError, TypeError):
        # It says so itself; nobody else's orphan is the place to.
        return
    for label in _named(selector) or ("",) if selector.requirements else ():
        yield f"{meta.namespace(parent)}/{label}"


def _by_uid(parent: Obj) -> Iterator[str]:
    yield meta.uid(parent)


def _by_label(child: Obj) -> Iterator[str]:
    if meta.controller_of(child) is not None:
        return
    namespace = meta.namespace(child)
    for key, value in meta.labels(child).items():
        yield f"/{key}={value}"
        if namespace:
            yield f"{namespace}/{key}={value}"
