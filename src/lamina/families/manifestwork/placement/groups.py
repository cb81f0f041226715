"""
Decision groups of selected clusters, and the PlacementDecisions that list them.

A cluster stays in its PlacementDecision while it stays in its group, so that a reader
that gets one decision after another misses no cluster that is still selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice

from msgspec import Struct

from lamina.core.rollout.pace import Rounding, amount
from lamina.families.manifestwork.hub.strategy import Group
from lamina.families.manifestwork.labels import GROUP_INDEX, GROUP_NAME
from lamina.families.manifestwork.placement.api import GroupStrategy
from lamina.families.manifestwork.placement.cluster_selector import Matches, Scores, selector
from lamina.families.manifestwork.placement.view import listed
from lamina.objects import meta
from lamina.objects.types import Obj

MOST_IN_ONE = 100
"""How many clusters one PlacementDecision lists."""


class Slice(Struct, frozen=True, kw_only=True):
    """One PlacementDecision: its number, its group, and the clusters that it lists."""

    number: int
    group: Group
    clusters: tuple[str, ...]


def matchers(strategy: GroupStrategy) -> list[tuple[str, Matches]]:
    """Return the groups of the spec, and which clusters belong to each."""
    field = "spec.decisionStrategy.groupStrategy.decisionGroups"
    return [
        (one.group_name, selector(one.group_cluster_selector, f"{field}[{place}].groupClusterSelector"))
        for place, one in enumerate(strategy.decision_groups)
    ]


def group(
    chosen: Sequence[Obj],
    strategy: GroupStrategy,
    named: Sequence[tuple[str, Matches]],
    scores: Mapping[str, Scores],
) -> list[Group]:
    """Return the groups of selected clusters, numbered from 0; without clusters, one empty group."""
    size = _size(strategy.clusters_per_decision_group, len(chosen))
    left = sorted(chosen, key=meta.name)
    parts: list[tuple[str, tuple[str, ...]]] = []
    for name, matches in named:
        inside = [one for one in left if matches(one, scores.get(meta.name(one), {}))]
        taken = set(map(meta.name, inside))
        left = [one for one in left if meta.name(one) not in taken]
        parts += ((name, part) for part in _cut(inside, size))
    parts += (("", part) for part in _cut(left, size))
    found = [Group(index=index, name=name, clusters=part) for index, (name, part) in enumerate(parts)]
    return found or [Group(index=0)]


def _size(asked: int | str, total: int) -> int:
    wanted = amount(
        asked, total, Rounding.UP, field="spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup"
    )
    return wanted if 0 < wanted <= total else total


def _cut(clusters: Sequence[Obj], size: int) -> Iterator[tuple[str, ...]]:
    names = [meta.name(one) for one in clusters]
    for start in range(0, len(names), max(size, 1)):
        yield tuple(names[start : start + size])


def slices(groups: Sequence[Group], there: Mapping[int, Obj]) -> list[Slice]:
    """Return the decisions that list these groups, given the existing ones by number."""
    if not any(own.clusters for own in groups):
        # No cluster moves from one decision to another, so the first one can be used whatever its group was.
        return [Slice(number=1, group=groups[0], clusters=())]
    found: list[Slice] = []
    serving: dict[tuple[str, str], list[int]] = {}
    for number in sorted(there):
        labels = meta.labels(there[number])
        serving.setdefault((labels.get(GROUP_INDEX, ""), labels.get(GROUP_NAME, "")), []).append(number)
    # Existing decisions keep their numbers; new ones get the lowest free numbers.
    free = (number for number in count(1) if number not in there)
    for own in groups:
        needed = max(1, -(-len(own.clusters) // MOST_IN_ONE))
        numbers = serving.get((str(own.index), own.name), [])[:needed]
        holding: list[tuple[int, tuple[str, ...]]] = [(number, listed(there[number])) for number in numbers]
        holding += ((next(free), ()) for _ in range(needed - len(holding)))
        found += _filled(own, holding)
    return sorted(found, key=lambda one: (one.group.index, one.number))


def _filled(own: Group, holding: Sequence[tuple[int, tuple[str, ...]]]) -> Iterable[Slice]:
    wanted, placed = set(own.clusters), set[str]()
    kept: list[list[str]] = []
    for _, held in holding:
        staying = [name for name in dict.fromkeys(held) if name in wanted and name not in placed]
        staying = staying[:MOST_IN_ONE]
        placed.update(staying)
        kept.append(staying)
    new = iter([name for name in own.clusters if name not in placed])
    for (number, _), names in zip(holding, kept, strict=True):
        names += islice(new, MOST_IN_ONE - len(names))
        yield Slice(number=number, group=own, clusters=tuple(sorted(names)))
