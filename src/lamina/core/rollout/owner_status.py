"""The status of an owner's rollout and of its targets, as every family reports it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from lamina.core.model.state import State
from lamina.core.rollout.history import History
from lamina.objects.types import GroupKind, Obj


class TargetStatus(Struct, frozen=True, kw_only=True):
    """
    The revision a target is on (0 where it has none), its state, since when if known, and why.

    A target that waits for its turn is `Pending` and may still be `available`:
    healthy on the revision it is on.
    """

    revision: int
    state: State
    since: datetime | None = None
    message: str = ""
    available: bool = False
    kind: GroupKind | None = None
    """The kind of the object that its status is read from; None where its owner reports it."""
    is_read: bool = True
    """Whether its object, and its revision, may be read."""


class OwnerStatus(Struct, frozen=True, kw_only=True):
    """
    The status of one owner: its history, its targets, and the revision they are moved to.

    `goal` is the number of the revision that targets are moved to, 0 where the
    owner has no revisions, and then `unrevised` says why; `wanted` is the one its
    spec asks for, 0 where that is the goal. `has_ended` says that the rollout has
    ended without success (`StateRule.ends`).
    """

    owner: Obj
    history: History
    goal: int
    state: State
    message: str = ""
    targets: Mapping[str, TargetStatus] = field(default_factory=dict)
    wanted: int = 0
    unrevised: str = ""
    stable: int = 0
    """The number of the revision that an abort returns to; 0 where there is none, or no abort."""
    has_ended: bool = False
    is_decorated: bool = False
    """Whether its family adds objects to the owner only, and another family may roll it out."""
    by_targets: bool = False
    """Whether the state is that of its targets, and not reported by its own conditions."""
    unread: tuple[str, ...] = ()
    """What may not be read and would be needed to count its targets."""
    is_goal_read: bool = True
    """Whether its revisions may be read."""

    @property
    def updated(self) -> int:
        """Return how many targets are on the goal revision."""
        return sum(1 for one in self.targets.values() if one.revision == self.goal)

    @property
    def available(self) -> int:
        """Return how many targets are healthy on the revision they are on."""
        return sum(1 for one in self.targets.values() if one.available)
