"""
Rollouts that are aborted when a failure budget is exceeded.

    the rollout              the goal   before any target moves
    goes on                  wanted     the wanted revision is recorded
    has exceeded a budget    stable     the abort is confirmed by live reads, then recorded
    is recorded as aborted   stable     nothing; the abort stands until another revision is wanted
    cannot be rolled back    wanted     nothing; the rollout stops by its pace

The stable revision is the last one that every target was healthy on. An abort
is not taken back, and a stale cache may hide targets that have recovered: so it
is confirmed by live reads before it is recorded, and recorded before any target
moves, so that a process that restarts continues in the same direction.

`core.rollout.failure_budget` counts the failures, and says which budget is exceeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from lamina.core.live_check import Confirmation, LiveRead
from lamina.core.model.plan import Action, Stage
from lamina.core.rollout.revision import Revision

_REPORT = "update status", "emit events"


class Rollout(Struct, frozen=True, kw_only=True):
    """The revisions that a rollout is between, and when it was recorded as aborted, if it was."""

    wanted: Revision
    stable: Revision | None
    """None where no revision was ever stable, or its content is lost."""
    aborted_at: datetime | None = None

    @property
    def can_roll_back(self) -> bool:
        return self.stable is not None and not self.stable.equals(self.wanted)


class Breach(Struct, frozen=True):
    """A failure budget that is exceeded, as a message, and what confirms it."""

    message: str
    confirm: Callable[[], Confirmation[Any]]


class Decision(Struct, frozen=True, kw_only=True):
    """
    Whether a rollout is aborted.

    `aborted_at` is recorded where it `is_recorded`, and to be recorded otherwise.
    `breach` says which budget is exceeded. While `pending` reads have to be
    answered, or the cache `is_stale`, nothing may be written.
    """

    aborted_at: datetime | None = None
    is_recorded: bool = False
    breach: str = ""
    pending: tuple[LiveRead, ...] = ()
    is_stale: bool = False

    @property
    def is_aborted(self) -> bool:
        return self.aborted_at is not None


def decide_abort(rollout: Rollout, breaches: Sequence[Breach], now: datetime) -> Decision:
    """Return whether a rollout is aborted: it was, or a breach is confirmed and there is a revision to return to."""
    if rollout.aborted_at is not None:
        return Decision(aborted_at=rollout.aborted_at, is_recorded=True)
    if not breaches or not rollout.can_roll_back:
        return Decision(breach=breaches[0].message if breaches else "")
    pending: dict[LiveRead, None] = {}
    for breach in breaches:
        confirmation = breach.confirm()
        if confirmation.is_confirmed:
            return Decision(aborted_at=now, breach=breach.message)
        pending |= dict.fromkeys(confirmation.pending)
    return Decision(breach=breaches[0].message, pending=tuple(pending), is_stale=not pending)


def rollout_stages(
    *,
    records: Sequence[Action],
    status: Action | None,
    events: Sequence[Action],
    moves: Sequence[tuple[str, Sequence[Action]]],
    prune: Sequence[Action],
    status_last: bool,
    min_interval: timedelta,
) -> tuple[Stage, ...]:
    """
    Return the stages of a pass: revisions and status are recorded before any target moves.

    A status that records no decision may be written last, and then even where
    moves fail, because it counts how far they have come.
    """
    report: list[tuple[str, Sequence[Action]]] = []
    if status is not None:
        report = [(_REPORT[0], (status,)), (_REPORT[1], events)]
    ordered = [*moves, *report] if status_last else [*report, *moves]
    return tuple(
        Stage(
            name,
            tuple(actions),
            run_after_failure=status_last and name in _REPORT,
            min_interval=min_interval if name == _REPORT[0] else timedelta(0),
        )
        for name, actions in (("record revisions", records), *ordered, ("prune revisions", prune))
        if actions
    )
