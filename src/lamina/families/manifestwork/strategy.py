"""
How a change goes out to the clusters of one placement: what its strategy means in numbers and lengths of time.

A share of a whole is rounded up, in exact arithmetic. Whoever tolerates more
failures than there are clusters tolerates all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from itertools import chain

from msgspec import Struct

from lamina.core.pace import Rounding, amount
from lamina.errors import SpecError
from lamina.families.manifestwork.api import Amount, Manner, PlacementRef
from lamina.objects.durations import parse_duration

_DEADLINE = re.compile(r"[0-9]+[hms]", re.ASCII)


class Group(Struct, frozen=True, kw_only=True):
    """Some of the clusters that a placement selects, by name; they go out together."""

    index: int
    name: str = ""
    clusters: tuple[str, ...] = ()


class Strategy(Struct, frozen=True, kw_only=True):
    """One strategy, understood. A deadline of None is none."""

    manner: Manner = "All"
    soak: timedelta = timedelta(0)
    deadline: timedelta | None = None
    shown_deadline: str = "None"
    max_failures: Amount = 0
    max_concurrency: Amount | None = None
    mandatory_names: frozenset[str] = frozenset()
    mandatory_indexes: frozenset[int] = frozenset()
    aborts: bool = False

    def is_mandatory(self, group: Group) -> bool:
        """Say whether a group goes first, and tolerates no failure."""
        return group.index in self.mandatory_indexes or (
            bool(group.name) and group.name in self.mandatory_names
        )

    def tolerated(self, total: int) -> int:
        """Return how many of so many clusters may fail."""
        wanted = amount(self.max_failures, total, Rounding.UP, field=self._field("maxFailures"))
        return min(max(wanted, 0), total)

    def at_once(self, total: int) -> int:
        """Return how many of so many clusters may be on the way together."""
        if self.max_concurrency is None:
            return total
        wanted = amount(self.max_concurrency, total, Rounding.UP, field=self._field("maxConcurrency"))
        return wanted if 0 < wanted <= total else total

    def _field(self, name: str) -> str:
        return f"rolloutStrategy.{self.manner[:1].lower()}{self.manner[1:]}.{name}"


def strategy(ref: PlacementRef) -> Strategy:
    """Return what a placement's strategy means; SpecError, with the field, where it means nothing."""
    said = ref.rollout_strategy
    block = said.block
    grouped = block.mandatory_decision_groups if said.type != "All" else ()
    understood = Strategy(
        manner=said.type,
        soak=_soak(block.min_success_time) if said.type != "All" else timedelta(0),
        deadline=deadline(block.progress_deadline),
        shown_deadline=block.progress_deadline,
        max_failures=block.max_failures,
        max_concurrency=block.max_concurrency if said.type == "Progressive" else None,
        mandatory_names=frozenset(one.group_name for one in grouped if one.group_name),
        mandatory_indexes=frozenset(one.group_index for one in grouped if not one.group_name),
        aborts=said.failure_strategy == "AbortAll",
    )
    # What is no number is found out now, and not when it is first needed.
    understood.tolerated(1)
    understood.at_once(1)
    return understood


def deadline(text: str) -> timedelta | None:
    """Return how long a cluster may take; nothing, and the word None, are for ever."""
    if text in ("", "None"):
        return None
    if not _DEADLINE.fullmatch(text):
        raise SpecError(f'progressDeadline: expected a number of h, m or s, or None, got "{text}"')
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
