"""The events of a rollout, one for each change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from lamina.core.model.events import normal, on_change, warning
from lamina.core.model.plan import Emit
from lamina.families.manifestwork.hub.phase import (
    ABORTED,
    AVAILABLE,
    CREATED,
    FOUND,
    OVERDUE,
    PROGRESSING,
    TABLE,
)
from lamina.families.manifestwork.hub.rollout import RolloutOutcome
from lamina.families.manifestwork.hub.view import View
from lamina.families.manifestwork.labels import MANAGER
from lamina.objects import conditions, meta
from lamina.objects.types import Condition

_FAILED = (OVERDUE, ABORTED)
_NAMES = {reason: reason for reason in (*_FAILED, AVAILABLE)}
"""The reasons of Progressing that are reported; a revision has an event of its own where its rollout begins."""


def rollout_events(outcome: RolloutOutcome, now: datetime) -> Iterator[Emit]:
    """Yield the events of a pass: another revision is rolled out, is complete or overdue, or is aborted."""
    view, findings, wanted = outcome.view, outcome.findings, outcome.revisions.wanted
    if findings.changed:
        reason = CREATED if findings.is_new else FOUND
        yield _event(view, reason, f"rolling out revision {wanted.name}, number {wanted.number}", now)
    old = conditions.find(view.status.get("conditions") or (), PROGRESSING)
    said = old.get("message", "") if old is not None else ""
    if view.unrecorded and view.unrecorded not in said:
        yield _event(view, "AbortUnavailable", view.unrecorded, now, is_warning=True)
    row = TABLE[outcome.phase].progressing
    if row is None:
        return
    new = Condition(type=PROGRESSING, status=row.status, reason=row.reason, message=outcome.message)
    before, occasion = None if findings.changed else old, _occasion(view)
    for event in on_change(
        view.obj, before, new, by=MANAGER, now=now, warns=_FAILED, occasion=occasion, names=_NAMES
    ):
        yield Emit(event=event)


def name_taken(view: View, message: str, now: datetime) -> Emit:
    """Return the event that another object has the name of a revision."""
    return _event(view, "RevisionNameTaken", message, now, is_warning=True)


def revision_missing(view: View, message: str, now: datetime) -> Emit:
    """Return the event that there is no revision to roll back to."""
    return _event(view, "RevisionMissing", message, now, is_warning=True)


def _event(view: View, reason: str, message: str, now: datetime, *, is_warning: bool = False) -> Emit:
    kind = warning if is_warning else normal
    return Emit(event=kind(view.obj, reason, message, by=MANAGER, now=now, occasion=_occasion(view)))


def _occasion(view: View) -> str:
    return str(meta.generation(view.obj))
