"""
The states of owners and targets, in words that every family, command and metric shares.

A family translates its upstream's conditions into these states with a table of
`StateRule`s; the first rule that holds decides, and the documentation prints the
same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

Facts = TypeVar("Facts")


class State(StrEnum):
    """The state of an owner, and of each of its targets."""

    PENDING = "Pending"
    PROGRESSING = "Progressing"
    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    PAUSED = "Paused"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    DELETING = "Deleting"
    ARCHIVED = "Archived"
    UNKNOWN = "Unknown"


MEANINGS: Mapping[State, str] = {
    State.PENDING: "accepted; its controller has not started on it, or it waits in its rollout",
    State.PROGRESSING: "on its way to the goal revision, or there and not healthy yet",
    State.HEALTHY: "on the goal revision and healthy",
    State.DEGRADED: "failed, refused, or not healthy when its time was up",
    State.PAUSED: "kept at its revision by a pause or a partition",
    State.ABORTING: "its rollout is aborted; targets are being moved back to the stable revision",
    State.ABORTED: "its rollout is aborted, and every target is back on the stable revision",
    State.DELETING: "deleted, or no longer selected; waits for finalizers or for its controller",
    State.ARCHIVED: "replaced by a newer revision and kept as a record",
    State.UNKNOWN: "its controller has not reported a status; the message says why",
}
"""What each state means, for an owner and for a target."""

_WORST_FIRST = (
    State.DEGRADED,
    State.ABORTING,
    State.ABORTED,
    State.UNKNOWN,
    State.PROGRESSING,
    State.PENDING,
    State.DELETING,
    State.PAUSED,
    State.HEALTHY,
    State.ARCHIVED,
)


def worst(states: Iterable[State]) -> State:
    """Return the worst of the states of parts, as the state of the whole; Healthy where there are none."""
    return min(states, key=_WORST_FIRST.index, default=State.HEALTHY)


class StateRule(Struct, Generic[Facts], frozen=True):
    """
    One row of a family's table: the state, the upstream conditions it stands for, and the check for them.

    `ends` says that a rollout in this state has ended without success: it was aborted, its
    deadline is exceeded, or its spec is invalid. What may still become healthy without an
    edit, such as one late target, does not end it.
    """

    state: State
    upstream: str
    holds: Callable[[Facts], bool]
    ends: bool = False


def deciding(rules: Sequence[StateRule[Facts]], facts: Facts) -> StateRule[Facts]:
    """Return the first rule that holds; one of the state Unknown where none does."""
    otherwise = StateRule[Facts](State.UNKNOWN, "anything else", lambda facts: True)
    return next((rule for rule in rules if rule.holds(facts)), otherwise)


def decide(rules: Sequence[StateRule[Facts]], facts: Facts) -> State:
    """Return the state of the first rule that holds; Unknown where none does."""
    return deciding(rules, facts).state
