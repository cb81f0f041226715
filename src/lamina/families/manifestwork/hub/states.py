"""The states of a ManifestWorkReplicaSet and of its clusters, from the conditions of Open Cluster Management."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.finalizers import waiting
from lamina.core.model.state import State, StateRule, decide
from lamina.families.manifestwork.hub.phase import (
    ABORTED,
    APPLIED,
    AVAILABLE,
    DEGRADED,
    INVALID_NAME,
    NOT_AS_EXPECTED,
    OVERDUE,
    PROGRESSING,
    ROLLED_OUT,
    VERIFIED,
)
from lamina.families.manifestwork.hub.restored import NOT_RESTORED
from lamina.families.manifestwork.hub.status import REFUSED
from lamina.families.manifestwork.hub.work import Work
from lamina.families.manifestwork.hub.work_status import RolloutState, WorkStatus
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Obj


class Reported(Struct, frozen=True, kw_only=True):
    """What the status of a replica set reports of its rollout."""

    obj: Obj
    progressing: Condition | None
    rolled_out: Condition | None
    applied: Condition | None
    is_aborted: bool
    """Whether the status records an abort, which may not have been carried out yet."""
    has_degraded: bool
    """Whether a target is degraded."""
    is_back: bool
    """Whether every target is on the stable revision, confirmed by the agents of those that had left it."""

    @property
    def deciding(self) -> Condition | None:
        """Return Progressing, or ManifestworkApplied where that says why no rollout was started."""
        if self.progressing is None and self.applied is not None and self.applied["status"] == "False":
            return self.applied
        return self.progressing

    @property
    def is_current(self) -> bool:
        deciding = self.deciding
        return deciding is not None and deciding.get("observedGeneration", 0) >= meta.generation(self.obj)

    def has_reason(self, reason: str) -> bool:
        return self.progressing is not None and self.progressing.get("reason") == reason

    @property
    def message(self) -> str:
        deciding, out = self.deciding, self.rolled_out
        return deciding.get("message", "") if deciding is not None else out.get("message", "") if out else ""


def _is_complete(one: Reported) -> bool:
    return one.has_reason(AVAILABLE) and one.rolled_out is not None and one.rolled_out["status"] == "True"


def _is_degraded(one: Reported) -> bool:
    return one.rolled_out is not None and one.rolled_out.get("reason") == DEGRADED


OWNER_STATES: tuple[StateRule[Reported], ...] = (
    StateRule(State.DELETING, "metadata.deletionTimestamp is set", lambda one: meta.is_deleting(one.obj)),
    StateRule(
        State.UNKNOWN,
        f"no condition {PROGRESSING}, and {APPLIED} is not False",
        lambda one: one.deciding is None,
    ),
    StateRule(
        State.PENDING,
        "observedGeneration of the condition is older than metadata.generation",
        lambda one: not one.is_current,
    ),
    StateRule(
        State.DEGRADED,
        f"no condition {PROGRESSING}, and {APPLIED} is False, reason {INVALID_NAME}",
        lambda one: (
            one.progressing is None and one.applied is not None and one.applied.get("reason") == INVALID_NAME
        ),
        ends=True,
    ),
    StateRule(
        State.DEGRADED,
        f"no condition {PROGRESSING}, and {APPLIED} is False",
        lambda one: one.progressing is None,
    ),
    StateRule(
        State.ABORTED,
        f"{PROGRESSING}, reason {ABORTED}, whose message names no cluster that is not back; "
        "every work is on the stable revision, confirmed by its agent",
        lambda one: one.has_reason(ABORTED) and one.is_back and NOT_RESTORED not in one.message,
        ends=True,
    ),
    StateRule(
        State.ABORTING, f"{PROGRESSING}, reason {ABORTED}", lambda one: one.has_reason(ABORTED), ends=True
    ),
    StateRule(
        State.ABORTING,
        f"{PROGRESSING}, reason {OVERDUE}; status.abortedTime is set",
        lambda one: one.has_reason(OVERDUE) and one.is_aborted,
        ends=True,
    ),
    StateRule(
        State.DEGRADED, f"{PROGRESSING}, reason {OVERDUE}", lambda one: one.has_reason(OVERDUE), ends=True
    ),
    StateRule(State.HEALTHY, f"{PROGRESSING}, reason {AVAILABLE}; {ROLLED_OUT} is True", _is_complete),
    StateRule(State.DEGRADED, f"{ROLLED_OUT}, reason {DEGRADED}", _is_degraded),
    StateRule(
        State.DEGRADED,
        f"{APPLIED}, reason {NOT_AS_EXPECTED}; a cluster is Degraded",
        lambda one: (
            one.has_degraded and one.applied is not None and one.applied.get("reason") == NOT_AS_EXPECTED
        ),
    ),
    StateRule(State.PROGRESSING, f"{PROGRESSING} with any other reason", lambda one: True),
)
"""The state of a ManifestWorkReplicaSet; the first row that holds decides."""


class ReportedCluster(Struct, frozen=True, kw_only=True):
    """One cluster, its work if there is one, and how that does."""

    work: Work | None
    is_selected: bool
    on_goal: bool
    is_aborted: bool
    is_unconfirmed: bool
    """Whether its work was moved back by an abort, and its agent has not confirmed that."""
    status: WorkStatus | None

    def is_in(self, state: RolloutState) -> bool:
        return self.status is not None and self.status.state is state


TARGET_STATES: tuple[StateRule[ReportedCluster], ...] = (
    StateRule(
        State.DELETING,
        "its ManifestWork is being deleted, or its cluster is no longer selected",
        lambda one: one.work is not None and (one.work.is_deleting or not one.is_selected),
    ),
    StateRule(State.PENDING, "it has no ManifestWork yet", lambda one: one.work is None),
    StateRule(
        State.ABORTING,
        "its ManifestWork is not on the stable revision, and the rollout is aborted",
        lambda one: not one.on_goal and one.is_aborted,
    ),
    StateRule(
        State.ABORTING,
        "its ManifestWork is back on the stable revision since the abort, and not applied at its generation",
        lambda one: one.is_unconfirmed,
    ),
    StateRule(
        State.PENDING, "its ManifestWork is on another revision than the goal", lambda one: not one.on_goal
    ),
    StateRule(
        State.DEGRADED, "Degraded of its ManifestWork is True", lambda one: one.is_in(RolloutState.FAILED)
    ),
    StateRule(
        State.HEALTHY,
        "Progressing of its ManifestWork is False, or there is none and Available is True",
        lambda one: one.is_in(RolloutState.SUCCEEDED),
    ),
    StateRule(State.PROGRESSING, "its ManifestWork is not applied yet, or progressing", lambda one: True),
)
"""The state of a cluster; the first row that holds decides."""


def reported(obj: Obj, *, is_aborted: bool, has_degraded: bool, is_back: bool) -> Reported:
    """Return what the conditions of a replica set report."""
    made = conditions.of(obj)
    return Reported(
        obj=obj,
        progressing=conditions.find(made, PROGRESSING),
        rolled_out=conditions.find(made, ROLLED_OUT),
        applied=conditions.find(made, APPLIED),
        is_aborted=is_aborted,
        has_degraded=has_degraded,
        is_back=is_back,
    )


def depends_on_works(one: Reported) -> bool:
    """Say whether the state is decided by the works, and not by what the replica set reports alone."""
    return any(
        decide(OWNER_STATES, replace(one, has_degraded=has_degraded, is_back=is_back))
        is not decide(OWNER_STATES, one)
        for has_degraded in (True, False)
        for is_back in (True, False)
    )


def message(one: Reported, state: State) -> str:
    """Return the sentence that explains a state, with the problem of the placements if there is one."""
    return _with_placement(one.obj, _explained(one, state))


def _explained(one: Reported, state: State) -> str:
    match state:
        case State.UNKNOWN:
            return "its hub controller has not reported a status yet"
        case State.PENDING:
            return f"its hub controller has not observed the latest spec yet{_error(one)}"
        case State.DELETING:
            return waiting(one.obj)
        case State.PROGRESSING if one.rolled_out is not None:
            return one.rolled_out.get("message", one.message)
    return one.message


def _error(reported: Reported) -> str:
    """Return the error of the last pass, as its controller appended it to a condition; empty without one."""
    for one in (reported.progressing, reported.applied):
        if one is not None and REFUSED in one.get("message", ""):
            return REFUSED + one.get("message", "").partition(REFUSED)[2]
    return ""


def _with_placement(obj: Obj, message: str) -> str:
    """Return a message with the problem of the placements, unless it has it already."""
    found = conditions.find(conditions.of(obj), VERIFIED)
    wrong = found.get("message", "") if found is not None and found["status"] == "False" else ""
    if wrong in message:
        return message
    return wrong if message in wrong else f"{message}; {wrong}"
