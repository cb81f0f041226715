"""Preview: which children an edited parent would get, change and lose, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from lamina.core.model.controller import Controller
from lamina.core.model.finalizers import held
from lamina.core.model.queries import Answers, Query
from lamina.core.model.world import World
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.preview import Planned, Preview, planned, preview, steps
from lamina.core.rollout.step import Target, advance
from lamina.families.metacontroller.compile import Setup
from lamina.families.metacontroller.owner_status import owner_status
from lamina.families.metacontroller.sync.rollout_targets import held_back, pace
from lamina.families.metacontroller.sync.view import View
from lamina.objects.types import GroupKind, Obj, Ref


def plan(
    controller: Controller[View], setup: Setup, world: World, owner: Obj, answers: Answers, now: datetime
) -> Preview | tuple[Query, ...] | None:
    """Return what an edited parent would do to its children, or what has to be asked before that is known."""
    edited = held(owner, setup.finalizer) if setup.finalize is not None else owner
    found = planned(controller, world, edited, answers, now)
    if not isinstance(found, Planned):
        return found
    children = {kind.kind for kind in setup.children}
    status = owner_status(found.view)

    def name(ref: Ref) -> str:
        return f"{ref.kind} {ref.name}" if ref.kind in children else ""

    return preview(found, status, names=name, order=_order(found.view, status, now))


def _order(view: View, edited: OwnerStatus, now: datetime) -> Mapping[str, int]:
    """Return in which step each child that rolls moves."""
    if not view.setup.rolls:
        return {}
    names = {target: _name(view, target) for target in edited.targets}
    held_names = held_back(view, [name for name in names.values() if name is not None])
    targets = [
        Target(
            key=target, on_goal=edited.targets[target].revision == edited.goal, held=held_names.get(name, "")
        )
        for target, name in names.items()
        if name is not None
    ]
    rate = pace(view, len(targets))
    return steps(targets, lambda left: advance(str(edited.goal), left, rate, now))


def _name(view: View, target: str) -> tuple[GroupKind, str] | None:
    kind_name, _, name = target.partition(" ")
    kind = next((kind for kind in view.setup.children if kind.kind == kind_name), None)
    return (kind, name) if kind is not None else None
