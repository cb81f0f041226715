"""
One story for the sieve, and one telling of it: what happens on a cluster on paper while controllers are at work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lamina.core.controller import AnyController, Source
from lamina.core.plan import Action
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref
from lamina.paper import Desk, Key, Paper, Play

_MARKS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
_MOST = 5000


class Mishap(StrEnum):
    """What goes wrong."""

    DEATH = "a death"
    STALE = "a stale view"
    UNSEEN = "unseen states"


class Wrote(NamedTuple):
    """One write of a controller under test: what it was, the cluster before and after it, and what had gone wrong."""

    action: Action
    before: Mapping[Ref, Made]
    paper: Paper
    mishap: Mishap | None = None


Worker = TypeVar("Worker")
Staff: TypeAlias = Sequence[Worker] | Callable[[], Sequence[Worker]]
"""Who works in a process, or what makes them anew for each one that starts."""
Step: TypeAlias = Callable[[Paper], object] | timedelta
"""Somebody does something, or time passes."""
Promise: TypeAlias = Callable[[Wrote], object]
"""Raises AssertionError where something is not as it was promised."""


def state(paper: Paper) -> Any:
    """Return all objects but events, without what differs from one telling to another: uids, versions, times."""
    return {ref: _unmarked(obj) for ref, obj in paper.objects.items() if ref.kind != "Event"}


def _unmarked(obj: Obj) -> Made:
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in _MARKS}
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = "some time"
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = [
            {name: value for name, value in owner.items() if name != "uid"}
            for owner in metadata["ownerReferences"]
        ]
    return {**obj, "metadata": metadata, "status": _timeless(obj.get("status"))}


def _timeless(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _timeless(held)
            for name, held in value.items()
            if not name.endswith(("Time", "Timestamp")) and name != "observedGeneration"
        }
    return [_timeless(held) for held in value] if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """
    One story, and who is put to the test in it.

    `given` makes the cluster as the story finds it; everybody settles on it
    first. `controllers` and `sources` are put to the test; who remembers anything
    is given as a function that makes them, so that whoever starts after a death
    remembers nothing. `others` stand in for the rest of the cluster, and nothing
    happens to them. `outcome` is what has to be the same at the end, `deeds` what
    a death alone must not have done otherwise: nothing is sent twice. `ends` is
    how long it is given to end.
    """

    name: str
    given: Callable[[], Paper]
    steps: Sequence[Step]
    controllers: Staff[AnyController] = ()
    sources: Staff[Source] = ()
    others: Sequence[AnyController] = ()
    promises: Sequence[Promise] = ()
    outcome: Callable[[Paper], Any] = state
    deeds: Callable[[Paper], Any] | None = None
    ends: timedelta = timedelta(minutes=10)
    lasts: timedelta = timedelta(seconds=5)
    """For how long a mishap lasts."""


@dataclass(frozen=True)
class Moment:
    """What the cluster looked like after something happened: where in the story that was, and what it was."""

    place: int
    until: datetime | None
    paper: Paper
    when: str
    is_step: bool = False
    """Whether it is somebody's step that it comes after, which leaves controllers something to do."""
    ours: bool = False
    """Whether it is a write of those who are put to the test."""


@dataclass
class Telling:
    """One telling of a story, from some moment of it on."""

    scenario: Scenario
    paper: Paper
    place: int = 0
    until: datetime | None = None
    seen: Callable[[Kind], Sequence[Obj]] | None = None
    keep: Callable[[Moment], None] | None = None
    mishap: Mishap | None = None
    saw: str = ""
    """What was shown to whoever is let down."""
    told: list[str] = field(default_factory=list)
    writes: int = 0
    every_write: int = 0
    """Of theirs and of everybody else's."""

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.desk = Desk(self.paper, _hired(scenario.controllers), _hired(scenario.sources), seen=self.seen)
        self.rest = Desk(self.paper, scenario.others)
        self.play = Play(self.paper, self.desk, self.rest, most=_MOST)
        self.desk.before_write = self._before
        self.desk.after_write = self._after
        self.rest.after_write = lambda key, action: self._kept(False, action)
        self._objects: Mapping[Ref, Made] = {}

    def _before(self, key: Key, action: Action) -> None:
        self._objects = dict(self.paper.objects) if self.scenario.promises else {}

    def _after(self, key: Key, action: Action) -> None:
        self.writes += 1
        self.told.append(f"{self.paper.now:%H:%M:%S.%f} {told_of(action)}")
        wrote = Wrote(action, self._objects, self.paper, self.mishap)
        for promise in self.scenario.promises:
            promise(wrote)
        self._kept(True, action)

    def _kept(self, ours: bool, action: Action) -> None:
        self.every_write += 1
        if self.keep is not None:
            steps = len(self.scenario.steps)
            where = (
                f"in step {self.place + 1} of {steps}" if self.place < steps else f"after all {steps} steps"
            )
            when = f"after write {self.every_write}, {told_of(action)}, {where}"
            self.keep(Moment(self.place, self.until, self.paper.as_it_is(), when, ours=ours))

    def go_on(self) -> None:
        """Tell the story to its end, and then see that there is nothing left to do."""
        for place in range(self.place, len(self.scenario.steps)):
            step = self.scenario.steps[place]
            if isinstance(step, timedelta):
                self._pass(place, self.until or self.paper.now + step)
            elif self.until is None:
                self.place = place
                step(self.paper)
                self._stepped(place + 1)
            self.until = None
        self._pass(len(self.scenario.steps), self.paper.now + self.scenario.ends)

    def _stepped(self, place: int) -> None:
        if self.keep is not None:
            when = f"after step {place} of {len(self.scenario.steps)}"
            self.keep(Moment(place, None, self.paper.as_it_is(), when, is_step=True))

    def _pass(self, place: int, until: datetime) -> None:
        self.place, self.until = place, until
        self.play.until(until)
        self.until = None

    def left_to_do(self) -> Sequence[str]:
        """Have somebody start now, and return what they find to do, and what is in their way."""
        self.desk.leave()
        fresh = Desk(self.paper, _hired(self.scenario.controllers), _hired(self.scenario.sources))
        before = len(self.paper.journal)
        Play(self.paper, fresh, most=_MOST).settle()
        trouble = [
            str(one.failure) for one in fresh.passes if one.failure is not None and not one.is_outdated
        ]
        return [*map(told_of, self.paper.journal[before:]), *trouble]


def told_of(action: Action) -> str:
    return f"{type(action).__name__.lower()} {action.ref}"


def _hired(staff: Staff[Worker]) -> Sequence[Worker]:
    return staff() if callable(staff) else staff
