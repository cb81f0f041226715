"""The status of a set: its conditions, the objects it controls, and when to look again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from lamina.core.model.condition_list import ConditionList
from lamina.core.ownership.controller_ref import controls
from lamina.core.phases.condition_mapping import mapped, outdated, passed_on, set_mapped
from lamina.core.phases.manifest import ObjectKey
from lamina.core.phases.object_list import listed
from lamina.core.phases.phase_step import Failure, FailureReason, PhaseStep
from lamina.families.objectset import lineage
from lamina.families.objectset.reporting import AVAILABLE, set_available
from lamina.families.objectset.sets.class_phase import is_unserved
from lamina.families.objectset.sets.view import PhaseView, View
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Made, Obj

SUCCEEDED, IN_TRANSITION, PAUSED, ARCHIVED = "Succeeded", "InTransition", "Paused", "Archived"


def status(view: View, steps: Sequence[PhaseStep], now: datetime) -> Made:
    """Return the status of a set whose phases are these."""
    found = ConditionList(view.obj, now)
    failure = next((one.failure for one in steps if one.failure is not None), None)
    left = [key for one in steps for key in one.left]
    found.remove(ARCHIVED)
    set_mapped(
        found, _mapped(view, steps), (name for _, live in _own_phases(view) for name in outdated(live))
    )
    others = f" and {len(left) - 1} more" if len(left) > 1 else ""
    message = f"not controlled by this revision: {left[0]}{others}" if left else ""
    found.set_while(bool(left), IN_TRANSITION, message)
    set_available(found, failure)
    is_complete = failure is None and not left and not any(one.has_drifted for one in steps)
    if is_complete and not found.is_true(SUCCEEDED) and not _soak(view, found):
        found.set(SUCCEEDED, "True", "RolloutSuccess", "Object was available once and passed all probes.")
    _set_paused(view, found)
    return _status(view, found, (key for one in steps for key in one.controlled))


def invalid(view: View, message: str, steps: Sequence[PhaseStep], now: datetime) -> Made:
    """Return the status of a set of which nothing can be written; what it controls is observed all the same."""
    found = ConditionList(view.obj, now)
    found.remove(ARCHIVED)
    set_available(found, Failure(FailureReason.PREFLIGHT, message))
    _set_paused(view, found)
    return _status(view, found, (key for one in steps for key in one.controlled))


def archiving(view: View, waiting: Iterable[str], steps: Sequence[PhaseStep], now: datetime) -> Made:
    """Return the status of a set that is being archived."""
    found = ConditionList(view.obj, now)
    found.remove(AVAILABLE, IN_TRANSITION)
    message = "; ".join(waiting) or "its objects are being deleted"
    found.set(ARCHIVED, "False", "ArchivalInProgress", message)
    return _status(view, found, (key for one in steps for key in one.controlled))


def archived(view: View, now: datetime) -> Made:
    """Return the status of a set that has been archived."""
    found = ConditionList(view.obj, now)
    found.remove(AVAILABLE, IN_TRANSITION, PAUSED)
    set_mapped(found, ())
    found.set(ARCHIVED, "True", ARCHIVED)
    made = _status(view, found, ())
    made.pop("remotePhases", None)
    return made


def soak(view: View, status: Made, now: datetime) -> timedelta | None:
    """Return how long an available set still has to be available before it has succeeded."""
    found = ConditionList({**view.obj, "status": status}, now)
    if found.is_true(SUCCEEDED) or not found.is_true(AVAILABLE) or found.get(IN_TRANSITION) is not None:
        return None
    return _soak(view, found)


def _soak(view: View, found: ConditionList) -> timedelta | None:
    delay = view.spec.success_delay_seconds if view.spec is not None else 0
    return found.time_left(AVAILABLE, timedelta(seconds=delay)) if delay else None


def _set_paused(view: View, found: ConditionList) -> None:
    if not view.is_paused:
        found.remove(PAUSED)
        return
    running = [
        one.name
        for one, live in _own_phases(view)
        if not conditions.is_true_now(live, PAUSED) and not is_unserved(live)
    ]
    if running:
        found.set(PAUSED, "Unknown", "PartiallyPaused", f"not paused yet: phase {', '.join(running)}")
    else:
        found.set(PAUSED, "True", PAUSED, "lifecycleState is Paused: objects are probed, and not written")


def _mapped(view: View, steps: Iterable[PhaseStep]) -> Iterator[Condition]:
    for step in steps:
        yield from mapped(step.steps)
    for _, live in _own_phases(view):
        yield from passed_on(live)


def _own_phases(view: View) -> Iterator[tuple[PhaseView, Obj]]:
    """Yield the phases with a class whose ObjectSetPhase the set controls; another set may have one of that name."""
    for one in view.phases:
        if one.live is not None and controls(meta.uid(view.obj), one.live):
            yield one, one.live


def _status(view: View, found: ConditionList, controlled: Iterable[ObjectKey]) -> Made:
    made: Made = {**(view.obj.get("status") or {}), "conditions": found.found}
    made["controllerOf"] = listed(controlled)
    made["remotePhases"] = [{"name": meta.name(live), "uid": meta.uid(live)} for _, live in _own_phases(view)]
    number = lineage.number(view.obj)
    if number:
        made["revision"] = number
    return made
