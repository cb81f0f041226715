"""
The final state of an owner or a changed object: whether it is healthy, and why not.

An owner with a status of its family is judged by its family and not by its conditions,
whose meaning the family defines. The exceptions are a workload that is decorated, and
an owner whose family rolls nothing out: their own health, or that of their children,
is judged too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from lamina.core.health.kstatus import SETTLED, Health, health, is_well_known, reported_health
from lamina.core.model.family import Family
from lamina.core.model.finalizers import waiting
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.errors import HookUnreachable, PlanFailed
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.simulation import Pass

DELETED: Final = "deleted"
"""The state of an object that is gone; an object that exists has a `State`."""
_HOOKS_HINT = "name the file with this hook with --hooks, or simulate where the hook can be called"
_HEALTHY = (State.HEALTHY, State.PAUSED)
_LONGEST_BACKOFF = timedelta(seconds=1000)
"""The longest backoff of a refused write."""


class FinalState(Struct, frozen=True):
    """The final state of an owner, or of an object that was changed."""

    ref: Ref
    healthy: bool
    state: str
    because: str
    owner_status: OwnerStatus | None = None
    unhealthy_without_change: bool = False
    """Whether the state is the same without the change, which is then not its cause."""
    is_simulated: bool = True
    """Whether the simulation could call its hooks: without them, its state is not known."""


def of_owner(
    owner_status: OwnerStatus,
    owner: Obj,
    children: Iterable[Obj],
    reconciles: Sequence[Pass],
    now: datetime,
    families: Sequence[Family],
) -> FinalState:
    """Return the final state of an owner from its status and the last reconcile of each of its controllers."""
    ref = meta.ref(owner_status.owner)
    errors = [one.failure for one in reconciles if _is_persistent(one, now)]
    if errors and isinstance(errors[-1], HookUnreachable):
        because = f"{errors[-1]}; {_HOOKS_HINT}"
        return FinalState(ref, False, State.UNKNOWN, because, owner_status, is_simulated=False)
    if errors or owner_status.state not in _HEALTHY:
        because = str(errors[-1]) if errors else owner_status.message
        return FinalState(ref, False, owner_status.state, because, owner_status)
    # A status without a rollout does not cover children, and none covers a workload's own status.
    own, message = _state(owner, health(owner))
    if own not in _HEALTHY:
        return FinalState(ref, False, own, message, owner_status)
    for child in children if not owner_status.goal else ():
        state, message = _state(child, _health(child, families))
        if state not in _HEALTHY:
            return FinalState(ref, False, state, f"{meta.ref(child)}: {message}", owner_status)
    return FinalState(ref, True, owner_status.state, owner_status.message, owner_status)


def of_object(ref: Ref, obj: Obj | None, families: Sequence[Family]) -> FinalState:
    """Return the final state of an object without an owner status, from its health."""
    if obj is None:
        # A finished Job may be removed by its TTL; any other object is not expected to be.
        is_job = ref.kind == "Job"
        return FinalState(ref, is_job, DELETED, "it was deleted again, by itself or with its owner")
    if meta.is_deleting(obj):
        return FinalState(meta.ref(obj), False, State.DELETING, waiting(obj))
    state, message = _state(obj, _health(obj, families))
    return FinalState(meta.ref(obj), state in _HEALTHY, state, message)


def of_deleted(ref: Ref, uid: str, obj: Obj | None) -> FinalState:
    """Return the final state of a deleted object; another of its name may have been created."""
    if obj is None:
        return FinalState(ref, True, DELETED, "")
    if meta.uid(obj) != uid:
        return FinalState(ref, True, DELETED, "another object of this name was created")
    return FinalState(ref, False, State.DELETING, waiting(obj))


def by_controller(objects: Iterable[Obj]) -> Mapping[str, Sequence[Obj]]:
    """Return the controlled objects, by the uid of their controller."""
    found: dict[str, list[Obj]] = {}
    for obj in objects:
        if (owner := meta.controller_of(obj)) is not None:
            found.setdefault(owner["uid"], []).append(obj)
    return found


def _health(obj: Obj, families: Sequence[Family]) -> Health:
    """Return the health of an object: as its family judges it, by its well-known kind, or by its conditions."""
    for family in families:
        if (known := family.health(obj)) is not None:
            return known
    return health(obj) if is_well_known(obj) else reported_health(obj)


def _state(obj: Obj, known: Health) -> tuple[State, str]:
    """Return the state that the health of an object stands for, and the message; a paused object lacks no replicas."""
    if known.failed:
        return State.DEGRADED, known.failed
    if not known.waiting:
        return State.HEALTHY, ""
    if (obj.get("spec") or {}).get("paused") is True and reported_health(obj) == SETTLED:
        return State.PAUSED, known.waiting
    return State.PROGRESSING, known.waiting


def _is_persistent(one: Pass, now: datetime) -> bool:
    """Say whether a failure persists; a write that was refused long ago, and not again, has succeeded since."""
    if one.failure is None or one.is_outdated:
        return False
    return not isinstance(one.failure, PlanFailed) or now - one.at <= _LONGEST_BACKOFF
