"""
Who of one placement's clusters moves now, and whether too many have failed.

The core says who may move; here the strategy is put in its words. Groups that are
mandatory go first, one after another, and tolerate nothing; the others start when
all of them are well.

Whether too many have failed is asked of all clusters, and not of those that the
pace happened to look at: somebody late in the alphabet is as late as anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.pace import Pace
from lamina.core.rollout import Standing, Step, Target, advance, advance_by_group, named_with_reasons
from lamina.families.manifestwork.strategy import Group, Strategy, clusters_of


def march(
    goal: str, strategy: Strategy, groups: Sequence[Group], targets: Mapping[str, Target], now: datetime
) -> Step:
    """Return the next step of the clusters of one placement towards the revision people call `goal`."""
    first = [group for group in groups if strategy.is_mandatory(group)]
    others = [group for group in groups if not strategy.is_mandatory(group)]
    pace = Pace(at_once=None, failures=None, soak=strategy.soak, deadline=strategy.deadline)
    ahead = advance_by_group(goal, _grouped(first, targets), pace, {}, now)
    behind = _others(goal, strategy, others, targets, pace, len(clusters_of(groups)), now)
    if not first:
        return behind
    standing = {**ahead.standing, **behind.standing}
    waits = [step.look_again for step in (ahead, behind) if step.look_again is not None]
    leading = behind if set(ahead.standing.values()) <= _OVER else ahead
    return replace(leading, standing=standing, look_again=min(waits, default=None))


_OVER = {Standing.SETTLED}


def _others(
    goal: str,
    strategy: Strategy,
    groups: Sequence[Group],
    targets: Mapping[str, Target],
    pace: Pace,
    all_clusters: int,
    now: datetime,
) -> Step:
    if strategy.manner == "ProgressivePerGroup":
        tolerated = {group.index: strategy.tolerated(len(group.clusters)) for group in groups}
        return advance_by_group(goal, _grouped(groups, targets), pace, tolerated, now)
    names = clusters_of(groups)
    if strategy.manner == "Progressive":
        pace = replace(pace, at_once=strategy.at_once(len(names)), failures=strategy.tolerated(all_clusters))
    return advance(goal, [targets[name] for name in names], pace, now)


def _grouped(groups: Sequence[Group], targets: Mapping[str, Target]) -> list[Target]:
    ordered = sorted((name, group.index) for group in groups for name in group.clusters)
    return [replace(targets[name], group=index) for name, index in ordered]


# Have too many failed


class Lane(Struct, frozen=True, kw_only=True):
    """Clusters whose failures are counted together, and how many of them may fail."""

    clusters: tuple[str, ...]
    limit: int
    called: str = ""


class Toll(Struct, frozen=True):
    """What failures come to: sentences, empty where there are not too many."""

    overdue: str = ""
    """Too many did not get well in time."""
    failing: str = ""
    """Too many failed, some of which still have time."""
    late: int = 0
    """How many did not get well in time, tolerated or not."""
    too_late: tuple[str, ...] = ()
    """The clusters that are too many to be overdue, and those tolerated among them."""
    tolerated: int = 0
    """How many of those are."""


def toll(strategy: Strategy, groups: Sequence[Group], targets: Mapping[str, Target], step: Step) -> Toll:
    """Return whether more clusters failed than are tolerated anywhere."""
    standing = step.standing
    overdue = failing = ""
    too_late, tolerated = tuple[str, ...](), 0
    for lane in _lanes(strategy, groups, standing, targets):
        late = [targets[name] for name in lane.clusters if standing.get(name) is Standing.FAILED]
        failed = [targets[name] for name in lane.clusters if _has_failed(standing.get(name), targets[name])]
        if len(late) > lane.limit and not overdue:
            overdue = _sentence(late, lane, f"not well within {strategy.shown_deadline}")
            too_late, tolerated = tuple(one.key for one in late), lane.limit
        if len(failed) > lane.limit and strategy.manner != "All" and not failing:
            failing = _sentence(failed, lane, "failed")
    count = sum(1 for where in standing.values() if where is Standing.FAILED)
    return Toll(overdue, failing, count, too_late, tolerated)


def _lanes(
    strategy: Strategy,
    groups: Sequence[Group],
    standing: Mapping[str, Standing],
    targets: Mapping[str, Target],
) -> Iterator[Lane]:
    for group in groups:
        if strategy.is_mandatory(group):
            yield Lane(clusters=group.clusters, limit=0, called=f" of mandatory {_called(group)}")
    if strategy.manner != "ProgressivePerGroup":
        names = clusters_of(groups)
        yield Lane(clusters=names, limit=strategy.tolerated(len(names)))
        return
    for group in sorted(groups, key=lambda one: one.index):
        if strategy.is_mandatory(group):
            continue
        limit = strategy.tolerated(len(group.clusters))
        yield Lane(clusters=group.clusters, limit=limit, called=f" of {_called(group)}")
        if any(_is_busy(standing.get(name), targets[name]) for name in group.clusters):
            # The rollout has come as far as this group.
            return


def _is_busy(where: Standing | None, target: Target) -> bool:
    return where is Standing.WAITING or (where is Standing.MOVING and not target.failing)


def _has_failed(where: Standing | None, target: Target) -> bool:
    return where is Standing.FAILED or (where is Standing.MOVING and target.failing)


def _called(group: Group) -> str:
    return f"group {group.name}" if group.name else f"group {group.index}"


def _sentence(failed: Sequence[Target], lane: Lane, what: str) -> str:
    those = f"{len(failed)} of {len(lane.clusters)} clusters{lane.called}"
    return f"{those} {what}, {lane.limit} tolerated: {named_with_reasons(failed)}"
