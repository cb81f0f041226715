"""
Preview: which resources an edited instance would write, before it is made.

What the next pass writes is known in full. Of the resources behind it, which depend on data
that is not there yet, it is known that they follow, and in which step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from lamina.core.model.edited_world import EditedWorld
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.model.world import World
from lamina.core.rollout.preview import ChangeKind, Planned, Preview, TargetChange, planned, preview
from lamina.families.resourcegraph.instances.children import made_by
from lamina.families.resourcegraph.instances.controller import instances
from lamina.families.resourcegraph.instances.goal import Choice, choose
from lamina.families.resourcegraph.instances.node_steps import NodeStep, Phase, node_steps
from lamina.families.resourcegraph.instances.view import Setup, View
from lamina.families.resourcegraph.labels import DEFINITION, DEFINITION_REVISION, INPUT_REVISION
from lamina.families.resourcegraph.owner_status import owner_status
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref

_OWN = (DEFINITION, DEFINITION_REVISION, INPUT_REVISION)
_UNCREATED = "uid of an instance that does not exist yet"


def preview_instance(
    setup: Setup, world: World, owner: Obj, answers: Answers, now: datetime
) -> Preview | tuple[Query, ...] | None:
    """Return what an edited instance would write, or what has to be asked before that is known."""
    ref = meta.ref(owner)
    known = owner if meta.uid(owner) else meta.with_metadata(owner, uid=_UNCREATED)
    found = planned(instances(setup), world, known, answers, now)
    if not isinstance(found, Planned):
        return found
    status = owner_status(EditedWorld(world, [known]), ref)
    assert status is not None, "an edited world has the edited instance"
    choice, steps = _steps(found.view, ref, known, answers, now)
    levels = _levels(steps)
    order = {_name(child.desired.ref): levels[one.node.id] for one in steps for child in one.children}
    made = preview(found, status, names=_names(ref), order=order)
    changes = [one for one in made.changes if one.target]
    if changes:
        changes += _behind(found.view, steps, levels, status.goal)
    goal = choice.newest.number if choice.newest is not None else status.goal
    return replace(made, goal=goal, changes=tuple(changes))


def _steps(
    view: View, ref: Ref, edited: Obj, answers: Answers, now: datetime
) -> tuple[Choice, Sequence[NodeStep]]:
    """Return what an edited instance is to be, and the step of each node in the pass that is planned."""
    known = answers | {Read(ref, whole): Found(edited) for whole in (False, True)}
    choice = choose(view, known, now)
    return choice, node_steps(view, choice.goal, known) if choice.goal is not None else ()


def _levels(steps: Sequence[NodeStep]) -> Mapping[str, int]:
    """Return the step in which each node is written, from 1: after all that it depends on."""
    found: dict[str, int] = {}
    for one in steps:
        found[one.node.id] = 1 + max((found[id] for id in one.node.dependencies), default=0)
    return found


def _behind(
    view: View, steps: Sequence[NodeStep], levels: Mapping[str, int], revision: int
) -> Iterator[TargetChange]:
    """Yield the resources that are written by later passes."""
    for one in steps:
        if one.is_rendered or one.node.kind.is_external or one.phase is not Phase.WAITING:
            continue
        live = [_name(meta.ref(child)) for child in made_by(one.node.id, view.children)]
        because = f"after {', '.join(one.node.dependencies)}" if one.is_dependent else one.because
        for name in live or [f"{one.node.target.kind} of {one.node.id}"]:
            yield TargetChange(
                target=name,
                kind=ChangeKind.UPDATE if live else ChangeKind.CREATE,
                revision=revision if live else 0,
                step=levels[one.node.id],
                message=because,
            )


def _names(owner: Ref) -> Callable[[Ref], str]:
    """Return a function that names resources, and neither the instance nor what records its revisions."""

    def name(ref: Ref) -> str:
        own = ref == owner or GroupKind(ref.group, ref.kind) in _OWN
        return "" if own else _name(ref)

    return name


def _name(ref: Ref) -> str:
    return f"{ref.kind}/{ref.name}"
