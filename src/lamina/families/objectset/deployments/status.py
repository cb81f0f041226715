"""The status of a deployment: whether a revision serves, whether the latest one progresses, and until when it may."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.model.condition_list import ConditionList
from lamina.core.phases.condition_mapping import outdated, passed_on, set_mapped
from lamina.core.phases.manifest import ObjectKey
from lamina.core.phases.object_list import listed
from lamina.families.objectset.deployments.template import TemplateRevision, collisions
from lamina.families.objectset.deployments.view import View
from lamina.families.objectset.set_facts import SetFacts
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Made

AVAILABLE, PROGRESSING, PAUSED = "Available", "Progressing", "Paused"
DEADLINE, INVALID, IDLE = "ProgressDeadlineExceeded", "InvalidTemplate", "Idle"
EMPTY = "spec.template.spec.phases is empty, so there is nothing to roll out"
PENDING_SUCCESS = "LatestRevisionPendingSuccess"
_PAUSED = "spec.paused is true: no revision is created, archived or pruned"


class Reported(Struct, frozen=True, kw_only=True):
    """A status, the sentence about it, and when to look again."""

    status: Made
    because: str
    again: timedelta | None = None


def status(
    view: View, found: TemplateRevision, now: datetime, *, created: SetFacts | None = None
) -> Reported:
    """Return the status of a deployment; `created` is the revision that the same plan creates before."""
    made = ConditionList(view.obj, now)
    current = created or found.current
    if current is None:
        set_mapped(made, ())
    else:
        set_mapped(made, passed_on(current.obj), outdated(current.obj))
    _set_available(made, found)
    again = _set_progressing(view, made, current, now)
    made.set_while(view.is_paused, PAUSED, _PAUSED)
    status: Made = {**(view.obj.get("status") or {}), "conditions": made.found, "templateHash": found.hash}
    if current is not None:
        status["revision"] = current.number
    sets = (*found.previous, *((current,) if current is not None else ()))
    status["controllerOf"] = listed(
        ObjectKey(*meta.group_kind(one.obj), meta.namespace(one.obj), one.name) for one in sets
    )
    count = collisions(view)
    if count:
        status["collisionCount"] = count
    progressing = made.get(PROGRESSING)
    return Reported(
        status=status, because=progressing.get("message", "") if progressing is not None else "", again=again
    )


def invalid(view: View, now: datetime) -> Made:
    """Return the status of a deployment whose spec is refused."""
    made = ConditionList(view.obj, now)
    made.set(PROGRESSING, "False", INVALID, view.error)
    made.set_while(view.is_paused, PAUSED, _PAUSED)
    return {**(view.obj.get("status") or {}), "conditions": made.found}


def _set_available(made: ConditionList, found: TemplateRevision) -> None:
    current = found.current
    if current is not None and current.is_available:
        made.set(AVAILABLE, "True", AVAILABLE, f"Latest revision {current.name} is Available.")
        return
    if (
        current is not None
        and not current.has_succeeded
        and conditions.find(conditions.of(current.obj), AVAILABLE) is None
        and made.get(AVAILABLE)
    ):
        # The latest revision has not reported yet: what was known before still holds.
        return
    serving = next((one for one in found.previous if one.is_live and one.is_available), None)
    if serving is not None:
        made.set(AVAILABLE, "True", AVAILABLE, f"Previous revision {serving.name} is still Available.")
    else:
        made.set(AVAILABLE, "False", "ObjectSetUnready", "No ObjectSet is available." + _why(current))


def _why(current: SetFacts | None) -> str:
    known = conditions.find(conditions.of(current.obj), AVAILABLE) if current is not None else None
    message = known.get("message") if known is not None else ""
    return f" {message}" if message else ""


def _set_progressing(
    view: View, made: ConditionList, current: SetFacts | None, now: datetime
) -> timedelta | None:
    """Set Progressing, and return when its deadline is, if that is still ahead."""
    if current is None:
        is_empty = view.spec is not None and not view.valid_spec.template.spec.phases
        made.set(PROGRESSING, "True", PROGRESSING, EMPTY if is_empty else "Progressing to a new ObjectSet.")
        return None
    if current.has_succeeded:
        made.set(PROGRESSING, "False", IDLE, f"Update concluded: revision {current.number} has succeeded.")
        return None
    missing = _missing(current)
    left = _until_deadline(view, current, now)
    if left is not None and left <= timedelta(0) and missing:
        message = f"revision {current.number} has not finished within its deadline: {missing}"
        made.set(PROGRESSING, "False", DEADLINE, message)
        return None
    waiting = missing or "it is available, and has to stay so"
    made.set(PROGRESSING, "True", PENDING_SUCCESS, f"Latest ObjectSet is still progressing: {waiting}")
    return left if missing else None


def _missing(current: SetFacts) -> str:
    """Return what an unfinished revision lacks; empty where it is available and controls all of its objects."""
    if current.is_available and not current.is_in_transition:
        return ""
    known = conditions.of(current.obj)
    for name in (AVAILABLE, "InTransition"):
        found = conditions.find(known, name)
        if found is not None and (name != AVAILABLE or found.get("status") != "True"):
            return found.get("message") or name
    return "it has not reported a status yet"


def _until_deadline(view: View, current: SetFacts, now: datetime) -> timedelta | None:
    seconds = view.valid_spec.progress_deadline_seconds
    created = moment(meta.metadata(current.obj).get("creationTimestamp"))
    if seconds is None or created is None or view.is_paused:
        return None
    return created + timedelta(seconds=seconds) - now
