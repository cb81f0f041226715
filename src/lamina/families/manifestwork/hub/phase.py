"""
The phase of a rollout, and the conditions of the replica set in each phase.

The first phase that holds counts. A row has the status and the reason of each
condition; where it has none, the condition is kept, or the numbers of works in
each state decide.
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


class Phase(StrEnum):
    """The phase of a rollout."""

    ABORTING = "the rollout is aborted, and no work is rolled back yet"
    ABORTED = "the rollout is aborted, and works are rolled back"
    EMPTY = "no cluster is selected"
    DISTURBED = "all clusters had the revision, and one joined, left or degraded since"
    OVERDUE = "too many clusters were not healthy in time, and the rollout cannot or must not be aborted"
    HALTED = "too many clusters failed, some of them before their deadline, and an abort may follow"
    FAILING = "too many clusters failed, some of them before their deadline"
    COMPLETE = "all clusters have the revision and are healthy"
    CREATED = "in progress, with a new revision"
    FOUND = "in progress, with an earlier revision, or after a deadline was exceeded"


class Result(NamedTuple):
    """The status and the reason of a condition."""

    status: str
    reason: str


class Row(Struct, frozen=True):
    """The conditions in one phase; None: unchanged, or by the numbers of works."""

    progressing: Result | None
    rolled_out: Result
    applied: Result | None


_IN_PROGRESS = Result("False", "Progressing")
_BAD = Result("False", NOT_AS_EXPECTED)

TABLE: Mapping[Phase, Row] = {
    Phase.ABORTING: Row(Result("False", OVERDUE), _IN_PROGRESS, _BAD),
    Phase.ABORTED: Row(Result("False", ABORTED), Result("False", DEGRADED), _BAD),
    Phase.EMPTY: Row(None, Result("True", COMPLETE), Result("False", EMPTY)),
    Phase.DISTURBED: Row(Result("False", AVAILABLE), _IN_PROGRESS, None),
    Phase.OVERDUE: Row(Result("False", OVERDUE), Result("False", DEGRADED), _BAD),
    Phase.HALTED: Row(None, _IN_PROGRESS, _BAD),
    Phase.FAILING: Row(None, Result("False", DEGRADED), _BAD),
    Phase.COMPLETE: Row(Result("False", AVAILABLE), Result("True", COMPLETE), None),
    Phase.CREATED: Row(Result("True", CREATED), _IN_PROGRESS, None),
    Phase.FOUND: Row(Result("True", FOUND), _IN_PROGRESS, None),
}


class Findings(Struct, frozen=True, kw_only=True):
    """What the phase of a rollout is decided from."""

    is_aborted: bool
    is_recorded: bool
    """Whether the abort was recorded before this pass."""
    changed: bool
    """Whether another template is wanted than the recorded one."""
    is_new: bool
    reason: str
    """The reason of the condition Progressing before this pass."""
    is_current: bool
    """Whether the wanted revision has reached all clusters before."""
    desired: int
    updated: int
    overdue: bool
    failing: bool
    may_abort: bool = False
    """Whether an abort follows where clusters that failed do not recover before their deadline."""
    unknown: bool = False
    """Whether it is unknown which clusters a placement selects."""


def phase_of(findings: Findings) -> Phase:
    """Return the phase of a rollout; the order of the branches is the policy."""
    if findings.is_aborted:
        return Phase.ABORTED if findings.is_recorded else Phase.ABORTING
    if not findings.desired and not findings.unknown:
        return Phase.EMPTY
    is_done = 0 < findings.desired == findings.updated
    if not findings.changed and findings.is_current and findings.reason == AVAILABLE and not is_done:
        return Phase.DISTURBED
    if findings.overdue:
        return Phase.OVERDUE
    if findings.failing:
        # The conditions of an abort begin with PlacementRolledOut Progressing: no reason is left and taken again.
        return Phase.HALTED if findings.may_abort else Phase.FAILING
    if is_done and (findings.is_current or not findings.unknown):
        # No revision becomes current while the clusters of a placement may be missing.
        return Phase.COMPLETE
    return Phase.CREATED if progressing(findings).reason == CREATED else Phase.FOUND


def progressing(findings: Findings) -> Result:
    """Return the condition Progressing of a rollout that is in progress, or has no clusters."""
    if findings.changed or not findings.reason:
        return Result("True", CREATED if findings.is_new else FOUND)
    if findings.reason == AVAILABLE and findings.is_current:
        return Result("False", AVAILABLE)
    return Result("True", findings.reason if findings.reason in (CREATED, FOUND) else FOUND)
