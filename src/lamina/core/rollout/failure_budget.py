"""
Failure budgets: how many of some targets may fail before a rollout stops or is aborted.

A budget counts all of its targets, including those that the pace has not
reached: a target that another writer moved and that fails is a failure too.

Here failures are only counted: `core.rollout.abort` decides whether an exceeded
budget aborts the rollout, and confirms it by live reads first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lamina.core.rollout.step import Standing, Target, named_with_reasons


class FailureBudget(Struct, frozen=True, kw_only=True):
    """
    Targets whose failures are counted together, and how many of them may fail.

    `scope` follows the number of targets in a message. Budgets of targets that
    move one after another are `ordered`: those after it apply only once no
    target of this one is waiting or moving.
    """

    targets: tuple[str, ...]
    limit: int
    scope: str = ""
    ordered: bool = False


class Failures(Struct, frozen=True):
    """The failures of a rollout, as messages that are empty while no budget is exceeded."""

    overdue: str = ""
    """More targets than tolerated were not healthy before their deadline."""
    failing: str = ""
    """More targets than tolerated have failed, some of them before their deadline."""
    failed: int = 0
    """How many targets were not healthy before their deadline, tolerated or not."""
    exceeding: tuple[str, ...] = ()
    """The overdue targets of the exceeded budget."""
    tolerated: int = 0
    """How many of those the budget tolerates."""


def count_failures(
    budgets: Sequence[FailureBudget],
    targets: Mapping[str, Target],
    standing: Mapping[str, Standing],
    *,
    noun: str,
    deadline: str,
    before_deadline: bool,
) -> Failures:
    """
    Return the failures of a rollout; of several exceeded budgets the first counts.

    `noun` and `deadline` are for the message. With `before_deadline`, targets
    that report a failure count before their deadline too.
    """
    overdue = failing = ""
    exceeding, tolerated = tuple[str, ...](), 0
    for budget in budgets:
        late = [targets[key] for key in budget.targets if standing.get(key) is Standing.FAILED]
        if len(late) > budget.limit and not overdue:
            overdue = _message(late, budget, noun, f"not healthy within {deadline}")
            exceeding, tolerated = tuple(one.key for one in late), budget.limit
        if before_deadline and not failing:
            failed = [targets[key] for key in budget.targets if _has_failed(standing.get(key), targets[key])]
            if len(failed) > budget.limit:
                failing = _message(failed, budget, noun, "failed")
        if budget.ordered and any(_is_busy(standing.get(key), targets[key]) for key in budget.targets):
            break
    count = sum(1 for where in standing.values() if where is Standing.FAILED)
    return Failures(overdue, failing, count, exceeding, tolerated)


def _is_busy(where: Standing | None, target: Target) -> bool:
    return where is Standing.WAITING or (where is Standing.MOVING and not target.failing)


def _has_failed(where: Standing | None, target: Target) -> bool:
    return where is Standing.FAILED or (where is Standing.MOVING and target.failing)


def _message(failed: Sequence[Target], budget: FailureBudget, noun: str, what: str) -> str:
    count = f"{len(failed)} of {len(budget.targets)} {noun}{budget.scope}"
    return f"{count} {what}, {budget.limit} tolerated: {named_with_reasons(failed)}"
