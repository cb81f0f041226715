"""All that the decisions of one placement depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.queries import Answers, Found, Read
from lamina.core.model.world import World
from lamina.families.manifestwork.labels import (
    CLUSTER,
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    DECISION,
    PLACEMENT,
    SCORE,
    by_placement,
)
from lamina.families.manifestwork.placement.cluster_selector import Scores
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

DISABLED = "cluster.open-cluster-management.io/experimental-scheduling-disable"
"""The annotation of a placement whose decisions another scheduler writes."""


class View(Struct, frozen=True, kw_only=True):
    """A placement, its decisions, and what clusters are selected by."""

    placement: Obj
    decisions: tuple[Obj, ...]
    bindings: tuple[Obj, ...]
    sets: Mapping[str, Obj]
    clusters: tuple[Obj, ...]
    used: Mapping[str, int]
    """How often other placements have selected each cluster."""
    add_ons: Mapping[tuple[str, str], Obj]

    @property
    def selected(self) -> frozenset[str]:
        """Return the clusters that the decisions list now."""
        return frozenset(name for decision in self.decisions for name in listed(decision))

    @property
    def scores(self) -> dict[str, Scores]:
        """Return the add-on scores of each cluster, by the name of the object that holds them."""
        found: dict[str, dict[str, Sequence[Obj]]] = {}
        for (cluster, name), one in self.add_ons.items():
            found.setdefault(cluster, {})[name] = (one.get("status") or {}).get("scores") or ()
        return dict(found)


def gather(world: World, ref: Ref) -> View | None:
    placement = world.get(ref)
    if placement is None or (ref.group, ref.kind) != tuple(PLACEMENT) or meta.is_deleting(placement):
        return None
    if meta.annotations(placement).get(DISABLED) == "true":
        return None
    key = f"{ref.namespace}/{ref.name}"
    return View(
        placement=placement,
        decisions=tuple(world.by_index(DECISION, by_placement, key)),
        bindings=tuple(world.every(CLUSTER_SET_BINDING, ref.namespace)),
        sets={meta.name(one): one for one in world.every(CLUSTER_SET)},
        clusters=tuple(world.every(CLUSTER)),
        used=_used(world, key),
        add_ons={(meta.namespace(one), meta.name(one)): one for one in world.every(SCORE)},
    )


def _used(world: World, except_for: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for decision in world.every(DECISION):
        if except_for not in by_placement(decision):
            for name in listed(decision):
                counts[name] = counts.get(name, 0) + 1
    return counts


def listed(decision: Obj) -> tuple[str, ...]:
    """Return the clusters that a decision lists."""
    return tuple(one["clusterName"] for one in (decision.get("status") or {}).get("decisions") or ())


def with_live_clusters(view: View, answers: Answers) -> View:
    """Return a view with the clusters that were read live in place of the cached ones."""
    read = {asked.ref.name: answer for asked, answer in answers.known.items() if isinstance(asked, Read)}
    if not read:
        return view
    live = {name: answer.obj for name, answer in read.items() if isinstance(answer, Found)}
    left = (one for one in view.clusters if meta.name(one) not in read or meta.name(one) in live)
    return replace(view, clusters=tuple(live.get(meta.name(one), one) for one in left))
