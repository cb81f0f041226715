"""
Rollouts in batches: targets of a batch move once all targets of the batches before it are settled.

Within a batch, groups move one after another, each as a whole, or all targets
move in the order of their keys, a few at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.rollout.pace import Pace
from lamina.core.rollout.step import Standing, Step, Target, advance, advance_by_group


class Group(Struct, frozen=True, kw_only=True):
    """Targets that move together, by key; more failures among them than `tolerated` stop the batch."""

    index: int
    targets: tuple[str, ...]
    tolerated: int = 0


class Batch(Struct, frozen=True, kw_only=True):
    """
    Targets that move under one rule.

    In a batch that is `ordered` the groups move by their index, and each group
    tolerates failures of its own; otherwise groups do not matter, and the pace
    says how many targets move and fail.
    """

    groups: tuple[Group, ...]
    pace: Pace
    ordered: bool = False


def advance_batches(
    goal: str, batches: Sequence[Batch], targets: Mapping[str, Target], now: datetime
) -> Step:
    """
    Return the next step of a rollout in batches: that of the first batch that is not settled.

    The standing is that of all targets, and time is counted in every batch.
    """
    steps = [_advance(goal, batch, targets, now) for batch in batches]
    if len(steps) == 1:
        return steps[0]
    leading = next((step for step in steps if not _is_settled(step)), steps[-1])
    standing = {key: where for step in steps for key, where in step.standing.items()}
    waits = [step.requeue_after for step in steps if step.requeue_after is not None]
    done = leading.done and leading is steps[-1]
    return replace(leading, standing=standing, requeue_after=min(waits, default=None), done=done)


def _advance(goal: str, batch: Batch, targets: Mapping[str, Target], now: datetime) -> Step:
    if not batch.ordered:
        keys = sorted(chain.from_iterable(group.targets for group in batch.groups))
        return advance(goal, [targets[key] for key in keys], batch.pace, now)
    members = sorted((key, group.index) for group in batch.groups for key in group.targets)
    grouped = [replace(targets[key], group=index) for key, index in members]
    tolerated = {group.index: group.tolerated for group in batch.groups}
    return advance_by_group(goal, grouped, batch.pace, tolerated, now)


def _is_settled(step: Step) -> bool:
    return all(where is Standing.SETTLED for where in step.standing.values())
