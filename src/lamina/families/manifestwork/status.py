"""The status of a replica set: what was seen and what is about to be done, in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from lamina.families.manifestwork.album import Album
from lamina.families.manifestwork.progress import Counts, Progress
from lamina.families.manifestwork.situation import (
    APPLIED,
    AS_EXPECTED,
    EMPTY,
    NOT_AS_EXPECTED,
    PROCESSING,
    PROGRESSING,
    ROLLED_OUT,
    TABLE,
    VERIFIED,
    Findings,
    Said,
    Situation,
    progressing,
)
from lamina.families.manifestwork.view import View
from lamina.objects import conditions, meta
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj

REFUSED = "; refused: "
"""What stands between what is to be done and why that was not possible, in a message."""
_LONGEST = 32768
_COUNTED = ("conditions", "summary", "placementSummary")


class Outcome(Struct, frozen=True, kw_only=True):
    """What a pass comes to: where the rollout is, and the sentence that says so."""

    situation: Situation
    findings: Findings
    because: str
    aborted_at: datetime | None
    moves: int
    """How many works are about to be written."""
    tries: bool = False
    """Whether anything is tried that may be refused."""


def status(
    view: View, revisions: Album, marches: Sequence[Progress], outcome: Outcome, now: datetime
) -> Made:
    """Return the whole status."""
    total = Counts()
    for one in marches:
        total.add(one.counts)
    promoted = outcome.situation is Situation.DONE
    fields: Made = {
        **view.status,
        "conditions": _conditions(view, marches, total, outcome, now),
        "summary": _summary(total),
        "placementSummary": [_placed(one) for one in marches],
        "updateRevision": revisions.wanted.tag,
        "currentRevision": revisions.wanted.tag if promoted else revisions.current,
        "abortedTime": stamp(outcome.aborted_at) if outcome.aborted_at is not None else None,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def is_report(before: Obj, after: Obj) -> bool:
    """Say whether two statuses differ only in how many clusters have come how far: nothing depends on that."""
    return _record(before) == _record(after)


def _record(status: Obj) -> tuple[list[Any], Made]:
    made: Sequence[Condition] = status.get("conditions") or ()
    said = [(one["type"], one["status"], one.get("reason"), one.get("observedGeneration")) for one in made]
    return said, {name: value for name, value in status.items() if name not in _COUNTED}


def _summary(counts: Counts) -> Made:
    return {
        "total": counts.total,
        "progressing": counts.progressing,
        "available": counts.available,
        "degraded": counts.degraded,
        "applied": counts.applied,
        "desiredTotal": counts.desired,
        "updated": counts.updated,
    }


def _placed(one: Progress) -> Made:
    counts = one.counts
    groups = f"{one.placed.decision_groups} ({counts.total} / {len(one.clusters)} clusters applied)"
    return {
        "name": one.placed.name,
        "availableDecisionGroups": groups,
        "summary": _summary(counts),
    }


def _conditions(
    view: View, marches: Sequence[Progress], total: Counts, outcome: Outcome, now: datetime
) -> list[Condition]:
    row = TABLE[outcome.situation]
    said = {
        VERIFIED: _verified(marches),
        ROLLED_OUT: (row.rolled_out, outcome.because),
        APPLIED: (row.applied, outcome.because) if row.applied else _applied(total, outcome.moves),
        PROGRESSING: (row.progressing or progressing(outcome.findings), outcome.because),
    }
    made: Sequence[Condition] = view.status.get("conditions") or ()
    for name, ((value, reason), message) in said.items():
        made = conditions.with_condition(
            made,
            name,
            value,
            now=now,
            reason=reason,
            message=_kept_complaint(made, name, message, tries=outcome.tries)[:_LONGEST],
            generation=meta.generation(view.obj),
        )
    return list(made)


def _kept_complaint(made: Sequence[Condition], name: str, message: str, *, tries: bool) -> str:
    """
    Return what a condition says, with what was refused the last time while the same is tried again.

    Each attempt would otherwise take the complaint back, only to make it again.
    """
    old = conditions.find(made, name)
    before = old.get("message", "") if old is not None else ""
    return before if tries and before.startswith(message + REFUSED) else message


def _verified(marches: Sequence[Progress]) -> tuple[Said, str]:
    frozen = [one.placed for one in marches if one.placed.frozen]
    if frozen:
        said = "; ".join(one.frozen for one in frozen)
        return Said("False", frozen[0].reason), f"{said}; works stay as they are"
    if not any(one.clusters for one in marches):
        return Said("False", EMPTY), "no cluster is selected"
    count = sum(len(one.clusters) for one in marches)
    return Said("True", AS_EXPECTED), f"{count} clusters are selected"


def _applied(counts: Counts, moves: int) -> tuple[Said, str]:
    waiting = counts.unsettled + moves
    if waiting and not counts.degraded:
        return Said("False", PROCESSING), f"{waiting} works are on their way"
    fine = counts.available == counts.total and not counts.progressing and not counts.degraded
    said = f"of {counts.total} works {counts.available} are available, {counts.degraded} degraded"
    if fine and counts.total:
        return Said("True", AS_EXPECTED), said
    return Said("False", NOT_AS_EXPECTED), said


def with_only(view: View, name: str, said: Said, message: str, now: datetime) -> Made:
    """Return the status with one condition set, and nothing else changed."""
    made = conditions.with_condition(
        view.status.get("conditions") or (),
        name,
        said.status,
        now=now,
        reason=said.reason,
        message=message,
        generation=meta.generation(view.obj),
    )
    return {**view.status, "conditions": made}
