"""How the clusters of one placement do on their way to the revision that is the goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lamina.core.pace import AT_ONCE
from lamina.core.probe import unknown
from lamina.core.rollout import Step, Target, advance
from lamina.families.manifestwork.album import Picture
from lamina.families.manifestwork.march import Toll, march, toll
from lamina.families.manifestwork.state import State, Where, where
from lamina.families.manifestwork.strategy import Strategy, clusters_of
from lamina.families.manifestwork.template import reports_progress
from lamina.families.manifestwork.view import Placed
from lamina.families.manifestwork.work import Said, Work

_GOING = "its old work is on its way out"


@dataclass(slots=True)
class Counts:
    """How many works, or clusters, are what; the words are those of the status."""

    total: int = 0
    progressing: int = 0
    available: int = 0
    degraded: int = 0
    applied: int = 0
    desired: int = 0
    updated: int = 0
    unsettled: int = 0
    """Works whose agents have not said of what they hold now that it is done; no word of the status."""

    def add(self, other: Counts) -> None:
        for name in Counts.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One placement's clusters: who moves, who is where, and what it comes to."""

    placed: Placed
    goal: Picture
    step: Step
    toll: Toll
    clusters: tuple[str, ...]
    standing: Mapping[str, Where] = field(default_factory=dict)
    """Where each cluster is that has the goal."""
    counts: Counts = field(default_factory=Counts)

    @property
    def restored(self) -> int:
        """Return how many clusters have the goal."""
        return len(self.standing)


def progress(placed: Placed, goal: Picture, wanted: Picture, now: datetime, *, turned: bool) -> Progress:
    """
    Return how one placement's clusters do.

    Once the rollout has `turned` round everybody goes, at once, however those do that went before.
    """
    clusters = clusters_of(placed.groups)
    ruled = reports_progress(goal.template)
    counts = Counts(desired=len(clusters))
    standing: dict[str, Where] = {}
    targets: dict[str, Target] = {}
    for cluster in clusters:
        work = placed.works.get(cluster)
        if work is None:
            targets[cluster] = Target(key=cluster, on_goal=False)
        elif work.is_deleting:
            targets[cluster] = Target(key=cluster, on_goal=False, held=_GOING)
        elif not goal.is_on(work):
            targets[cluster] = Target(key=cluster, on_goal=False)
        else:
            here = standing[cluster] = where(work, reports_progress=ruled, now=now)
            targets[cluster] = target(placed.strategy, cluster, here)
            _count(counts, work, here)
    if goal.holds == wanted.holds:
        counts.updated = sum(1 for here in standing.values() if here.state is State.SUCCEEDED)
    if turned:
        step = advance(goal.name, [targets[name] for name in clusters], AT_ONCE, now)
        over = Toll()
    else:
        step = march(goal.name, placed.strategy, placed.groups, targets, now)
        over = toll(placed.strategy, placed.groups, targets, step)
        if placed.frozen:
            step = Step(because=placed.frozen, look_again=step.look_again, standing=step.standing)
    return Progress(
        placed=placed,
        goal=goal,
        step=step,
        toll=over,
        clusters=clusters,
        standing=standing,
        counts=counts,
    )


def target(strategy: Strategy, cluster: str, here: Where) -> Target:
    """Return a cluster that has the goal, in the words of the core."""
    if here.state is State.TO_APPLY:
        if strategy.manner == "ProgressivePerGroup":
            # Sent by somebody else, and not taken up yet: its group's turn decides.
            return Target(key=cluster, on_goal=False)
        return Target(key=cluster, on_goal=True, verdict=unknown(here.because), timed=False)
    return Target(
        key=cluster,
        on_goal=True,
        verdict=here.verdict,
        since=here.since,
        failing=here.state is State.FAILED,
    )


def _count(counts: Counts, work: Work, here: Where) -> None:
    generation = work.generation
    counts.total += 1
    counts.applied += _holds(work.applied, generation)
    counts.available += _holds(work.available, generation)
    counts.progressing += _holds(work.progressing, generation)
    counts.degraded += _holds(work.degraded, generation)
    counts.unsettled += here.state in (State.PROGRESSING, State.TO_APPLY)


def _holds(said: Said | None, generation: int) -> bool:
    """Say whether a condition is True of what the work holds now, and not of what it held before."""
    return said is not None and said.is_true_at(generation)
