"""How a replica set stands, and the way back: an old template written into its spec, which goes out like any other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from lamina.core.family import Account, Place
from lamina.core.history import History, history, to_return_to
from lamina.core.plan import Plan, Replace, one_stage
from lamina.core.questions import Answers
from lamina.core.revision import Revision
from lamina.core.rollout import Standing
from lamina.families.manifestwork.album import Album, album
from lamina.families.manifestwork.situation import (
    ABORTED,
    APPLIED,
    AVAILABLE,
    DEGRADED,
    OVERDUE,
    PROGRESSING,
    ROLLED_OUT,
    VERIFIED,
)
from lamina.families.manifestwork.state import State, where
from lamina.families.manifestwork.template import reports_progress
from lamina.families.manifestwork.view import View
from lamina.families.manifestwork.work import Work
from lamina.objects import conditions, meta

_TURNING, _ABORTED, _LEAVING = "turning", "aborted", "leaving"
_LATEST = datetime.max.replace(tzinfo=UTC)
"""Whoever asks how things are is not asked what time it is: nothing that was said lies in the future."""
_STATES = {
    State.SUCCEEDED: Standing.SETTLED,
    State.FAILED: Standing.FAILED,
    State.PROGRESSING: Standing.MOVING,
    State.TO_APPLY: Standing.MOVING,
}


def account(view: View) -> Account:
    """Return how a replica set stands: its revisions, and which of its clusters is on which."""
    revisions = album(view, Answers())
    told = _told(revisions)
    aborted = revisions.wanted.tag == view.update and view.aborted_at is not None
    going_back = told.tagged(view.current) if aborted else None
    goal = going_back.number if going_back is not None else revisions.wanted.number
    places = dict(_places(view, revisions, told, goal))
    state, because = _said(view)
    because = _with_doubts(view, because)
    if state == _ABORTED and any(one.revision != goal for one in places.values() if one.state != _LEAVING):
        state = _TURNING
    return Account(
        owner=view.obj,
        history=told,
        goal=goal,
        targets={name: place.revision for name, place in places.items()},
        state=state,
        because=because,
        places=places,
        wanted=revisions.wanted.number,
    )


def _told(revisions: Album) -> History:
    """Return the history with the wanted revision in it, kept or not, under the number it is to have."""
    wanted = revisions.wanted
    others = [one.revision for one in revisions.kept if one.tag != wanted.tag]
    new = Revision(number=wanted.number, name=wanted.name, snapshot=wanted.template, tag=wanted.tag)
    return history([*others, new])


def _places(view: View, revisions: Album, told: History, goal: int) -> Iterator[tuple[str, Place]]:
    several = len(view.placed) > 1
    numbers = {one.holds: one.number for one in revisions.kept if one.holds}
    numbers[revisions.wanted.holds] = revisions.wanted.number
    for placed in view.placed:
        clusters = {cluster for group in placed.groups for cluster in group.clusters}
        for cluster in sorted(clusters | set(placed.works)):
            work = placed.works.get(cluster)
            name = f"{placed.name}/{cluster}" if several else cluster
            number = numbers.get(work.holds, 0) if work is not None else 0
            revision = told.numbered(number)
            yield name, _place(work, number, goal, revision, selected=cluster in clusters)


def _place(work: Work | None, number: int, goal: int, revision: Revision | None, *, selected: bool) -> Place:
    if work is None:
        return Place(revision=0, state=Standing.WAITING, because="it has no work yet")
    if work.is_deleting:
        return Place(revision=number, state=_LEAVING, because="its work is on its way out")
    if not selected:
        return Place(revision=number, state=_LEAVING, because="it is not selected any more")
    here = where(
        work, reports_progress=revision is not None and reports_progress(revision.snapshot), now=_LATEST
    )
    since = here.since or work.dispatched
    if number != goal:
        because = here.because or f"on its way to revision {goal}"
        return Place(revision=number, state=Standing.WAITING, since=since, because=because)
    return Place(revision=number, state=_STATES[here.state], since=since, because=here.because)


def _said(view: View) -> tuple[str, str]:
    """Return a word and a sentence: what the status says of the rollout, if it is about this spec."""
    said = view.status.get("conditions") or ()
    found = conditions.find(said, PROGRESSING)
    applied = conditions.find(said, APPLIED)
    if found is None and applied is not None and applied["status"] == "False":
        # It was not even begun: what is wrong with it is said there.
        found = applied
    if found is None:
        return "unknown", "its hub has not said anything yet"
    if found.get("observedGeneration", 0) < meta.generation(view.obj):
        return Standing.WAITING, "its hub has not looked at the latest change yet"
    if found is applied:
        return Standing.FAILED, found.get("message", "")
    out = conditions.find(said, ROLLED_OUT)
    message = found.get("message", "")
    match found.get("reason", ""):
        case reason if reason == ABORTED:
            return _ABORTED, message
        case reason if reason == OVERDUE:
            # That it is aborted has been written; that everybody was sent back has not.
            return (_TURNING if view.aborted_at else Standing.FAILED), message
        case reason if reason == AVAILABLE and out is not None and out["status"] == "True":
            return Standing.SETTLED, message
    if out is not None and out.get("reason") == DEGRADED:
        return Standing.FAILED, message
    return Standing.MOVING, out.get("message", message) if out is not None else message


def _with_doubts(view: View, because: str) -> str:
    """Return a sentence with what is wrong with the placements, where it does not say so itself."""
    found = conditions.find(view.status.get("conditions") or (), VERIFIED)
    doubts = found.get("message", "") if found is not None and found["status"] == "False" else ""
    if doubts in because:
        return because
    return doubts if because in doubts else f"{because}; {doubts}"


def rollback(view: View, to: int | None) -> Plan:
    """
    Return the plan that writes an old template into the spec, whole; nothing but the spec changes.

    Raises RevisionNotFound for a revision that is not kept.
    """
    revisions = album(view, Answers())
    ref = meta.ref(view.obj)
    # What a revision held that cannot be read is nothing to return to.
    readable = replace(revisions, kept=tuple(one for one in revisions.kept if one.holds))
    wanted = to_return_to(ref, _told(readable), revisions.wanted.number, to)
    old = view.obj.get("spec") or {}
    past = {**view.obj, "spec": {**old, "manifestWorkTemplate": wanted.snapshot}}
    return one_stage(
        "write the old template",
        [Replace(obj=past)] if wanted.tag != revisions.wanted.tag else [],
        because=f"returning {ref} to what revision {wanted.number} holds",
    )
