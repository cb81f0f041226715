"""
Complaints: what is reported of an object that could not be reconciled.

Every family reports a failed pass with a SyncError event, which the API server counts
rather than repeats, and puts the first few failures of a plan into a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from lamina.core.model.events import warning
from lamina.core.model.plan import NOTHING, Emit, Plan, one_stage
from lamina.core.model.world import World
from lamina.errors import LaminaError, PlanFailed
from lamina.objects.types import Obj, Ref

_FIRST = 3


def sync_error(obj: Obj, error: LaminaError, *, by: str, now: datetime) -> Emit:
    """Return the event of a pass over an object that failed; the same failure again raises its count."""
    return Emit(event=warning(obj, "SyncError", f"Sync error: {error}", by=by, now=now), counts=True)


def reported_by(manager: str) -> Callable[[World, Ref, LaminaError, datetime], Plan]:
    """Return the `complain` of a controller that reports errors as events, and changes no condition."""

    def complain(world: World, ref: Ref, error: LaminaError, now: datetime) -> Plan:
        obj = world.get(ref)
        if obj is None:
            return NOTHING
        return one_stage("emit events", [sync_error(obj, error, by=manager, now=now)], because=str(error))

    return complain


def summary(error: LaminaError) -> str:
    """Return an error in one line; of a plan that failed, how many actions did and the first few."""
    if not isinstance(error, PlanFailed):
        return str(error)
    return f"{len(error.failures)}: {'; '.join(error.messages[:_FIRST])}"


def failures_about(error: PlanFailed, refs: Collection[Ref]) -> dict[Ref, LaminaError]:
    """Return the failures of a plan that are about one of these objects, the last one of each."""
    found = zip(error.failures, error.about, strict=True)
    return {about: failure for failure, about in found if about is not None and about in refs}
