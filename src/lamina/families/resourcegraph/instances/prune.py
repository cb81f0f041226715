"""
Prunes the children that an instance is not to have any more, and keeps its inventory.

Nothing is pruned before every node is rendered and every child is as desired, nor before the
instance, its definition and the external objects that nodes select are read live: a stale cache
may not have the edit that a child comes from, nor the child. The inventory shrinks by kinds and namespaces
in which live lists find no member, and by kinds whose CRDs are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct

from lamina.core.model.plan import Delete, Propagation, Stage
from lamina.core.model.queries import Answer, Answers, Listed, Query, ReadAll
from lamina.families.resourcegraph.instances.applyset import (
    Inventory,
    applyset_id,
    inventory,
    membership,
    readable,
    recorded,
    what_is_wrong,
)
from lamina.families.resourcegraph.instances.children import node_of, order_of
from lamina.families.resourcegraph.instances.confirm import check_both
from lamina.families.resourcegraph.instances.node_steps import NodeStep, Phase, identity, live_refs
from lamina.families.resourcegraph.instances.view import View
from lamina.families.resourcegraph.labels import PART_OF
from lamina.graph.graph import Graph
from lamina.objects import meta
from lamina.objects.selectors import from_labels
from lamina.objects.types import GroupKind, Obj


class Pruning(Struct, frozen=True, kw_only=True):
    """
    What is pruned next, wave by wave, and the inventory to record; `left` are the children that are to go.

    Without an inventory the recorded one stays.
    """

    stages: tuple[Stage, ...] = ()
    left: tuple[Obj, ...] = ()
    shrunk: Inventory | None = None
    queries: tuple[Query, ...] = ()
    is_stale: bool = False
    """Whether the cache is older than what was read live."""


def planned(view: View, steps: Sequence[NodeStep]) -> Inventory:
    """Return the inventory of the children that an instance is to have, as far as it is known."""
    found: list[tuple[GroupKind, str]] = []
    for one in steps:
        if one.node.kind.is_external or one.phase is Phase.SKIPPED:
            continue
        if one.is_rendered:
            refs = (child.desired.ref for child in one.children)
            found += [(GroupKind(ref.group, ref.kind), ref.namespace) for ref in refs]
        else:
            found.append((one.node.target.group_kind, ""))
    return inventory(view.obj, found)


def superset(view: View, steps: Sequence[NodeStep]) -> Inventory:
    """
    Return the inventory to record before anything is applied: the recorded one, and that of what is to be.

    Of one that was edited, the kinds that are served stay; those of the children that it has are added.
    """
    known = readable(view.obj)
    if what_is_wrong(view.obj):
        served = frozenset(one for one in known.kinds if view.kinds.preferred(one) is not None)
        found = inventory(view.obj, ((meta.group_kind(one), meta.namespace(one)) for one in view.children))
        known = found | Inventory(served, known.namespaces)
    return known | planned(view, steps)


def prune(view: View, graph: Graph, steps: Sequence[NodeStep], answers: Answers) -> Pruning:
    """Return what is pruned next, and what has to be asked first."""
    exact = planned(view, steps)
    known = recorded(view.obj)
    cached = _extra((one for one in view.children if meta.group_kind(one) in known.kinds), steps)
    # A namespace is not in the inventory of any one kind: a member of each may be in one that is dropped.
    dropped = known.kinds if known.namespaces - exact.namespaces else known.kinds - exact.kinds
    if not cached and known == exact:
        return Pruning()
    if any(not one.is_rendered or any(not child.is_same for child in one.children) for one in steps):
        # Which children a node that is not rendered is to have is not known: those that it has may stay.
        unknown = {one.node.id for one in steps if not one.is_rendered}
        return Pruning(left=tuple(one for one in cached if node_of(one) not in unknown))
    lists = lists_of(view, dropped)
    check = check_both(view, answers)
    if queries := (*check.pending, *(one for one in lists if one not in answers)):
        return Pruning(queries=queries, left=tuple(cached))
    if not check.is_confirmed:
        return Pruning(left=tuple(cached), is_stale=True)
    found = {meta.uid(one): one for one in (*cached, *_extra(listed(view, lists, answers), steps))}
    extra = tuple(found.values())
    if extra:
        selecting = _selecting(steps)
        if queries := tuple(listing for listing, _ in selecting if listing not in answers):
            return Pruning(queries=queries, left=extra)
        if not all(_is_same(answers.get(listing), observed) for listing, observed in selecting):
            return Pruning(left=extra, is_stale=True)
        return Pruning(stages=tuple(_waves(graph, extra)), left=extra)
    if kept := unlisted(view, dropped, answers):
        exact = Inventory(exact.kinds | kept, exact.namespaces | known.namespaces)
    return Pruning(shrunk=exact)


def lists_of(view: View, kinds: Iterable[GroupKind]) -> tuple[ReadAll, ...]:
    """Return the live lists of the members of the ApplySet; a kind that is not served has none."""
    labels = from_labels({PART_OF: applyset_id(view.obj)})
    served = (view.kinds.preferred(one) for one in sorted(kinds))
    return tuple(ReadAll(one, "", labels=labels) for one in served if one is not None)


def listed(view: View, lists: Iterable[ReadAll], answers: Answers) -> list[Obj]:
    """Return the members of the ApplySet that live lists have found."""
    found, is_member = (answers.get(one) for one in lists), membership(view.obj)
    return [obj for answer in found if isinstance(answer, Listed) for obj in answer.objects if is_member(obj)]


def unlisted(view: View, kinds: Iterable[GroupKind], answers: Answers) -> frozenset[GroupKind]:
    """Return the kinds that are not served although their objects may exist: they are not gone with a CRD."""
    known = frozenset(kinds)
    found = {one.kind.group_kind for one in lists_of(view, known) if isinstance(answers.get(one), Listed)}
    return frozenset(one for one in known - found if not view.has_lost_crd(one))


def _selecting(steps: Sequence[NodeStep]) -> list[tuple[ReadAll, tuple[Obj, ...]]]:
    """Return the live lists of the external collections that nodes depend on, and the objects that were observed."""
    needed = {id for one in steps for id in one.node.dependencies}
    return [(one.listing, one.observed) for one in steps if one.listing is not None and one.node.id in needed]


def _is_same(live: Answer | None, observed: Iterable[Obj]) -> bool:
    return isinstance(live, Listed) and _versions(live.objects) == _versions(observed)


def _versions(objects: Iterable[Obj]) -> set[tuple[str, str]]:
    return {(meta.uid(one), meta.resource_version(one)) for one in objects}


def _extra(members: Iterable[Obj], steps: Sequence[NodeStep]) -> list[Obj]:
    wanted = set(map(identity, live_refs(steps)))
    return [one for one in members if identity(meta.ref(one)) not in wanted]


def _waves(graph: Graph, extra: Sequence[Obj]) -> Iterable[Stage]:
    """Yield the deletions, dependents first: children of nodes that are gone, and then by the order of the nodes."""
    positions = {id: place for place, id in enumerate(graph.order)}

    def place(child: Obj) -> tuple[int, int]:
        return positions.get(node_of(child), len(positions)), order_of(child)

    for _, wave in groupby(sorted(extra, key=place, reverse=True), key=place):
        actions = tuple(deletion(one) for one in wave if not meta.is_deleting(one))
        if actions:
            yield Stage("prune", actions)


def deletion(child: Obj) -> Delete:
    """Return the deletion of a child, with its own dependents, whatever its version."""
    return Delete(ref=meta.ref(child), uid=meta.uid(child), propagation=Propagation.BACKGROUND)
