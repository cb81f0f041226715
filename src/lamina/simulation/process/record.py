"""The record of what a simulated process does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from lamina.core.model.plan import Action
from lamina.errors import LaminaError
from lamina.objects.types import Ref


class Key(NamedTuple):
    """A key of one controller."""

    controller: str
    ref: Ref


Choose: TypeAlias = Callable[[Sequence[Key]], Key]


class Pass(Struct, frozen=True, kw_only=True):
    """One reconcile that wrote something or failed: what, when and why."""

    at: datetime
    controller: str
    ref: Ref
    because: str = ""
    done: tuple[Action, ...] = ()
    failure: LaminaError | None = None
    """The error, reported on the object or not."""
    is_outdated: bool = False
    """Whether the failure is only a conflict with another writer."""


class Crashed(Exception):
    """The process died between two writes."""
