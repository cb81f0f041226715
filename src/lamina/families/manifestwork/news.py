"""Events: what happened to a rollout, told once each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from lamina.core.events import normal, warning
from lamina.core.plan import NOTHING, Emit, Plan, Stage, set_status
from lamina.core.world import World
from lamina.errors import LaminaError, PlanFailed
from lamina.families.manifestwork.album import Album
from lamina.families.manifestwork.names import MANAGER
from lamina.families.manifestwork.situation import (
    ABORTED,
    APPLIED,
    AVAILABLE,
    CREATED,
    FOUND,
    OVERDUE,
    PROGRESSING,
    TABLE,
)
from lamina.families.manifestwork.status import REFUSED, Outcome
from lamina.families.manifestwork.view import View
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Ref

_FIRST = 3
_BAD = (OVERDUE, ABORTED)


def news(view: View, revisions: Album, outcome: Outcome, now: datetime) -> Iterator[Emit]:
    """Yield what has happened: another revision goes out, it reached everybody, it is late, it is aborted."""
    findings, name = outcome.findings, revisions.wanted.name
    if findings.changed:
        reason = CREATED if findings.is_new else FOUND
        said = f"revision {name} goes out, number {revisions.wanted.number}"
        yield _told(view, reason, said, now)
    row = TABLE[outcome.situation].progressing
    if row is None or row.reason in (CREATED, FOUND) or (row.reason == findings.was and not findings.changed):
        return
    if row.reason in _BAD or row.reason == AVAILABLE:
        yield _told(view, row.reason, outcome.because, now)


def collision(view: View, because: str, now: datetime) -> Emit:
    """Tell that somebody has the name of a revision."""
    return _told(view, "RevisionNameTaken", because, now, bad=True)


def missing(view: View, because: str, now: datetime) -> Emit:
    """Tell that there is no way back."""
    return _told(view, "RevisionMissing", because, now, bad=True)


def _told(view: View, reason: str, message: str, now: datetime, *, bad: bool = False) -> Emit:
    tell = warning if bad or reason in _BAD else normal
    occasion = str(meta.generation(view.obj))
    return Emit(event=tell(view.obj, reason, message, by=MANAGER, now=now, occasion=occasion))


def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
    """
    Say on a replica set what was refused.

    While a rollout is aborted that stands beside how far the way back has come;
    otherwise beside how its works do.
    """
    obj = world.get(ref)
    if obj is None or meta.is_deleting(obj):
        return NOTHING
    told = Emit(event=warning(obj, "SyncError", f"Sync error: {error}", by=MANAGER, now=now), counts=True)
    status = obj.get("status") or {}
    name = PROGRESSING if status.get("abortedTime") else APPLIED
    made: list[Condition] = list(status.get("conditions") or ())
    old = conditions.find(made, name)
    if old is None:
        return Plan(stages=(Stage("tell", (told,)),), because=str(error))
    message = old.get("message", "").partition(REFUSED)[0] + REFUSED + _words(error)
    new: Condition = {**old, "message": message}
    said = [new if one is old else one for one in made]
    patch = set_status(obj, {**status, "conditions": said})
    stages = [Stage("say so", (patch,))] if patch is not None else []
    return Plan(stages=(*stages, Stage("tell", (told,))), because=str(error))


def _words(error: LaminaError) -> str:
    if not isinstance(error, PlanFailed):
        return str(error)
    first = "; ".join(str(one) for one in error.failures[:_FIRST])
    return f"{len(error.failures)}: {first}"
