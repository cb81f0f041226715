"""The rules of states that are about the conditions of an object, and the rows that most tables of them have."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lamina.core.model.finalizers import waiting
from lamina.core.model.state import State, StateRule
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Obj


class ReportedConditions(Struct, frozen=True):
    """What the status of an object reports, and whether that is about its latest spec."""

    obj: Obj

    def get(self, name: str) -> Condition | None:
        return conditions.find(conditions.of(self.obj), name)

    def has(self, name: str, status: str, *reasons: str) -> bool:
        """Say whether a condition has this status and, where reasons are given, one of them."""
        found = self.get(name)
        return (
            found is not None
            and found.get("status") == status
            and (not reasons or found.get("reason") in reasons)
        )

    @property
    def is_current(self) -> bool:
        return any(conditions.is_current(one, self.obj) for one in conditions.of(self.obj))


ConditionRule = StateRule[ReportedConditions]

DELETING: ConditionRule = StateRule(
    State.DELETING, "metadata.deletionTimestamp is set", lambda one: meta.is_deleting(one.obj)
)
UNREPORTED: ConditionRule = StateRule(State.UNKNOWN, "no conditions", lambda one: not conditions.of(one.obj))
OUTDATED: ConditionRule = StateRule(
    State.PENDING,
    "observedGeneration of all conditions is older than metadata.generation",
    lambda one: not one.is_current,
)


def reports(state: State, name: str, status: str, *reasons: str, ends: bool = False) -> ConditionRule:
    """Return the rule of a condition with this status and, where reasons are given, one of them."""
    because = f", reason {' or '.join(reasons)}" if reasons else ""
    text = f"{name} is {status}{because}"
    return StateRule(state, text, lambda one: one.has(name, status, *reasons), ends=ends)


def message(obj: Obj, state: State, names: Sequence[str]) -> str:
    """Return the message of a state: what every table says alike, or that of the first of these conditions."""
    if state is State.DELETING and meta.is_deleting(obj):
        return waiting(obj)
    if state in _MESSAGES:
        return _MESSAGES[state]
    found = (conditions.find(conditions.of(obj), name) for name in names)
    return next((one.get("message", "") for one in found if one is not None), "")


_MESSAGES = {
    State.UNKNOWN: "its controller has not reported a status yet",
    State.PENDING: "its controller has not observed the latest spec yet",
}
