"""The status of a ManifestWorkReplicaSet: what was observed, and what is about to be written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import to_builtins

from lamina.families.manifestwork.hub.phase import (
    APPLIED,
    AS_EXPECTED,
    EMPTY,
    NOT_AS_EXPECTED,
    PROCESSING,
    PROGRESSING,
    ROLLED_OUT,
    TABLE,
    VERIFIED,
    Phase,
    Result,
    progressing,
)
from lamina.families.manifestwork.hub.placement_progress import Counts, Progress
from lamina.families.manifestwork.hub.rollout import RolloutOutcome
from lamina.families.manifestwork.hub.view import View
from lamina.objects import conditions, meta
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj

REFUSED = "; refused: "
"""Separates a message from the error of the write that it announces."""
_LONGEST = 32768
_COUNTED = ("conditions", "summary", "placementSummary")


def status(outcome: RolloutOutcome, *, moves: int, writes: bool, now: datetime) -> Made:
    """Return the whole status; `moves` works are about to be written, and `writes` says whether anything is."""
    view, revisions, aborted_at = outcome.view, outcome.revisions, outcome.decision.aborted_at
    total = Counts()
    for one in outcome.progress:
        total.add(one.counts)
    completed = outcome.phase is Phase.COMPLETE
    fields: Made = {
        **view.status,
        "conditions": _conditions(outcome, total, moves, writes=writes, now=now),
        "summary": _summary(total),
        "placementSummary": [_placement(one) for one in outcome.progress],
    }
    if not view.unrecorded:
        fields |= {
            "updateRevision": revisions.wanted.hash,
            "currentRevision": revisions.wanted.hash if completed else revisions.current,
            "abortedTime": stamp(aborted_at) if aborted_at is not None else None,
        }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def differ_in_counts(before: Obj, after: Obj) -> bool:
    """Say whether two statuses record the same decisions, and differ only in numbers of clusters, if at all."""
    return _record(before) == _record(after)


def _record(status: Obj) -> tuple[list[Any], Made]:
    made: Sequence[Condition] = status.get("conditions") or ()
    decided = [(one["type"], one["status"], one.get("reason"), one.get("observedGeneration")) for one in made]
    return decided, {name: value for name, value in status.items() if name not in _COUNTED}


def _summary(counts: Counts) -> Made:
    summary: Made = to_builtins(counts)
    del summary["unsettled"]
    return summary


def _placement(one: Progress) -> Made:
    counts = one.counts
    groups = f"{one.placement.decision_groups} ({counts.total} / {len(one.clusters)} clusters applied)"
    return {"name": one.placement.name, "availableDecisionGroups": groups, "summary": _summary(counts)}


def _conditions(
    outcome: RolloutOutcome, total: Counts, moves: int, *, writes: bool, now: datetime
) -> list[Condition]:
    view, row = outcome.view, TABLE[outcome.phase]
    results = {
        VERIFIED: _verified(outcome.progress),
        ROLLED_OUT: (row.rolled_out, outcome.message),
        APPLIED: (row.applied, outcome.message) if row.applied else _applied(total, moves),
        PROGRESSING: (row.progressing or progressing(outcome.findings), with_limits(view, outcome.message)),
    }
    made: Sequence[Condition] = view.status.get("conditions") or ()
    for name, ((value, reason), message) in results.items():
        made = conditions.with_condition(
            made,
            name,
            value,
            now=now,
            reason=reason,
            message=_with_last_error(made, name, message, writes=writes)[:_LONGEST],
            generation=meta.generation(view.obj),
        )
    return list(made)


def with_limits(view: View, message: str) -> str:
    """Return the message of Progressing: it says so where no rollout can be aborted."""
    return f"{message}; {view.unrecorded}" if view.unrecorded else message


def _with_last_error(made: Sequence[Condition], name: str, message: str, *, writes: bool) -> str:
    """
    Return the message of a condition, with the error of the last pass while the same writes are retried.

    Otherwise each retry would remove the error from the status and add it again.
    """
    old = conditions.find(made, name)
    before = old.get("message", "") if old is not None else ""
    return before if writes and before.startswith(message + REFUSED) else message


def _verified(placements: Sequence[Progress]) -> tuple[Result, str]:
    frozen = [one.placement for one in placements if one.placement.frozen]
    if frozen:
        reasons = "; ".join(one.frozen for one in frozen)
        return Result("False", frozen[0].reason), f"{reasons}; existing works are left unchanged"
    count = sum(len(one.clusters) for one in placements)
    if not count:
        return Result("False", EMPTY), "no cluster is selected"
    return Result("True", AS_EXPECTED), f"{count} clusters are selected"


def _applied(counts: Counts, moves: int) -> tuple[Result, str]:
    waiting = counts.unsettled + moves
    if waiting and not counts.degraded:
        return Result("False", PROCESSING), f"{waiting} works are in progress"
    healthy = counts.available == counts.total and not counts.progressing and not counts.degraded
    message = f"of {counts.total} works {counts.available} are available, {counts.degraded} degraded"
    if healthy and counts.total:
        return Result("True", AS_EXPECTED), message
    return Result("False", NOT_AS_EXPECTED), message


def with_condition(view: View, name: str, result: Result, message: str, now: datetime) -> Made:
    """Return the status with one condition set, and nothing else changed."""
    made = conditions.with_condition(
        view.status.get("conditions") or (),
        name,
        result.status,
        now=now,
        reason=result.reason,
        message=message,
        generation=meta.generation(view.obj),
    )
    return {**view.status, "conditions": made}
