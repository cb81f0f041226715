"""Preview: which clusters an edited ManifestWorkReplicaSet would move, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from lamina.core.model.controller import Controller
from lamina.core.model.finalizers import held
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.core.rollout.batch import advance_batches
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.preview import Planned, Preview, planned, preview, steps
from lamina.core.rollout.step import Step, Target
from lamina.families.manifestwork.hub.owner_status import owner_status
from lamina.families.manifestwork.hub.strategy import batches, clusters_of
from lamina.families.manifestwork.hub.view import PlacementView, View
from lamina.families.manifestwork.labels import CLEANUP
from lamina.objects import meta
from lamina.objects.types import Obj, Ref


def plan(
    controller: Controller[View], world: World, owner: Obj, answers: Answers, now: datetime
) -> Preview | tuple[Query, ...] | None:
    """Return what an edited replica set would do to its clusters, or what has to be asked before that is known."""
    found = planned(controller, world, held(owner, CLEANUP), answers, now)
    if not isinstance(found, Planned):
        return found
    edited, names = owner_status(found.view), _names(found.view)
    order = _order(found.view, edited, now)
    return preview(found, edited, names=lambda ref: names.get(ref, ""), order=order)


def _names(view: View) -> Mapping[Ref, str]:
    """Return the names of works of placements that are no longer referenced; the status has all others."""
    placements = {one.name for one in view.placements}
    others = (work for work in view.works if work.placement not in placements)
    return {meta.ref(work.obj): f"{work.placement}/{work.cluster}" for work in others}


def _order(view: View, edited: OwnerStatus, now: datetime) -> Mapping[str, int]:
    """Return the step in which each cluster would move."""
    several = len(view.placements) > 1
    found: dict[str, int] = {}
    for placement in view.placements:
        prefix = f"{placement.name}/" if several else ""
        if not placement.frozen:
            found |= {prefix + name: step for name, step in _steps(placement, prefix, edited, now).items()}
    return found


def _steps(placement: PlacementView, prefix: str, edited: OwnerStatus, now: datetime) -> Mapping[str, int]:
    names = clusters_of(placement.groups)
    targets = [
        Target(key=name, on_goal=edited.targets[prefix + name].revision == edited.goal) for name in names
    ]
    rules = batches(placement.strategy, placement.groups)

    def advance(targets: Sequence[Target]) -> Step:
        return advance_batches(str(edited.goal), rules, {one.key: one for one in targets}, now)

    return steps(targets, advance)
