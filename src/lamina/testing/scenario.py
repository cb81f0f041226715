"""
A scenario for the crash explorer, and one run of it on a simulated cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar

from lamina.core.model.controller import AnyController, Source
from lamina.core.model.plan import Action
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import Key, Loop, Process, SimulatedCluster

_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
_MAX_RECONCILES = 5000


class Perturbation(StrEnum):
    """What happens to the controllers under test at the start of a run."""

    CRASH = "a crash"
    STALE_VIEW = "a stale view"
    MISSED_EVENTS = "missed events"


class Write(NamedTuple):
    """One write of a controller under test: the action, the objects before it, the cluster after it."""

    action: Action
    before: Mapping[Ref, Made]
    cluster: SimulatedCluster
    perturbation: Perturbation | None = None


Value = TypeVar("Value")
ValuesOrFactory: TypeAlias = Sequence[Value] | Callable[[], Sequence[Value]]
"""Values that all processes share, or a function that each process that starts calls for its own."""
Step: TypeAlias = Callable[[SimulatedCluster], object] | timedelta
"""A change of the cluster, or time that passes."""
Invariant: TypeAlias = Callable[[Write], object]
"""Raises AssertionError for a write that violates it."""


def state(cluster: SimulatedCluster) -> Any:
    """Return all objects but events, without what differs between runs: UIDs, versions and times."""
    return {ref: _comparable(obj) for ref, obj in cluster.objects.items() if ref.kind != "Event"}


def _comparable(obj: Obj) -> Made:
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in _VOLATILE}
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = "some time"
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = [
            {name: value for name, value in owner.items() if name != "uid"}
            for owner in metadata["ownerReferences"]
        ]
    return {**obj, "metadata": metadata, "status": _without_times(obj.get("status"))}


def _without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without_times(held)
            for name, held in value.items()
            if not name.endswith(("Time", "Timestamp")) and name != "observedGeneration"
        }
    return [_without_times(held) for held in value] if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """
    A cluster, steps on it, and the controllers under test.

    `given` makes the cluster; all controllers settle on it before the first step.
    `controllers` and `sources` are under test; if they have state in memory, they are
    given as a function, so that a process that starts after a crash has none. `others`
    simulate the rest of the cluster and are not perturbed. `outcome` is what must be the
    same at the end of every run; `effects` is what must be the same after a crash, for
    example how often something was sent. The outcome must be reached within
    `settles_within`.
    """

    name: str
    given: Callable[[], SimulatedCluster]
    steps: Sequence[Step]
    controllers: ValuesOrFactory[AnyController] = ()
    sources: ValuesOrFactory[Source] = ()
    others: Sequence[AnyController] = ()
    invariants: Sequence[Invariant] = ()
    outcome: Callable[[SimulatedCluster], Any] = state
    effects: Callable[[SimulatedCluster], Any] | None = None
    settles_within: timedelta = timedelta(minutes=10)
    perturbed_for: timedelta = timedelta(seconds=5)
    """The duration of a stale view, and of missed events."""


@dataclass(frozen=True)
class Checkpoint:
    """A copy of the cluster, and the position in the scenario: the step, and the end of its time if it is one."""

    place: int
    until: datetime | None
    cluster: SimulatedCluster
    when: str
    is_step: bool = False
    """Whether it follows a step, which leaves the controllers something to do."""
    under_test: bool = False
    """Whether it follows a write of a controller under test."""


@dataclass
class Run:
    """One run of a scenario, from a checkpoint on."""

    scenario: Scenario
    cluster: SimulatedCluster
    place: int = 0
    until: datetime | None = None
    list_objects: Callable[[Kind], Sequence[Obj]] | None = None
    keep: Callable[[Checkpoint], None] | None = None
    perturbation: Perturbation | None = None
    view: str = ""
    """What the perturbed process reads, in words."""
    log: list[str] = field(default_factory=list)
    """The writes of the controllers under test, in words."""
    writes: int = 0
    all_writes: int = 0
    """The writes of all controllers."""

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.under_test = Process(
            self.cluster,
            _values(scenario.controllers),
            _values(scenario.sources),
            list_objects=self.list_objects,
        )
        self.others = Process(self.cluster, scenario.others)
        self.loop = Loop(self.cluster, self.under_test, self.others, max_steps=_MAX_RECONCILES)
        self.under_test.before_write = self._before_write
        self.under_test.after_write = self._after_write
        self.others.after_write = lambda key, action: self._checkpoint(action, under_test=False)
        self._objects: Mapping[Ref, Made] = {}

    def _before_write(self, key: Key, action: Action) -> None:
        self._objects = dict(self.cluster.objects) if self.scenario.invariants else {}

    def _after_write(self, key: Key, action: Action) -> None:
        self.writes += 1
        self.log.append(f"{self.cluster.now:%H:%M:%S.%f} {describe(action)}")
        write = Write(action, self._objects, self.cluster, self.perturbation)
        for invariant in self.scenario.invariants:
            invariant(write)
        self._checkpoint(action, under_test=True)

    def _checkpoint(self, action: Action, *, under_test: bool) -> None:
        self.all_writes += 1
        if self.keep is not None:
            steps = len(self.scenario.steps)
            where = (
                f"in step {self.place + 1} of {steps}" if self.place < steps else f"after all {steps} steps"
            )
            when = f"after write {self.all_writes}, {describe(action)}, {where}"
            self.keep(Checkpoint(self.place, self.until, self.cluster.copy(), when, under_test=under_test))

    def resume(self) -> None:
        """Run the remaining steps, and let the controllers settle."""
        for place in range(self.place, len(self.scenario.steps)):
            step = self.scenario.steps[place]
            if isinstance(step, timedelta):
                self._pass_time(place, self.until or self.cluster.now + step)
            elif self.until is None:
                self.place = place
                step(self.cluster)
                self._checkpoint_step(place + 1)
            self.until = None
        self._pass_time(len(self.scenario.steps), self.cluster.now + self.scenario.settles_within)

    def _checkpoint_step(self, place: int) -> None:
        if self.keep is not None:
            when = f"after step {place} of {len(self.scenario.steps)}"
            self.keep(Checkpoint(place, None, self.cluster.copy(), when, is_step=True))

    def _pass_time(self, place: int, until: datetime) -> None:
        self.place, self.until = place, until
        self.loop.until(until)
        self.until = None

    def remaining_work(self) -> Sequence[str]:
        """Start a process without memory, and return its writes and its errors."""
        self.under_test.stop()
        fresh = Process(self.cluster, _values(self.scenario.controllers), _values(self.scenario.sources))
        before = len(self.cluster.journal)
        Loop(self.cluster, fresh, max_steps=_MAX_RECONCILES).settle()
        errors = [str(one.failure) for one in fresh.passes if one.failure is not None and not one.is_outdated]
        return [*map(describe, self.cluster.journal[before:]), *errors]


def describe(action: Action) -> str:
    return f"{type(action).__name__.lower()} {action.ref}"


def _values(values: ValuesOrFactory[Value]) -> Sequence[Value]:
    return values() if callable(values) else values
