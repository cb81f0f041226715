"""
What a rollout has come to, and what the conditions of its replica set say then.

The first situation that holds counts, from the top. What a row says of a
condition is its status and its reason; where it says nothing, the condition is
kept, or the number of works in each state decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

VERIFIED = "PlacementVerified"
ROLLED_OUT = "PlacementRolledOut"
APPLIED = "ManifestworkApplied"
PROGRESSING = "Progressing"

CREATED = "NewRevisionCreated"
FOUND = "FoundNewRevision"
AVAILABLE = "NewManifestWorkAvailable"
OVERDUE = "ProgressDeadlineExceeded"
ABORTED = "RolloutAborted"
DEGRADED = "RolloutDegraded"
COMPLETE = "Complete"
AS_EXPECTED = "AsExpected"
NOT_AS_EXPECTED = "NotAsExpected"
PROCESSING = "Processing"
NOT_FOUND = "PlacementDecisionNotFound"
EMPTY = "PlacementDecisionEmpty"
INVALID_NAME = "InvalidManifestWorkName"


class Situation(StrEnum):
    """What a rollout has come to."""

    TURNING = "the rollout is aborted, and works are about to be rewritten"
    TURNED = "the rollout is aborted, and works were rewritten, or it was tried"
    NOBODY = "no cluster is selected"
    SETTLED = "all clusters had it before, and one joined, left or got worse since"
    LATE = "too many clusters did not get well in time, and there is no way back or none is wanted"
    FAILING = "too many clusters failed, some of which still have time"
    DONE = "all clusters have it and are well"
    UNDER_WAY = "in progress, with a revision that was taken for it"
    AGAIN = "in progress, with a revision that was there before, or after a deadline had passed"


class Said(NamedTuple):
    """The status and the reason of a condition."""

    status: str
    reason: str


class Row(Struct, frozen=True):
    """What the conditions say in one situation; None: as it was, or as the works are counted."""

    progressing: Said | None
    rolled_out: Said
    applied: Said | None


_OUT = Said("False", "Progressing")
_BAD = Said("False", NOT_AS_EXPECTED)

TABLE: Mapping[Situation, Row] = {
    Situation.TURNING: Row(Said("False", OVERDUE), _OUT, _BAD),
    Situation.TURNED: Row(Said("False", ABORTED), Said("False", DEGRADED), _BAD),
    Situation.NOBODY: Row(None, Said("True", COMPLETE), Said("False", EMPTY)),
    Situation.SETTLED: Row(Said("False", AVAILABLE), _OUT, None),
    Situation.LATE: Row(Said("False", OVERDUE), Said("False", DEGRADED), _BAD),
    Situation.FAILING: Row(None, Said("False", DEGRADED), _BAD),
    Situation.DONE: Row(Said("False", AVAILABLE), Said("True", COMPLETE), None),
    Situation.UNDER_WAY: Row(Said("True", CREATED), _OUT, None),
    Situation.AGAIN: Row(Said("True", FOUND), _OUT, None),
}


class Findings(Struct, frozen=True, kw_only=True):
    """What is known of a rollout when its situation is decided."""

    is_aborted: bool
    was_recorded: bool
    """Whether that it is aborted was written down before this pass."""
    changed: bool
    """Whether the template is another than when it was last looked at."""
    is_new: bool
    was: str
    """The reason of the condition Progressing as it was."""
    is_current: bool
    """Whether the wanted revision has reached everybody before."""
    desired: int
    updated: int
    overdue: bool
    failing: bool
    unknown: bool = False
    """Whether it is not known whom some placement selects."""


def situation(findings: Findings) -> Situation:
    """Return what a rollout has come to. The order of the branches is the policy."""
    if findings.is_aborted:
        return Situation.TURNED if findings.was_recorded else Situation.TURNING
    if not findings.desired and not findings.unknown:
        return Situation.NOBODY
    is_done = 0 < findings.desired == findings.updated
    if not findings.changed and findings.is_current and findings.was == AVAILABLE and not is_done:
        return Situation.SETTLED
    if findings.overdue:
        return Situation.LATE
    if findings.failing:
        return Situation.FAILING
    if is_done and (findings.is_current or not findings.unknown):
        # Nobody is promoted while a placement's clusters may be missing.
        return Situation.DONE
    return Situation.UNDER_WAY if progressing(findings).reason == CREATED else Situation.AGAIN


def progressing(findings: Findings) -> Said:
    """Return what Progressing says of a rollout that goes on, or that nobody is concerned by."""
    if findings.changed or not findings.was:
        return Said("True", CREATED if findings.is_new else FOUND)
    if findings.was == AVAILABLE and findings.is_current:
        return Said("False", AVAILABLE)
    return Said("True", findings.was if findings.was in (CREATED, FOUND) else FOUND)
