"""The progress of one placement's clusters towards the goal revision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from lamina.core.health.probe import unknown
from lamina.core.rollout.batch import advance_batches
from lamina.core.rollout.failure_budget import Failures, count_failures
from lamina.core.rollout.pace import AT_ONCE
from lamina.core.rollout.revision import Revision
from lamina.core.rollout.step import Step, Target, advance
from lamina.families.manifestwork.hub.revision import reports_progress
from lamina.families.manifestwork.hub.strategy import Strategy, batches, budgets, clusters_of
from lamina.families.manifestwork.hub.view import PlacementView
from lamina.families.manifestwork.hub.work_status import RolloutState, WorkStatus, rollout_status

_DELETING = "its old ManifestWork is being deleted"


class Counts(Struct, rename={"desired": "desiredTotal"}):
    """Numbers of works and clusters, named as in the status."""

    total: int = 0
    progressing: int = 0
    available: int = 0
    degraded: int = 0
    applied: int = 0
    desired: int = 0
    updated: int = 0
    unsettled: int = 0
    """Works whose agents have not reported that their current spec is complete; not in the status."""

    def add(self, other: Counts) -> None:
        for name in Counts.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Progress(Struct, frozen=True, kw_only=True):
    """The clusters of one placement: the next step, the failures, and the status of each cluster on the goal."""

    placement: PlacementView
    step: Step
    failures: Failures
    clusters: tuple[str, ...]
    on_goal: Mapping[str, WorkStatus] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)


def progress(
    placement: PlacementView, goal: Revision, wanted: Revision, now: datetime, *, is_aborted: bool
) -> Progress:
    """Return the progress of one placement; an aborted rollout moves all clusters back at once, whatever fails."""
    clusters = clusters_of(placement.groups)
    with_rule = reports_progress(goal.snapshot)
    counts = Counts(desired=len(clusters))
    on_goal: dict[str, WorkStatus] = {}
    targets: dict[str, Target] = {}
    condition_counts: Counter[tuple[bool, bool, bool, bool]] = Counter()
    for cluster in clusters:
        work = placement.works.get(cluster)
        if work is None:
            targets[cluster] = Target(key=cluster, on_goal=False)
        elif work.is_deleting:
            targets[cluster] = Target(key=cluster, on_goal=False, held=_DELETING)
        elif not work.has(goal):
            targets[cluster] = Target(key=cluster, on_goal=False)
        else:
            status = on_goal[cluster] = rollout_status(work, reports_progress=with_rule, now=now)
            targets[cluster] = target(placement.strategy, cluster, status)
            condition_counts[work.is_true] += 1
    _count(counts, condition_counts)
    states = Counter(status.state for status in on_goal.values())
    counts.unsettled = states[RolloutState.PROGRESSING] + states[RolloutState.TO_APPLY]
    if goal.digest == wanted.digest:
        counts.updated = states[RolloutState.SUCCEEDED]
    if is_aborted:
        step, failures = advance(goal.name, list(targets.values()), AT_ONCE, now), Failures()
    else:
        step, failures = _advance(placement, goal.name, targets, now)
    return Progress(
        placement=placement, step=step, failures=failures, clusters=clusters, on_goal=on_goal, counts=counts
    )


def _advance(
    placement: PlacementView, goal: str, targets: Mapping[str, Target], now: datetime
) -> tuple[Step, Failures]:
    strategy, groups = placement.strategy, placement.groups
    step = advance_batches(goal, batches(strategy, groups), targets, now)
    failures = count_failures(
        tuple(budgets(strategy, groups)),
        targets,
        step.standing,
        noun="clusters",
        deadline=strategy.shown_deadline,
        before_deadline=strategy.type != "All",
    )
    if placement.frozen:
        step = Step(because=placement.frozen, requeue_after=step.requeue_after, standing=step.standing)
    return step, failures


def target(strategy: Strategy, cluster: str, status: WorkStatus) -> Target:
    """Return a cluster on the goal as a target of the rollout."""
    if status.state is RolloutState.TO_APPLY:
        if strategy.type == "ProgressivePerGroup":
            # Another controller wrote it and its agent has not applied it: it moves with its group.
            return Target(key=cluster, on_goal=False)
        return Target(key=cluster, on_goal=True, verdict=unknown(status.message), timed=False)
    return Target(
        key=cluster,
        on_goal=True,
        verdict=status.verdict,
        since=status.since,
        failing=status.state is RolloutState.FAILED,
    )


def _count(counts: Counts, condition_counts: Counter[tuple[bool, bool, bool, bool]]) -> None:
    """Count works by their conditions; most of them have the same ones."""
    for (applied, available, progressing, degraded), number in condition_counts.items():
        counts.total += number
        counts.applied += number * applied
        counts.available += number * available
        counts.progressing += number * progressing
        counts.degraded += number * degraded
