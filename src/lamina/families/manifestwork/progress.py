"""How the clusters of one placement do on their way to the revision that is the goal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from lamina.core.pace import AT_ONCE
from lamina.core.probe import unknown
from lamina.core.rollout import Step, Target, advance
from lamina.families.manifestwork.album import Picture
from lamina.families.manifestwork.march import Toll, march, toll
from lamina.families.manifestwork.state import State, Where, where
from lamina.families.manifestwork.strategy import Strategy, clusters_of
from lamina.families.manifestwork.template import reports_progress
from lamina.families.manifestwork.view import Placed

_GOING = "its old work is on its way out"


class Counts(Struct):
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
        for name in Counts.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Progress(Struct, frozen=True, kw_only=True):
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
    truths: Counter[tuple[bool, bool, bool, bool]] = Counter()
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
            truths[work.truths] += 1
    _count(counts, truths)
    states = Counter(here.state for here in standing.values())
    counts.unsettled = states[State.PROGRESSING] + states[State.TO_APPLY]
    if goal.holds == wanted.holds:
        counts.updated = states[State.SUCCEEDED]
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


def _count(counts: Counts, truths: Counter[tuple[bool, bool, bool, bool]]) -> None:
    """Count works by what is true of them; most of them are alike."""
    for (applied, available, progressing, degraded), number in truths.items():
        counts.total += number
        counts.applied += number * applied
        counts.available += number * available
        counts.progressing += number * progressing
        counts.degraded += number * degraded
