"""The scheduler of placements, as a value."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.world import Change, World
from lamina.families.manifestwork.names import (
    CLUSTER,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    DECISION,
    PLACEMENT,
    PLACEMENT_VERSION,
    SCORE,
)
from lamina.families.manifestwork.placement.plan import View, by_its_placement, gather, plan
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

_TOGETHER = timedelta(milliseconds=50)
"""Clusters join and change by the hundred, and one look is enough for all of them."""


def _every_placement(world: World, change: Change) -> Iterable[Ref]:
    return [meta.ref(one) for one in world.every(PLACEMENT)]


def _bearing(cluster: Obj) -> object:
    """Return what a choice may depend on; that a cluster was heard of again is not in it."""
    status = cluster.get("status") or {}
    known = {field: value for field, value in status.items() if field != "conditions"}
    said = [(one.get("type"), one.get("status"), one.get("reason")) for one in status.get("conditions") or ()]
    return (
        meta.labels(cluster),
        meta.annotations(cluster),
        cluster.get("spec"),
        known,
        said,
        meta.is_deleting(cluster),
    )


def _by_a_cluster(world: World, change: Change) -> Iterable[Ref]:
    before, after = change.before, change.after
    if before is not None and after is not None and _bearing(before) == _bearing(after):
        return ()
    return _every_placement(world, change)


def _in_its_namespace(world: World, change: Change) -> Iterable[Ref]:
    return [meta.ref(one) for one in world.every(PLACEMENT, meta.namespace(change.obj))]


def _its_placement(world: World, change: Change) -> Iterable[Ref]:
    for obj in (change.before, change.after):
        for key in by_its_placement(obj) if obj is not None else ():
            namespace, _, name = key.partition("/")
            yield Ref(PLACEMENT_VERSION, PLACEMENT.kind, namespace, name)


PLACEMENTS: Controller[View] = Controller(
    name="placements",
    watches=(
        Watch(selects=only(*PLACEMENT), api_version=PLACEMENT_VERSION, concerns=itself),
        Watch(selects=only(*DECISION), api_version=PLACEMENT_VERSION, concerns=_its_placement),
        Watch(selects=only(*CLUSTER), concerns=_by_a_cluster, delay=_TOGETHER),
        Watch(selects=only(*CLUSTER_SET), concerns=_every_placement),
        Watch(selects=only(*CLUSTER_SET_BINDING), concerns=_in_its_namespace),
        Watch(selects=only(*SCORE), concerns=_every_placement, delay=_TOGETHER),
    ),
    gather=gather,
    plan=plan,
    manager="placement-controller",
)
