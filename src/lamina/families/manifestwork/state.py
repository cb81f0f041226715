"""
Where one cluster is on its way, from what its agent says of its work.

Read from the top, the first rule that holds decides; `g` is the generation of the work.

    Applied is not there, is about another generation, or is not True    not applied yet
    Progressing is not there, though the template has a rule for it      not applied yet
    Progressing or Degraded is about another generation                  not applied yet
    Degraded is True                                                     failed
    Progressing is not there: Available is True at g                     succeeded
    Progressing is not there: anything else                              progressing
    Progressing is False                                                 succeeded
    Progressing is True or Unknown                                       progressing

A work that is not applied yet counts as progressing from when it was sent, so
that an agent that is down runs out of time like anybody else. A work that does
not say when it was sent was sent by somebody else; nobody knows how long it has
had, and it may take as long as it likes.

Time counts from when the agent says the condition changed, but never from before
the work was sent: conditions keep their time when a new spec leaves their status
as it was. Clocks differ. What is said to have changed in our future would give a
late cluster more time than it has, so it counts from when it was sent.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from lamina.core.probe import WELL, Verdict, unknown, unwell
from lamina.families.manifestwork.work import Said, Work


class State(StrEnum):
    """Where a cluster is that has the revision it is to have."""

    TO_APPLY = "ToApply"
    PROGRESSING = "Progressing"
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"


class Where(Struct, frozen=True):
    """Where a cluster is, since when, and how that is known."""

    state: State
    since: datetime | None
    verdict: Verdict

    @property
    def because(self) -> str:
        return self.verdict.because


def where(work: Work, *, reports_progress: bool, now: datetime) -> Where:
    """Return where the cluster of a work is; `reports_progress` says whether the template has a rule for that."""
    generation, applied, progressing = work.generation, work.applied, work.progressing
    if applied is None or applied.observed != generation:
        return _on_its_way(work, "not applied by its agent yet")
    if applied.status != "True":
        return _on_its_way(work, f"not applied: {applied.message}" if applied.message else "not applied")
    if progressing is None and reports_progress:
        return _on_its_way(work, "its agent does not say yet whether it is progressing")
    if progressing is not None and progressing.observed != generation:
        return _on_its_way(work, "its agent has not looked at it since it changed")
    degraded = work.degraded
    if degraded is not None and degraded.observed != generation:
        return _on_its_way(work, "its agent has not looked at it since it changed")
    if degraded is not None and degraded.status == "True":
        # However it came: one that is degraded and says that it makes no progress is no success.
        because = f"degraded: {degraded.message}" if degraded.message else "degraded"
        return Where(State.FAILED, _clock(degraded, work, now), unwell(because))
    if progressing is None:
        return _by_availability(work, applied, now)
    if progressing.status == "False":
        return Where(State.SUCCEEDED, _since_success(progressing.since, work, now), WELL)
    because = f"progressing: {progressing.message}" if progressing.message else "progressing"
    return Where(State.PROGRESSING, _clock(progressing, work, now), unknown(because))


def _by_availability(work: Work, applied: Said, now: datetime) -> Where:
    """Return where a cluster is whose template has no rule, and whose agent says nothing by itself."""
    available = work.available
    if available is None or not available.is_true_at(work.generation):
        return Where(State.PROGRESSING, _clock(applied, work, now), unknown("not available yet"))
    times = [one.since for one in (applied, available) if one.since is not None]
    return Where(State.SUCCEEDED, _since_success(max(times, default=None), work, now), WELL)


def _on_its_way(work: Work, because: str) -> Where:
    state = State.TO_APPLY if work.dispatched is None else State.PROGRESSING
    return Where(state, work.dispatched, unknown(because))


def _clock(said: Said, work: Work, now: datetime) -> datetime | None:
    """Return from when the time of a cluster that is not well counts."""
    if said.since is None or said.since > now:
        return work.dispatched if work.dispatched is not None else said.since
    return said.since if work.dispatched is None else max(said.since, work.dispatched)


def _since_success(since: datetime | None, work: Work, now: datetime) -> datetime | None:
    """Return from when a cluster counts as well."""
    if since is None or work.dispatched is None:
        return since
    return max(since, work.dispatched)
