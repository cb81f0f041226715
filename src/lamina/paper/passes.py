"""What a process on paper does: one look at one key after another, and what came of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from lamina.core.plan import Action
from lamina.errors import LaminaError
from lamina.objects.types import Ref


class Key(NamedTuple):
    """Whom a controller has to look at."""

    controller: str
    ref: Ref


Choose: TypeAlias = Callable[[Sequence[Key]], Key]


class Pass(Struct, frozen=True, kw_only=True):
    """What a controller did about one object at one moment, and why."""

    at: datetime
    controller: str
    ref: Ref
    because: str = ""
    done: tuple[Action, ...] = ()
    failure: LaminaError | None = None
    """What went wrong, said on the object or not."""
    is_outdated: bool = False
    """Whether nothing went wrong but that somebody else was quicker."""


class Crashed(Exception):
    """The process died between two writes."""
