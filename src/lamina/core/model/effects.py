"""
What a reconcile exchanges with its driver: the effects it yields, the replies, and what it comes to.

An effect is something that only a driver can do: wait for caches, send queries,
write. `core.model.reconcile` yields them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from lamina.core.model.plan import Action, Plan, is_outdated, verb
from lamina.core.model.queries import Query
from lamina.errors import CacheNotSynced, LaminaError, NotLeading
from lamina.objects.types import Ref


class Written(Struct, frozen=True):
    """A write that the server took: the version it made, or none where the object was deleted."""

    ref: Ref
    uid: str
    version: int | None


class CatchUp(Struct, frozen=True):
    """
    Bring the caches up to date for a key.

    The caches of its cluster are synced, they contain what was `written` for the
    key, and the `outdated` objects, which were in the way of a write, are read live.
    """

    cluster: str
    written: Collection[Written] = ()
    outdated: Collection[Ref] = ()


class Ask(Struct, frozen=True):
    """Answer queries; the reply maps each of them to its answer."""

    queries: tuple[Query, ...]


class Perform(Struct, frozen=True):
    """Perform the actions of one stage of a plan; the reply has for each action its writes or the error."""

    plan: Plan
    actions: tuple[Action, ...]


Effect: TypeAlias = CatchUp | Ask | Perform
Performed: TypeAlias = Sequence[Written] | LaminaError


class RefusedAction(Struct, frozen=True):
    """An action that the server did not take, and why."""

    action: Action
    error: LaminaError

    @property
    def verb(self) -> str:
        """Return the verb of the request, as in a rule of RBAC."""
        return verb(self.action)

    @property
    def is_outdated(self) -> bool:
        """Say whether it was refused only because what it was decided on has changed since."""
        return is_outdated(self.action, self.error)

    @property
    def is_transient(self) -> bool:
        """Say whether a new plan is all it takes."""
        return self.is_outdated or isinstance(self.error, NotLeading | CacheNotSynced)


class Outcome(Struct, frozen=True):
    """The outcome of a plan: the actions that wrote something, their writes, and the actions that were refused."""

    done: tuple[Action, ...] = ()
    written: tuple[Written, ...] = ()
    refused: tuple[RefusedAction, ...] = ()


class Result(StrEnum):
    """How a reconcile ended, in the words of controller-runtime's metrics."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    """An error that is not retried before something changes."""
    PANIC = "panic"
    """An error that is a defect of a controller."""


class Complaint(Struct, frozen=True):
    """An error as it was reported on the object, or why that could not be done."""

    error: LaminaError
    outcome: Outcome = Outcome()
    unreported: LaminaError | None = None


class Attempt(Struct, frozen=True, kw_only=True):
    """What one reconcile of a key came to. Without a view there was nothing to decide; without a plan it failed early."""

    result: Result
    has_view: bool = False
    plan: Plan | None = None
    outcome: Outcome = Outcome()
    failure: LaminaError | None = None
    complaint: Complaint | None = None
    conflicts: int = 0
    """How many reconciles of the key in a row, up to this one, ended with nothing but conflicts."""
