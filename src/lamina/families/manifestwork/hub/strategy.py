"""
The rollout strategy of one placement, in numbers and durations, and its batches and failure budgets.

Percentages are rounded up, in exact arithmetic. More tolerated failures than
there are clusters are as many as there are clusters.

Mandatory groups are the first batch, one after another, and tolerate no failure.
The other groups are the second one: by group for ProgressivePerGroup, by the pace
for Progressive, and all at once for All.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.rollout.batch import Batch
from lamina.core.rollout.batch import Group as BatchGroup
from lamina.core.rollout.failure_budget import FailureBudget
from lamina.core.rollout.pace import Pace, Rounding, amount
from lamina.errors import SpecError
from lamina.families.manifestwork.api import Amount, PlacementRef, StrategyType
from lamina.objects.durations import parse_duration

_DEADLINE = re.compile(r"[0-9]+[hms]", re.ASCII)
"""How a deadline begins: `500ms` and `1h30m` are deadlines, and `1.5h` is none."""


class Group(Struct, frozen=True, kw_only=True):
    """A decision group: clusters of a placement, by name, that are rolled out together."""

    index: int
    name: str = ""
    clusters: tuple[str, ...] = ()


class Strategy(Struct, frozen=True, kw_only=True):
    """A parsed strategy. A deadline of None is no deadline."""

    type: StrategyType = "All"
    soak: timedelta = timedelta(0)
    deadline: timedelta | None = None
    shown_deadline: str = "None"
    max_failures: Amount = 0
    max_concurrency: Amount | None = None
    mandatory_names: frozenset[str] = frozenset()
    mandatory_indexes: frozenset[int] = frozenset()
    aborts: bool = False

    def is_mandatory(self, group: Group) -> bool:
        """Say whether a group is rolled out first and tolerates no failure."""
        return group.index in self.mandatory_indexes or (
            bool(group.name) and group.name in self.mandatory_names
        )

    def tolerated(self, total: int) -> int:
        """Return how many of a number of clusters may fail."""
        wanted = amount(self.max_failures, total, Rounding.UP, field=self._field("maxFailures"))
        return min(max(wanted, 0), total)

    def at_once(self, total: int) -> int:
        """Return how many of a number of clusters may be moving together."""
        if self.max_concurrency is None:
            return total
        wanted = amount(self.max_concurrency, total, Rounding.UP, field=self._field("maxConcurrency"))
        return wanted if 0 < wanted <= total else total

    def _field(self, name: str) -> str:
        return f"rolloutStrategy.{self.type[:1].lower()}{self.type[1:]}.{name}"


def strategy(ref: PlacementRef) -> Strategy:
    """Return the strategy of a placement; raises SpecError, which names the field, for an invalid one."""
    spec = ref.rollout_strategy
    block = spec.block
    grouped = block.mandatory_decision_groups if spec.type != "All" else ()
    parsed = Strategy(
        type=spec.type,
        soak=_soak(block.min_success_time) if spec.type != "All" else timedelta(0),
        deadline=deadline(block.progress_deadline),
        shown_deadline=block.progress_deadline,
        max_failures=block.max_failures,
        max_concurrency=block.max_concurrency if spec.type == "Progressive" else None,
        mandatory_names=frozenset(one.group_name for one in grouped if one.group_name),
        mandatory_indexes=frozenset(one.group_index for one in grouped if not one.group_name),
        aborts=spec.failure_strategy == "AbortAll",
    )
    # An invalid number is reported now, and not when it is first needed.
    parsed.tolerated(1)
    parsed.at_once(1)
    return parsed


def deadline(text: str) -> timedelta | None:
    """Return the deadline of a cluster; an empty one, and the word None, are no deadline."""
    if text in ("", "None"):
        return None
    if not _DEADLINE.match(text):
        raise SpecError(
            f'progressDeadline: expected a duration such as "90s" or "1h30m", or None, got "{text}"'
        )
    try:
        return parse_duration(text)
    except ValueError as wrong:
        raise SpecError(f"progressDeadline: {wrong}") from None


def _soak(text: str) -> timedelta:
    try:
        return parse_duration(text) if text else timedelta(0)
    except ValueError as wrong:
        raise SpecError(f"minSuccessTime: {wrong}") from None


def clusters_of(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the clusters of all groups, by name."""
    return tuple(sorted(chain.from_iterable(group.clusters for group in groups)))


def batches(strategy: Strategy, groups: Sequence[Group]) -> tuple[Batch, ...]:
    """Return the batches of a placement's clusters, in the order in which they are rolled out."""
    pace = Pace(at_once=None, failures=None, soak=strategy.soak, deadline=strategy.deadline)
    first = tuple(_group(one) for one in groups if strategy.is_mandatory(one))
    others = [one for one in groups if not strategy.is_mandatory(one)]
    mandatory = (Batch(groups=first, pace=pace, ordered=True),) if first else ()
    if strategy.type == "ProgressivePerGroup":
        tolerating = tuple(_group(one, strategy.tolerated(len(one.clusters))) for one in others)
        return (*mandatory, Batch(groups=tolerating, pace=pace, ordered=True))
    if strategy.type == "Progressive":
        total = sum(len(one.clusters) for one in groups)
        share = sum(len(one.clusters) for one in others)
        pace = replace(pace, at_once=strategy.at_once(share), failures=strategy.tolerated(total))
    return (*mandatory, Batch(groups=tuple(map(_group, others)), pace=pace))


def _group(group: Group, tolerated: int = 0) -> BatchGroup:
    return BatchGroup(index=group.index, targets=group.clusters, tolerated=tolerated)


def budgets(strategy: Strategy, groups: Sequence[Group]) -> Iterator[FailureBudget]:
    """Yield the failure budgets of a placement: of each mandatory group, and of all clusters or each other group."""
    for group in groups:
        if strategy.is_mandatory(group):
            yield FailureBudget(targets=group.clusters, limit=0, scope=f" of mandatory {_name(group)}")
    if strategy.type != "ProgressivePerGroup":
        clusters = clusters_of(groups)
        yield FailureBudget(targets=clusters, limit=strategy.tolerated(len(clusters)))
        return
    for group in sorted(groups, key=lambda one: one.index):
        if not strategy.is_mandatory(group):
            limit = strategy.tolerated(len(group.clusters))
            yield FailureBudget(
                targets=group.clusters, limit=limit, scope=f" of {_name(group)}", ordered=True
            )


def _name(group: Group) -> str:
    return f"group {group.name}" if group.name else f"group {group.index}"
