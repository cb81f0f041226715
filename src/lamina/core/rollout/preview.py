"""
Preview: what an edit of an owner would do to its targets, before it is made.

The controller plans as it would after the edit, in a world that has the edited owner in
place of the live one. Passes that only prepare (a finalizer, an adoption) are applied to
that world, and the pass behind them is planned as well. What the next pass writes and
what the status of the edited owner lists beyond it are the changes, in the order in
which targets move if each of them becomes healthy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.health.probe import HEALTHY
from lamina.core.model.controller import Controller, decide
from lamina.core.model.edited_world import EditedWorld
from lamina.core.model.plan import Action, Apply, Create, Delete, Patch, Plan, Replace
from lamina.core.model.queries import Answers, Found, Query, Read
from lamina.core.model.state import State
from lamina.core.model.world import World
from lamina.core.rollout.owner_status import OwnerStatus, TargetStatus
from lamina.core.rollout.step import Step, Target
from lamina.errors import LaminaError
from lamina.merge.patches import merge_patch
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

_PREPARATIONS = 8
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class ChangeKind(StrEnum):
    """What would become of a target."""

    CREATE = "create"
    UPDATE = "update"
    ADOPT = "adopt"
    RELEASE = "release"
    DELETE = "delete"


class TargetChange(Struct, frozen=True, kw_only=True):
    """
    One target that would change, and why.

    `revision` is the one it is on now, 0 where it has none. `step` counts from 1: the
    targets of one step move together, and the next step starts when they are healthy.
    It is 0 for what does not wait for a rollout, and for a target that is held back.
    """

    target: str
    kind: ChangeKind
    revision: int = 0
    step: int = 0
    message: str = ""


class Preview(Struct, frozen=True, kw_only=True):
    """
    What an edit would do: the revision its targets would go to, and what changes, in order.

    `goal` is 0 where the owner has no revisions; `because` is the reason of the first pass,
    and `failure` the error that it would report on the owner.
    """

    owner: Obj
    goal: int
    changes: tuple[TargetChange, ...]
    because: str = ""
    failure: LaminaError | None = None


class Planned(Struct, frozen=True, kw_only=True):
    """A plan for an edited owner, the world and the view it was made from, and the patches of the passes before it."""

    world: World
    view: Any
    plan: Plan
    prepared: tuple[Patch, ...] = ()


def planned(
    controller: Controller[Any], world: World, owner: Obj, answers: Answers, now: datetime
) -> Planned | tuple[Query, ...] | None:
    """
    Return what a controller would do about an edited owner, or what has to be asked before that is known.

    `owner` is the object as a server would store it: the result of a dry run. A live
    read of the owner itself is answered with it. None where the owner is not this controller's.
    """
    ref = meta.ref(owner)
    edited: dict[Ref, Obj] = {ref: owner}
    prepared: list[Patch] = []
    for left in reversed(range(_PREPARATIONS)):
        known = answers | {Read(ref, whole): Found(edited[ref]) for whole in (False, True)}
        seen = EditedWorld(world, edited.values())
        view = controller.gather(seen, ref)
        if view is None:
            return None
        decided = decide(controller, view, known, now)
        if not isinstance(decided, Plan):
            return decided
        patches = [one for one in decided.actions if isinstance(one, Patch) and _is_preparation(one)]
        if not patches or len(patches) < len(decided.actions) or not left:
            return Planned(world=seen, view=view, plan=decided, prepared=tuple(prepared))
        prepared += patches
        for patch in patches:
            before = edited.get(patch.ref) or world.get(patch.ref)
            if before is not None:
                edited[patch.ref] = merge_patch(before, patch.patch)
    raise AssertionError("the last pass returns")


def _is_preparation(patch: Patch) -> bool:
    """Say whether a patch only holds or claims an object: it changes finalizers or owners, and nothing else."""
    return (
        not patch.subresource
        and patch.patch.keys() == {"metadata"}
        and patch.patch["metadata"].keys() <= {"finalizers", "ownerReferences"}
    )


def steps(targets: Sequence[Target], advance: Callable[[Sequence[Target]], Step]) -> Mapping[str, int]:
    """Return in which step each target moves, from 1, if all that moved before are healthy; none where it is held."""
    found: dict[str, int] = {}
    left = list(targets)
    while move := [key for key in advance(left).move if key not in found]:
        number = max(found.values(), default=0) + 1
        found |= dict.fromkeys(move, number)
        left = [_settled(one) if one.key in found or one.on_goal else one for one in left]
    return found


def _settled(target: Target) -> Target:
    return replace(target, on_goal=True, verdict=HEALTHY, since=_LONG_AGO, failing=False)


def preview(
    found: Planned, owner_status: OwnerStatus, *, names: Callable[[Ref], str], order: Mapping[str, int]
) -> Preview:
    """
    Return what a planned edit does to the targets of an owner.

    `names` returns the name that the status has for an object, empty for one that is
    no target; `order` in which step each target moves.
    """
    changes: dict[str, TargetChange] = {}
    claimed = _claimed(found, owner_status.owner, names)
    removed = _removed(found.plan.actions, owner_status.targets, names, order)
    listed = _listed(owner_status, order)
    written = _written(found, owner_status.targets, names, order)
    for one in (*claimed, *removed, *listed, *written):
        changes.setdefault(one.target, one)
    return Preview(
        owner=owner_status.owner,
        goal=owner_status.goal,
        changes=tuple(sorted(changes.values(), key=lambda one: one.step or len(changes) + 1)),
        because=found.plan.because,
        failure=found.plan.failure,
    )


def _listed(owner_status: OwnerStatus, order: Mapping[str, int]) -> Iterator[TargetChange]:
    """Yield the targets that the status has elsewhere than at the goal."""
    for name, target in owner_status.targets.items():
        step = order.get(name, 0)
        if target.state is State.DELETING:
            yield _change(name, ChangeKind.DELETE, target, 0)
        elif not target.revision and owner_status.goal:
            yield _change(name, ChangeKind.CREATE, target, step)
        elif target.revision != owner_status.goal:
            yield _change(name, ChangeKind.UPDATE, target, step)


def _claimed(found: Planned, owner: Obj, names: Callable[[Ref], str]) -> Iterator[TargetChange]:
    """Yield the objects whose owner references were patched before the plan was made."""
    for patch in found.prepared:
        metadata = patch.patch["metadata"]
        if "ownerReferences" in metadata and (name := names(patch.ref)):
            owners = metadata["ownerReferences"] or ()
            adopts = any(one["uid"] == meta.uid(owner) for one in owners)
            yield TargetChange(target=name, kind=ChangeKind.ADOPT if adopts else ChangeKind.RELEASE)


def _removed(
    actions: Iterable[Action],
    targets: Mapping[str, TargetStatus],
    names: Callable[[Ref], str],
    order: Mapping[str, int],
) -> Iterator[TargetChange]:
    """Yield the targets that are deleted before it is their turn to move: they are not created again."""
    for action in actions:
        if isinstance(action, Delete) and (name := names(action.ref)) and order.get(name) != 1:
            yield _change(name, ChangeKind.DELETE, targets.get(name), 0)


def _written(
    found: Planned,
    targets: Mapping[str, TargetStatus],
    names: Callable[[Ref], str],
    order: Mapping[str, int],
) -> Iterator[TargetChange]:
    """Yield what the next pass writes."""
    for action in found.plan.actions:
        if isinstance(action, Patch | Replace | Apply) and action.subresource:
            continue
        if isinstance(action, Create | Patch | Replace | Apply | Delete) and (name := names(action.ref)):
            yield _change(
                name, _kind(action, found.world, targets, name), targets.get(name), order.get(name, 0)
            )


def _kind(action: Action, world: World, targets: Mapping[str, TargetStatus], name: str) -> ChangeKind:
    """Return what an action does to an object; an apply creates one that is not there."""
    match action:
        case Delete():
            return ChangeKind.DELETE
        case Create():
            return ChangeKind.CREATE
        case Apply() if name not in targets and world.get(action.ref) is None:
            return ChangeKind.CREATE
        case _:
            return ChangeKind.UPDATE


def _change(name: str, kind: ChangeKind, target: TargetStatus | None, step: int) -> TargetChange:
    if target is None:
        return TargetChange(target=name, kind=kind, step=step)
    return TargetChange(target=name, kind=kind, revision=target.revision, step=step, message=target.message)
