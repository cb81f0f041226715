"""Findings: what conditions of a definition say, before they are written, and the types and reasons of these."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Obj

RESOLVED: Final = "GraphRevisionsResolved"
ACCEPTED: Final = "GraphAccepted"
KIND: Final = "KindReady"
CONTROLLER: Final = "ControllerReady"
READY: Final = "Ready"
PUBLISHED: Final = "RevisionCurrent"
ROLLED_BACK: Final = "RollbackSucceeded"
PROPAGATED: Final = "Propagated"
VERIFIED: Final = "GraphVerified"
"""On revisions of a definition."""

DEPENDENTS: Final = (RESOLVED, ACCEPTED, KIND, CONTROLLER)
"""What the root condition Ready depends on."""
ORDER: Final = {name: n for n, name in enumerate((*DEPENDENTS, PUBLISHED, ROLLED_BACK, PROPAGATED, READY))}
"""The order of the conditions; any other comes before the root."""
SERVING: Final = (ACCEPTED, KIND, CONTROLLER)
"""What the state Active depends on."""

AWAITING: Final = "AwaitingReconciliation"
SETTLING: Final = "WaitingForGraphRevisionSettlement"
STALE_APPROVAL: Final = "StaleApproval"


class Finding(NamedTuple):
    """A condition without its type and its times."""

    status: str
    reason: str
    message: str = ""

    @property
    def is_true(self) -> bool:
        return self.status == "True"


VALID: Final = Finding("True", "Valid", "resource graph and schema are valid")
RUNNING: Final = Finding("True", "Running", "controller is running")


def with_finding(
    found: Sequence[Condition], name: str, finding: Finding, obj: Obj, now: datetime
) -> list[Condition]:
    """Return the conditions of an object with this one."""
    return conditions.with_condition(
        found,
        name,
        finding.status,
        now=now,
        reason=finding.reason,
        message=finding.message,
        generation=meta.generation(obj),
    )


def worst(found: Sequence[Condition]) -> Finding | None:
    """Return the worst of some conditions, False before Unknown, and of equally bad ones the newest; None if all are True."""
    for status in ("False", "Unknown"):
        bad = [one for one in found if one["status"] == status]
        if bad:
            one = max(bad, key=lambda one: one.get("lastTransitionTime") or "")
            return Finding(status, one.get("reason", ""), one.get("message", ""))
    return None


def invalid(because: str) -> Finding:
    """The content of a definition does not compile."""
    return Finding("False", "InvalidResourceGraph", because)


def failed(because: str) -> Finding:
    return Finding("False", "Failed", because)


def awaiting(name: str, because: str = "") -> Finding:
    """A condition is not known yet."""
    return Finding("Unknown", AWAITING, because or f'condition "{name}" is awaiting reconciliation')


def rolled_back_message(number: int, content_from: int) -> str:
    return f"Created revision {number} (content from revision {content_from})"
