"""The stages of a pass: its records, its reports and its writes to works; and plans that report why a rollout cannot start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from lamina.core.model.plan import Action, Delete, Plan, Stage, delete, one_stage, set_status
from lamina.core.rollout.abort import rollout_stages
from lamina.families.manifestwork.hub.events import name_taken, revision_missing, rollout_events
from lamina.families.manifestwork.hub.phase import APPLIED, INVALID_NAME, Phase, Result
from lamina.families.manifestwork.hub.placement_progress import Progress
from lamina.families.manifestwork.hub.rollout import RolloutOutcome, cannot_abort
from lamina.families.manifestwork.hub.status import differ_in_counts, status, with_condition
from lamina.families.manifestwork.hub.view import View
from lamina.families.manifestwork.hub.work import create_work, relabel_work, replace_work, work_name

_PER_CLUSTER, _MANY = timedelta(milliseconds=10), 200
"""How long the numbers in a status may be out of date, for each of so many clusters."""


def stages(
    outcome: RolloutOutcome,
    *,
    moves: int,
    works: Sequence[Action],
    removals: Sequence[Action],
    pruned: Sequence[Action],
    now: datetime,
) -> tuple[Stage, ...]:
    """Return the stages of a pass, from the records to the writes; `moves` works are about to be written."""
    view, decision = outcome.view, outcome.decision
    new = status(outcome, moves=moves, writes=bool(works or removals or pruned), now=now)
    events: list[Action] = list(rollout_events(outcome, now))
    if decision.breach and not decision.is_aborted:
        events.append(revision_missing(view, cannot_abort(view, outcome.revisions), now))
    counts_only = differ_in_counts(view.status, new)
    return rollout_stages(
        records=outcome.revisions.records,
        status=set_status(view.obj, new),
        events=events,
        moves=(("write works", works), ("delete works", removals)),
        prune=pruned,
        status_last=outcome.phase is Phase.ABORTED,
        min_interval=_PER_CLUSTER * min(outcome.findings.desired, _MANY) if counts_only else timedelta(0),
    )


def report_invalid_name(view: View, longest: int, now: datetime) -> Plan:
    """Return the plan that reports that no label can select the works of a replica set."""
    message = (
        f'the label value "{view.key}" that selects its works has {len(view.key)} characters, at most {longest} '
        "are allowed: give the ManifestWorkReplicaSet or its namespace a shorter name"
    )
    new = with_condition(view, APPLIED, Result("False", INVALID_NAME), message, now)
    patch = set_status(view.obj, new)
    return one_stage("update status", [patch] if patch is not None else [], because=message)


def report_collision(view: View, revision: str, now: datetime) -> Plan:
    """Return the plan that counts a collision, so that the next pass tries another name."""
    message = f"the name {revision} is taken by another object; trying another one"
    patch = set_status(view.obj, {**view.status, "collisionCount": view.collisions + 1})
    report = Stage("update status", (patch,) if patch is not None else ())
    return Plan(stages=(report, Stage("emit events", (name_taken(view, message, now),))), because=message)


# The writes to works


def moving(outcome: RolloutOutcome) -> list[tuple[str, ...]]:
    """Return the clusters of each placement whose works are written now."""
    if outcome.decision.is_aborted:
        return [_not_restored(outcome, one) for one in outcome.progress]
    return [tuple(name for name in one.step.move if name not in one.on_goal) for one in outcome.progress]


def _not_restored(outcome: RolloutOutcome, one: Progress) -> tuple[str, ...]:
    works, goal = one.placement.works, outcome.goal
    return tuple(
        name
        for name in one.clusters
        if (work := works.get(name)) is None or not (work.is_deleting or work.has(goal))
    )


def write_works(outcome: RolloutOutcome, movers: Sequence[Sequence[str]], now: datetime) -> Iterator[Action]:
    """Yield the creation, replacement and relabelling of works; none where the content of the goal is lost."""
    owner, goal, aborted_at = outcome.view.obj, outcome.goal, outcome.decision.aborted_at
    if not goal.snapshot:
        return
    # A work that is moved back has a later time than the abort, whatever clock another process recorded that by.
    now = max(now, aborted_at) if aborted_at is not None else now
    for one, names in zip(outcome.progress, movers, strict=True):
        placement, works, selected = one.placement, one.placement.works, set(one.clusters)
        usual_name = work_name(owner, placement.name)
        for name in names:
            work = works.get(name)
            if work is None:
                new_name = placement.other_names.get(name, usual_name)
                yield create_work(owner, name, placement.name, new_name, goal, now)
            elif not work.is_deleting:
                yield replace_work(owner, work, goal, now)
        for work in works.values():
            if (
                work.hash != goal.hash
                and work.has(goal)
                and not work.is_deleting
                and work.cluster in selected
            ):
                yield relabel_work(work, goal.hash)


def remove_works(outcome: RolloutOutcome) -> Iterator[Delete]:
    """Yield the deletion of surplus works, and of works of placements and clusters that are not selected any more."""
    selected = {one.placement.name: set(one.clusters) for one in outcome.progress}
    surplus = {id(work) for one in outcome.progress for work in one.placement.surplus}
    for work in outcome.view.works:
        if not work.is_deleting and (
            work.cluster not in selected.get(work.placement, ()) or id(work) in surplus
        ):
            yield delete(work.obj)
