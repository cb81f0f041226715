"""
What a family is to whoever runs it and whoever asks about it.

The command line and the page know no family: they ask each the same few
questions, and show what comes back in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from lamina.core.admission import Check
from lamina.core.controller import AnyController, Source
from lamina.core.history import History
from lamina.core.plan import Plan
from lamina.core.rights import Rights
from lamina.core.world import World
from lamina.objects.types import Made, Obj, Ref


class Place(Struct, frozen=True, kw_only=True):
    """Where one target is: on which revision, in what state, since when as far as that is known, and why."""

    revision: int
    state: str
    since: datetime | None = None
    because: str = ""


class Account(Struct, frozen=True, kw_only=True):
    """
    How one owner stands: its history, where its targets are, and where they are going.

    `goal` is the number that targets are being moved to, 0 where nothing is
    numbered; `wanted` is the one the owner asks for, 0 where that is the goal.
    `targets` says on which revision each is, and `places`, where more is known of
    a target than that, how it does there. `state` is a word, `because` the
    sentence that goes with it.
    """

    owner: Obj
    history: History
    goal: int
    targets: Mapping[str, int] = field(default_factory=dict)
    state: str = ""
    because: str = ""
    places: Mapping[str, Place] = field(default_factory=dict)
    wanted: int = 0

    @property
    def arrived(self) -> int:
        """Return how many targets are on the goal."""
        return sum(1 for number in self.targets.values() if number == self.goal)


class Family(Struct, frozen=True, kw_only=True):
    """
    One design.

    `owners` returns everybody whose change it rolls out; `account` how one of
    them stands, or None if it is none of this family's; `rollback` the plan that
    takes one back, by an ordinary edit of what it asks for.
    """

    name: str
    definitions: Callable[[], tuple[Made, ...]]
    controllers: tuple[AnyController, ...]
    sources: tuple[Source, ...]
    owners: Callable[[World], tuple[Obj, ...]]
    account: Callable[[World, Ref], Account | None]
    rollback: Callable[[World, Ref, int | None], Plan]
    rights: Callable[[Iterable[Obj]], Rights] = lambda objects: Rights()
    """What running these objects of its kinds takes."""
    checks: tuple[Check, ...] = ()
    """What API servers ask before they store an object of its kinds."""
    records: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fields it keeps its records in, by the name of the definition: without them it must not run."""
    edited: tuple[str, ...] = ()
    """The definitions of what whoever edits a namespace may write there; the rest is for administrators and programs."""
