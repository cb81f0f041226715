"""The scheduler of placements as a value, and the controllers of managed clusters and cluster sets."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from lamina.core.model.controller import AnyController, Controller, Watch, itself, only
from lamina.core.model.world import Change, World
from lamina.families.manifestwork.labels import (
    CLUSTER,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    DECISION,
    PLACEMENT,
    PLACEMENT_VERSION,
    SCORE,
    by_placement,
)
from lamina.families.manifestwork.placement.clusterset import BINDINGS, DEFAULT_SETS, SETS
from lamina.families.manifestwork.placement.managedcluster import CLUSTERS
from lamina.families.manifestwork.placement.plan import plan
from lamina.families.manifestwork.placement.renewals import RENEWALS
from lamina.families.manifestwork.placement.view import View, gather
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

_TOGETHER = timedelta(milliseconds=50)
"""Hundreds of clusters may join or change together, and one pass is enough for all."""


def _every_placement(world: World, change: Change) -> Iterable[Ref]:
    return [meta.ref(one) for one in world.every(PLACEMENT)]


def _relevant(cluster: Obj) -> object:
    """Return what a selection may depend on: not the times and messages of conditions."""
    status = cluster.get("status") or {}
    known = {field: value for field, value in status.items() if field != "conditions"}
    reported = [
        (one.get("type"), one.get("status"), one.get("reason")) for one in status.get("conditions") or ()
    ]
    metadata = meta.labels(cluster), meta.annotations(cluster), meta.is_deleting(cluster)
    return metadata, cluster.get("spec"), known, reported


def _by_a_cluster(world: World, change: Change) -> Iterable[Ref]:
    return () if change.preserves(_relevant) else _every_placement(world, change)


def _in_its_namespace(world: World, change: Change) -> Iterable[Ref]:
    return [meta.ref(one) for one in world.every(PLACEMENT, meta.namespace(change.obj))]


def _its_placement(world: World, change: Change) -> Iterable[Ref]:
    for obj in change.versions:
        for key in by_placement(obj):
            namespace, _, name = key.partition("/")
            yield Ref(PLACEMENT_VERSION, PLACEMENT.kind, namespace, name)


PLACEMENTS: Controller[View] = Controller(
    name="placements",
    watches=(
        Watch(selects=only(*PLACEMENT), api_version=PLACEMENT_VERSION, enqueue=itself),
        Watch(selects=only(*DECISION), api_version=PLACEMENT_VERSION, enqueue=_its_placement),
        Watch(selects=only(*CLUSTER), enqueue=_by_a_cluster, delay=_TOGETHER),
        Watch(selects=only(*CLUSTER_SET), enqueue=_every_placement),
        Watch(selects=only(*CLUSTER_SET_BINDING), enqueue=_in_its_namespace),
        Watch(selects=only(*SCORE), enqueue=_every_placement, delay=_TOGETHER),
    ),
    gather=gather,
    plan=plan,
    manager="placement-controller",
)


def controllers(*, schedules: bool, registers: bool) -> tuple[AnyController, ...]:
    """Return the controllers that select clusters, and those that register clusters and their sets."""
    registering = (CLUSTERS, RENEWALS, DEFAULT_SETS, SETS, BINDINGS) if registers else ()
    return (*((PLACEMENTS,) if schedules else ()), *registering)
