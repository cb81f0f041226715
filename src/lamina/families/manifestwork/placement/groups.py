"""
The groups that chosen clusters go out in, and the objects that say who is in which.

A cluster stays in the object it is in for as long as it stays in its group, so
that whoever reads them one after another misses nobody who has not left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice

from msgspec import Struct

from lamina.core.pace import Rounding, amount
from lamina.families.manifestwork.names import GROUP_INDEX, GROUP_NAME
from lamina.families.manifestwork.placement.api import GroupStrategy
from lamina.families.manifestwork.placement.selecting import Matches, Scores, selector
from lamina.families.manifestwork.strategy import Group
from lamina.objects import meta
from lamina.objects.types import Obj

MOST_IN_ONE = 100
"""How many decisions one object holds."""


class Slice(Struct, frozen=True, kw_only=True):
    """One object of decisions: its number, the group it belongs to, and who is in it."""

    number: int
    group: Group
    clusters: tuple[str, ...]


def matchers(strategy: GroupStrategy) -> list[tuple[str, Matches]]:
    """Return the groups that were named beforehand, and who belongs to each."""
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
    """Return the groups of the chosen clusters, numbered from 0; of nobody, one group without anybody."""
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
    """Return the objects that hold these groups, given those that are there by number."""
    if not any(own.clusters for own in groups):
        # Nobody moves from one object to another, so whatever the first one was for, it can be for nobody.
        return [Slice(number=1, group=groups[0], clusters=())]
    found: list[Slice] = []
    serving: dict[tuple[str, str], list[int]] = {}
    for number in sorted(there):
        labels = meta.labels(there[number])
        serving.setdefault((labels.get(GROUP_INDEX, ""), labels.get(GROUP_NAME, "")), []).append(number)
    # Those that are there keep their numbers; new ones get what is free, the lowest first.
    free = (number for number in count(1) if number not in there)
    for own in groups:
        needed = max(1, -(-len(own.clusters) // MOST_IN_ONE))
        numbers = serving.get((str(own.index), own.name), [])[:needed]
        holding: list[tuple[int, tuple[str, ...]]] = [(number, _held(there[number])) for number in numbers]
        holding += ((next(free), ()) for _ in range(needed - len(holding)))
        found += _filled(own, holding)
    return sorted(found, key=lambda one: (one.group.index, one.number))


def _held(decision: Obj) -> tuple[str, ...]:
    return tuple(one["clusterName"] for one in (decision.get("status") or {}).get("decisions") or ())


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
