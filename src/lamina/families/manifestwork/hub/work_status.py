"""
The rollout status of one cluster, from the conditions of its ManifestWork.

The first rule that holds decides; `g` is the generation of the work.

    Applied is absent, of another generation, or not True            not applied yet
    Progressing is absent, though the template has a rule for it     not applied yet
    Progressing or Degraded is of another generation                 not applied yet
    Degraded is True                                                 failed
    Progressing is absent: Available is True at g                    succeeded
    Progressing is absent: anything else                             progressing
    Progressing is False                                             succeeded
    Progressing is True or Unknown                                   progressing

A work that is not applied yet counts as progressing since its dispatch time, so
that an agent that is down exceeds the deadline too. A work without a dispatch
time was written by another controller and has no deadline.

Time counts from the last transition of the condition, but not from before the
dispatch time: a condition keeps its transition time when a new spec leaves its
status unchanged. Clocks differ: a transition in the future would extend the
deadline, so time counts from the dispatch time then.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct

from lamina.core.health.kstatus import SETTLED, Health
from lamina.core.health.probe import HEALTHY, ProbeResult, unhealthy, unknown
from lamina.families.manifestwork.hub.revision import reports_progress as template_reports_progress
from lamina.families.manifestwork.hub.work import Work, WorkCondition, read_work
from lamina.objects.types import Obj


class RolloutState(StrEnum):
    """The rollout state of a cluster that has the goal revision."""

    TO_APPLY = "ToApply"
    PROGRESSING = "Progressing"
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"


class WorkStatus(Struct, frozen=True):
    """The rollout state of a cluster, since when, and the verdict behind it."""

    state: RolloutState
    since: datetime | None
    verdict: ProbeResult

    @property
    def message(self) -> str:
        return self.verdict.because


def rollout_status(work: Work, *, reports_progress: bool, now: datetime) -> WorkStatus:
    """Return the rollout status of a work; `reports_progress` says whether its template has a rule for Progressing."""
    generation, applied, progressing = work.generation, work.applied, work.progressing
    if applied is None or applied.observed != generation:
        return _not_applied(work, "not applied by its agent yet")
    if applied.status != "True":
        return _not_applied(work, f"not applied: {applied.message}" if applied.message else "not applied")
    if progressing is None and reports_progress:
        return _not_applied(work, "its agent has not reported Progressing yet")
    if progressing is not None and progressing.observed != generation:
        return _not_applied(work, "its agent has not observed the latest generation")
    degraded = work.degraded
    if degraded is not None and degraded.observed != generation:
        return _not_applied(work, "its agent has not observed the latest generation")
    if degraded is not None and degraded.status == "True":
        # Degraded is checked first: with Progressing False it is a failure, not a success.
        message = f"degraded: {degraded.message}" if degraded.message else "degraded"
        return WorkStatus(RolloutState.FAILED, _timed_from(degraded, work, now), unhealthy(message))
    if progressing is None:
        return _by_availability(work, applied, now)
    if progressing.status == "False":
        return WorkStatus(RolloutState.SUCCEEDED, _since_success(progressing.since, work, now), HEALTHY)
    message = f"progressing: {progressing.message}" if progressing.message else "progressing"
    return WorkStatus(RolloutState.PROGRESSING, _timed_from(progressing, work, now), unknown(message))


def work_health(obj: Obj) -> Health:
    """Return the health of a work, which its agent reports; without a clock, because health has no times."""
    progress = template_reports_progress(obj.get("spec") or {})
    status = rollout_status(read_work(obj), reports_progress=progress, now=datetime.max.replace(tzinfo=UTC))
    match status.state:
        case RolloutState.SUCCEEDED:
            return SETTLED
        case RolloutState.FAILED:
            return Health(status.message, status.message)
        case _:
            return Health(status.message)


def _by_availability(work: Work, applied: WorkCondition, now: datetime) -> WorkStatus:
    """Return the status of a work without Progressing: its template has no rule for it, and its agent reports none."""
    available = work.available
    if available is None or not available.is_true_at(work.generation):
        return WorkStatus(
            RolloutState.PROGRESSING, _timed_from(applied, work, now), unknown("not available yet")
        )
    times = [one.since for one in (applied, available) if one.since is not None]
    return WorkStatus(RolloutState.SUCCEEDED, _since_success(max(times, default=None), work, now), HEALTHY)


def _not_applied(work: Work, message: str) -> WorkStatus:
    state = RolloutState.TO_APPLY if work.dispatched is None else RolloutState.PROGRESSING
    return WorkStatus(state, work.dispatched, unknown(message))


def _timed_from(condition: WorkCondition, work: Work, now: datetime) -> datetime | None:
    """Return from when the deadline of an unhealthy cluster counts."""
    if condition.since is None or condition.since > now:
        return work.dispatched if work.dispatched is not None else condition.since
    return condition.since if work.dispatched is None else max(condition.since, work.dispatched)


def _since_success(since: datetime | None, work: Work, now: datetime) -> datetime | None:
    """Return from when the soak time of a healthy cluster counts."""
    if since is None or work.dispatched is None:
        return since
    return max(since, work.dispatched)
