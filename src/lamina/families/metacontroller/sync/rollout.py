"""
Rolls children out from one revision of their parent to the next.

Each child is claimed by the revision it is on, and a claim is stored before its
child is touched. A child that is as desired already only changes its claim,
after a live read: in a stale cache, a child that has left may seem to be there
still. The others move at the pace their kinds ask for, in the order in which
the hook lists them, and only while all that moved before are healthy.

A child that exists, differs, and is claimed by no revision waits for its turn
like the others and is left as it is: where the stored revisions were lost, or
there never were any, not everything is replaced at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.core.health.probe import has_observed_its_spec
from lamina.core.live_check import Cached, LiveRead, confirm
from lamina.core.model.events import on_change
from lamina.core.model.plan import Emit, Stage
from lamina.core.rollout.step import Standing, Step, Target, advance
from lamina.errors import LaminaError
from lamina.families.metacontroller.hooks.queries import Responses
from lamina.families.metacontroller.labels import MANAGER
from lamina.families.metacontroller.sync.apply_strategy import ApplyStrategy
from lamina.families.metacontroller.sync.child_claims import (
    as_claimed,
    claim_stages,
    not_on,
    recreated_from,
    stored_claims,
)
from lamina.families.metacontroller.sync.desired import (
    Desired,
    DesiredChildren,
    Key,
    Name,
    desired,
    desired_index,
    existing,
    missing,
)
from lamina.families.metacontroller.sync.revisions import ParentRevisions
from lamina.families.metacontroller.sync.rollout_targets import pace, targets
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Made, Obj

_EVENTS = {
    "RolloutProgressing": "RolloutProgressing",
    "RolloutStalled": "RolloutStalled",
    "OnLatestRevision": "RolloutComplete",
}
"""The reasons of the condition Updated that are reported, and the reasons of their events."""
_SHARES = 4
"""In how many parts the progress of a rollout is reported."""


class Rollout(Struct, frozen=True, kw_only=True):
    """One step of a rollout."""

    stages: tuple[Stage, ...]
    """What is written before any child is touched."""
    children: tuple[Desired, ...]
    """Each child as the revision that claims it desires it."""
    waiting: frozenset[Key]
    """Children that wait for their turn and are left as they are."""
    condition: Condition
    """The condition Updated of the parent."""
    step: Step
    pending: tuple[LiveRead, ...] = ()
    """What has to be read before any of this is written."""
    is_stale: bool = False
    """Whether the cached revisions are outdated, so that none of this may be written."""


class RolloutOutcome(Struct, frozen=True, kw_only=True):
    """What the responses of the hook for all revisions in use come to."""

    children: DesiredChildren
    status: Obj | None
    finalized: bool
    errors: tuple[LaminaError, ...] = ()
    rollout: Rollout | None = None


def outcome(strategy: ApplyStrategy, responses: Responses, now: datetime) -> RolloutOutcome:
    """Return the children that responses desire, rolled out where a kind of them rolls; HookError where one is refused."""
    view, latest = strategy.view, responses.newest
    children: dict[str, tuple[Desired, ...]] = {}
    errors: tuple[LaminaError, ...] = ()
    for name, response in responses.by_revision.items():
        children[name], refused = desired(view, response)
        errors = refused if name == responses.latest else errors
    goal = children[responses.latest]
    if responses.revisions is None:
        wanted = DesiredChildren(latest=goal, children=goal)
        return RolloutOutcome(
            children=wanted, status=latest.status, finalized=latest.finalized, errors=errors
        )
    rollout = _roll_out(strategy, responses.revisions, children, now)
    return RolloutOutcome(
        children=DesiredChildren(
            latest=goal,
            children=rollout.children,
            waiting=rollout.waiting,
            follows_claims=bool(rollout.stages),
        ),
        status=with_condition(latest.status or {}, rollout.condition),
        finalized=all(one.finalized for one in responses.by_revision.values()),
        errors=errors,
        rollout=rollout,
    )


def _roll_out(
    strategy: ApplyStrategy,
    revisions: ParentRevisions,
    children: Mapping[str, tuple[Desired, ...]],
    now: datetime,
) -> Rollout:
    """Return the next step of a rollout; `children` are those that the hook desires for each revision in use."""
    view, latest = strategy.view, revisions.latest.name
    goal = desired_index(view, children[latest])
    found = existing(view, goal)
    claims = view.memo.call(stored_claims, view.setup.children, goal, *revisions.in_use)

    is_as_desired = strategy.comparison(goal.children, found)
    waiting: list[Name] = []
    unchanged: dict[Name, Cached | None] = {}
    for position in view.memo.call(not_on, claims, latest, goal):
        child, there = goal.children[position], found[position]
        name = child.key.kind, child.key.name
        if there is None and name not in claims.held:
            unchanged[name] = None
        elif there is not None and is_as_desired(position):
            unchanged[name] = Cached(there, child.rule.kind)
        else:
            waiting.append(name)
    read = confirm({name: one for name, one in unchanged.items() if one is not None}, strategy.answers)
    waiting += [name for name in unchanged if name in read.outdated]
    if arrived := [name for name in unchanged if name not in read.outdated]:
        claims = claims.moved(arrived, latest)

    rolled = targets(view, revisions.latest, goal, found, claims, is_as_desired)
    step = advance(latest, rolled, pace(view, len(goal.by_name)), now)
    if moved := [goal.by_label[label] for label in step.move]:
        claims = claims.moved(moved, latest)
    others = {
        name: desired_index(view, children[name]).in_order_of(goal)
        for name in {*claims.held.values()} - {latest}
    }
    stored = confirm(
        {meta.name(obj): Cached(obj) for obj in recreated_from(revisions, claims, missing(view, goal))},
        strategy.answers,
    )
    return Rollout(
        stages=claim_stages(view, revisions, claims, now if moved else revisions.latest.moved_at),
        children=as_claimed(goal, claims, others),
        waiting=frozenset(goal.by_name[name].key for name in waiting if name not in claims.held),
        condition=_updated(latest, rolled, step),
        step=step,
        pending=tuple(dict.fromkeys((*read.pending, *stored.pending))),
        is_stale=bool(stored.outdated),
    )


# What it reports


def _updated(latest: str, targets: Sequence[Target], step: Step) -> Condition:
    """Return the condition Updated after a step of a rollout to the latest revision."""

    def updated(status: str, reason: str, message: str) -> Condition:
        return Condition(type="Updated", status=status, reason=reason, message=message)

    if step.breached:
        return updated("False", "RolloutStalled", step.because)
    if step.move:
        return updated("False", "RolloutProgressing", f"updating {', '.join(step.move)}")
    if step.done and Standing.HELD in step.standing.values():
        return updated("False", "RolloutPaused", step.because)
    if step.done:
        return updated("True", "OnLatestRevision", f"latest ControllerRevision: {latest}")
    late = next(target for target in targets if step.standing[target.key] is Standing.MOVING)
    return updated("False", "RolloutWaiting", late.verdict.because or step.because)


def rollout_events(parent: Obj, rollout: Rollout, now: datetime) -> Iterator[Emit]:
    """
    Yield the event of a step: children move, the rollout has stalled, or it is complete.

    Of the steps that move children, the first of a revision has one, and each that
    reaches another quarter of them: events are limited for each object, and the
    completion of a rollout must not be what exceeds the limit.
    """
    condition = rollout.condition
    before = conditions.find(conditions.of(parent), condition["type"])
    reason = condition["reason"]
    if reason == "OnLatestRevision" and (before is None or not before.get("reason")):
        # No rollout was in progress.
        return
    if reason == "RolloutProgressing":
        reached = _progress(parent, before, rollout.step)
        if not reached:
            return
        condition = Condition(**{**condition, "message": f"{condition['message']} ({reached})"})
    for event in on_change(
        parent,
        before,
        condition,
        by=MANAGER,
        now=now,
        warns=("RolloutStalled",),
        occasion=str(meta.generation(parent)),
        names=_EVENTS,
        always=("RolloutProgressing",),
    ):
        yield Emit(event=event)


def _progress(parent: Obj, before: Condition | None, step: Step) -> str:
    """Return how far a step takes the rollout, in words; empty where that is not reported."""
    standings = [one for one in step.standing.values() if one is not Standing.HELD]
    total = len(standings)
    had = total - standings.count(Standing.WAITING)
    has = had + len(step.move)
    is_first = (
        not had
        or not has_observed_its_spec(parent).is_healthy
        or before is None
        or before.get("reason") not in ("RolloutProgressing", "RolloutWaiting")
    )
    if is_first or has * _SHARES // total > had * _SHARES // total:
        return f"{has} of {total}"
    return ""


def with_condition(status: Obj, condition: Condition) -> Made:
    """Return a status with a condition, in place of any of its type that a hook has written."""
    others = [one for one in conditions.of({"status": status}) if one.get("type") != condition["type"]]
    return {**status, "conditions": [*others, condition]}
