"""
A phase whose objects another controller reconciles, through an object that the owner creates for it.

What becomes of the objects is read from the status of that object. As long as nothing reports
one, the phase fails, and the next ones wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.plan import Action, Create, Propagation, delete
from lamina.core.model.queries import Answers, Found, Read
from lamina.core.ownership.controller_ref import controls
from lamina.core.phases.manifest import ObjectKey
from lamina.core.phases.owner import PhaseOwner, has_lost
from lamina.core.phases.phase_step import Failure, FailureReason, PhaseStep
from lamina.core.phases.teardown import Teardown
from lamina.objects import conditions, meta
from lamina.objects.times import moment
from lamina.objects.types import Obj, Ref

_AVAILABLE = "Available"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST = 63


class DelegatedPhase(Struct, frozen=True, kw_only=True):
    """A phase, the object through which it is reconciled, and what that one reports."""

    name: str
    ref: Ref
    wanted: tuple[ObjectKey, ...]
    live: Obj | None
    controlled: tuple[ObjectKey, ...] = ()
    """The objects that the status lists as controlled."""
    is_taken_over: bool = False
    """Whether a newer revision reports one of the objects as its own."""
    is_replaced: bool = False
    """Whether newer revisions that are available report all of its objects as their own."""
    unreported: str
    """What to do where nothing has reported on it yet."""
    unserved: str = ""
    """What to do where no controller reconciles it at all; empty where one always does."""
    report_timeout: timedelta = timedelta(seconds=30)
    """How long after its creation an object that nothing reports on has no controller."""


def delegated_step(
    owner: PhaseOwner,
    phase: DelegatedPhase,
    now: datetime,
    answers: Answers,
    *,
    create: Create | None,
    change: Action | None,
    is_reached: bool,
) -> PhaseStep:
    """Return the next step of a phase; `create` makes its object where there is none, `change` is what it lacks."""
    live = phase.live
    if not _LABEL.fullmatch(phase.name) or len(phase.name) > _LONGEST:
        message = (
            f'Phase "{phase.name}": the name of a phase with a class is part of the name of its {phase.ref.kind}; '
            f"it must consist of at most {_LONGEST} lower case letters, digits and dashes"
        )
        return _failing(phase, Failure(FailureReason.PREFLIGHT, message))
    if live is None:
        return _absent(owner, phase, answers, create if is_reached else None)
    if meta.is_deleting(live):
        return _ending(owner, phase, live, now, change)
    if not controls(owner.uid, live):
        who = owner.conventions.owner
        message = f'Phase "{phase.name}": {phase.ref} exists, and this {who} does not control it; delete or rename it'
        return _failing(phase, Failure(FailureReason.COLLISION, message))
    return _reported(owner, phase, live, now, change)


def _absent(owner: PhaseOwner, phase: DelegatedPhase, answers: Answers, create: Create | None) -> PhaseStep:
    """Return the step of a phase without its object: it is created, unless the owner gains no objects any more."""
    asks = owner.creates and not owner.is_paused and create is not None
    if asks and (asked := tuple(one for one in owner.siblings.shared if one not in answers)):
        return replace(_failing(phase, _unreported(phase)), queries=asked)
    if not owner.creates or (asks and has_lost(owner, answers)):
        # What a newer revision has is not waited for, and passes where that one is available.
        failure = _superseded(phase) if not phase.is_replaced else None
        gates = failure is not None and not phase.is_taken_over
        return PhaseStep(name=phase.name, failure=failure, gates=gates, left=phase.wanted)
    if owner.is_paused:
        return _failing(phase, _failure(phase, f"{phase.ref}: not found"))
    return _failing(phase, _unreported(phase), (create,) if create is not None else ())


def confirmed(owner: PhaseOwner, phase: DelegatedPhase, step: PhaseStep, answers: Answers) -> PhaseStep:
    """Return the step of a paused owner, once a live read confirms that the cache has the object as it is."""
    read = Read(phase.ref)
    match answers.get(read):
        case None:
            return replace(step, queries=(*step.queries, read))
        case Found(obj=found) if controls(owner.uid, found):
            known = meta.resource_version(phase.live) if phase.live is not None else ""
            return replace(step, is_outdated=meta.resource_version(found) != known)
        case _:
            return step


def tear_down_delegate(
    owner: PhaseOwner,
    ref: Ref,
    live: Obj | None,
    answers: Answers,
    *,
    is_marked: Callable[[Obj], bool],
    orphans: bool,
) -> Teardown:
    """
    Delete the object of a phase, whose controller tears the phase down.

    The garbage collector removes the owner references of orphans, and may be faster than the owner;
    then `is_marked` says whether an object is that of the phase.
    """

    def is_own(found: Obj) -> bool:
        is_released = meta.controller_of(found) is None and is_marked(found)
        return controls(owner.uid, found) or (is_released and meta.is_deleting(owner.obj))

    if live is None:
        read = Read(ref)
        match answers.get(read):
            case None:
                return Teardown(queries=(read,))
            case Found(obj=found) if is_own(found):
                return Teardown(waiting=(f"{ref} is not in the cache yet",))
            case _:
                return Teardown()
    if not is_own(live):
        return Teardown()
    if meta.is_deleting(live):
        return Teardown(waiting=(f"{meta.ref(live)} is being deleted",))
    keeps = orphans or not controls(owner.uid, live)
    return Teardown(actions=(delete(live, Propagation.ORPHAN if keeps else Propagation.BACKGROUND),))


def _ending(
    owner: PhaseOwner, phase: DelegatedPhase, live: Obj, now: datetime, change: Action | None
) -> PhaseStep:
    """
    Return the step of a phase whose object is being deleted; until it is gone, it may control objects.

    A controller may keep one that is deleted by hand, and go on reporting on it.
    """
    failure = _failure(phase, f"{meta.ref(live)} is being deleted")
    if not controls(owner.uid, live):
        return _failing(phase, failure)
    step = _reported(owner, phase, live, now, change)
    return step if step.failure is None else replace(step, failure=failure, gates=True)


def _reported(
    owner: PhaseOwner, phase: DelegatedPhase, live: Obj, now: datetime, change: Action | None
) -> PhaseStep:
    failure = _reported_failure(phase, live, now)
    # The kinds of the cluster that has the objects decide whether they have a namespace.
    known = phase.controlled
    left = tuple(key for key in phase.wanted if key not in known and key._replace(namespace="") not in known)
    return PhaseStep(
        name=phase.name,
        failure=failure,
        # What a superseded revision has handed over is not waited for.
        gates=failure is not None and not (owner.is_superseded and left),
        actions=(change,) if change is not None else (),
        controlled=known,
        left=left,
        is_unreported=not conditions.of(live),
    )


def _reported_failure(phase: DelegatedPhase, live: Obj, now: datetime) -> Failure | None:
    found = conditions.find(conditions.of(live), _AVAILABLE)
    if found is None or not conditions.is_current(found, live):
        return _unserved(phase) if _is_unserved(phase, live, now) else _unreported(phase)
    if found.get("status") == "True":
        return None
    reason = next((one for one in FailureReason if one == found.get("reason")), FailureReason.PROBE)
    return _failure(phase, found.get("message") or "not available", reason)


def _is_unserved(phase: DelegatedPhase, live: Obj, now: datetime) -> bool:
    """Say whether no controller has reported anything of an object since it was created, for a while."""
    created = moment(meta.metadata(live).get("creationTimestamp"))
    is_old = created is not None and now >= created + phase.report_timeout
    return is_old and bool(phase.unserved) and not conditions.of(live)


def _unreported(phase: DelegatedPhase) -> Failure:
    return _failure(phase, f"no status reported: {phase.unreported}")


def _unserved(phase: DelegatedPhase) -> Failure:
    return _failure(phase, f"no status reported: {phase.unserved}", FailureReason.PREFLIGHT)


def _superseded(phase: DelegatedPhase) -> Failure:
    return _failure(phase, "not rolled out, because a newer revision has taken over objects of this one")


def _failure(phase: DelegatedPhase, message: str, reason: FailureReason = FailureReason.PROBE) -> Failure:
    return Failure(reason, f'Phase "{phase.name}" failed: {message}')


def _failing(phase: DelegatedPhase, failure: Failure, actions: tuple[Action, ...] = ()) -> PhaseStep:
    return PhaseStep(name=phase.name, failure=failure, gates=True, actions=actions, left=phase.wanted)
