"""
Three ways in which a controller is let down, tried at every moment of a story.

    a death         after a write the process is gone, and another starts
                    with nothing remembered
    a stale view    the process that starts sees the cluster as it was a
                    while ago, whole and in order, and only later the rest
    unseen states   for a while nothing is heard; then only the last word on
                    each object, one kind after the other, in any order

A story is told once without any of it, and what the cluster looks like is kept
after each write. From each such moment it is told to its end again, with one
mishap at its beginning. What was promised is checked after each write; the end
has to be the same; and whoever starts anew at the end finds nothing to do.

The classes are those of Sieve (Sun et al., OSDI 2022), which finds bugs in
controllers on real clusters this way. Here the cluster is on paper, where
nothing is random and a story takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from lamina.core.controller import AnyController, Source
from lamina.core.plan import Action
from lamina.errors import Restless
from lamina.objects import meta
from lamina.objects.diff import diff
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Made, Obj, Ref
from lamina.paper import Desk, Key, Paper, Play
from lamina.paper.sight import News

__all__ = ["Figures", "Mishap", "Scenario", "SieveError", "Wrote", "sieve", "state"]

_MARKS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "deletionTimestamp")
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


Step: TypeAlias = Callable[[Paper], object] | timedelta
"""Somebody does something, or time passes."""
Promise: TypeAlias = Callable[[Wrote], object]
"""Raises AssertionError where something is not as it was promised."""


def state(paper: Paper) -> Any:
    """Return all objects but events, without what differs from one telling to another: uids, versions, times."""
    return {ref: _unmarked(obj) for ref, obj in paper.objects.items() if ref.kind != "Event"}


def _unmarked(obj: Obj) -> Made:
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in _MARKS}
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
    first. `controllers` and `sources` are put to the test; `others` stand in for
    the rest of the cluster, and nothing happens to them. `outcome` is what has
    to be the same at the end, `deeds` what a death alone must not have done
    otherwise: nothing is sent twice. `ends` is how long it is given to end.
    """

    name: str
    given: Callable[[], Paper]
    steps: Sequence[Step]
    controllers: Sequence[AnyController] = ()
    sources: Sequence[Source] = ()
    others: Sequence[AnyController] = ()
    promises: Sequence[Promise] = ()
    outcome: Callable[[Paper], Any] = state
    deeds: Callable[[Paper], Any] | None = None
    ends: timedelta = timedelta(minutes=10)
    lasts: timedelta = timedelta(seconds=5)
    """For how long a mishap lasts."""


@dataclass(frozen=True)
class Figures:
    """How much was tried."""

    scenarios: int = 0
    moments: int = 0
    tellings: int = 0
    writes: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.scenarios + other.scenarios,
            self.moments + other.moments,
            self.tellings + other.tellings,
            self.writes + other.writes,
        )

    def __str__(self) -> str:
        return (
            f"{self.scenarios} scenarios, {self.moments} moments, "
            f"{self.tellings} tellings with a mishap, {self.writes} writes checked"
        )


class SieveError(AssertionError):
    """A controller did not bear what happened to it. Says in which story, at which moment, and what it did then."""


@dataclass(frozen=True)
class _Moment:
    """What the cluster looked like after a write: where in the story that was, and whose write."""

    place: int
    until: datetime | None
    paper: Paper
    ours: bool
    wrote: str


@dataclass
class _Telling:
    """One telling of a story, from some moment of it on."""

    scenario: Scenario
    paper: Paper
    place: int = 0
    until: datetime | None = None
    seen: Callable[[Kind], Sequence[Obj]] | None = None
    keep: Callable[[_Telling, bool, str], None] | None = None
    mishap: Mishap | None = None
    told: list[str] = field(default_factory=list)
    writes: int = 0

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.desk = Desk(self.paper, scenario.controllers, scenario.sources, seen=self.seen)
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
        self.told.append(f"{self.paper.now:%H:%M:%S.%f} {_wrote(action)}")
        wrote = Wrote(action, self._objects, self.paper, self.mishap)
        for promise in self.scenario.promises:
            promise(wrote)
        self._kept(True, action)

    def _kept(self, ours: bool, action: Action) -> None:
        if self.keep is not None:
            self.keep(self, ours, _wrote(action))

    def go_on(self) -> None:
        """Tell the story to its end, and then see that there is nothing left to do."""
        for place in range(self.place, len(self.scenario.steps)):
            step = self.scenario.steps[place]
            if isinstance(step, timedelta):
                self._pass(place, self.until or self.paper.now + step)
            elif self.until is None:
                self.place = place
                step(self.paper)
            self.until = None
        self._pass(len(self.scenario.steps), self.paper.now + self.scenario.ends)

    def _pass(self, place: int, until: datetime) -> None:
        self.place, self.until = place, until
        self.play.until(until)
        self.until = None

    def left_to_do(self) -> Sequence[Action]:
        """Have somebody start now, and return what they find to do."""
        self.desk.leave()
        fresh = Desk(self.paper, self.scenario.controllers, self.scenario.sources)
        before = len(self.paper.journal)
        Play(self.paper, fresh, most=_MOST).settle()
        return self.paper.journal[before:]


def sieve(scenario: Scenario, *, mishaps: Sequence[Mishap] = tuple(Mishap), every: int = 1) -> Figures:
    """
    Tell a story with a mishap at each of its moments, or at every so manieth; return how much was tried.

    Raises SieveError, which says what happened, where a promise is broken, the
    end is another, there is none, or a controller stumbles; and where nothing is
    written in the story, so that there is nothing to try.
    """
    paper = scenario.given()
    begin = _Telling(scenario, paper)
    _told(scenario, begin, "before it begins", lambda: begin.play.until(paper.now + scenario.ends))
    begin.desk.leave()
    begin.rest.leave()
    paper.journal.clear()
    moments: list[_Moment] = []

    def keep(telling: _Telling, ours: bool, wrote: str) -> None:
        moments.append(_Moment(telling.place, telling.until, telling.paper.as_it_is(), ours, wrote))

    first = _Telling(scenario, paper, keep=keep)
    start = _Moment(0, None, paper.as_it_is(), False, "nothing")
    _told(scenario, first, "undisturbed", first.go_on)
    if not any(moment.ours for moment in moments):
        # Who does nothing bears everything, and that proves nothing.
        raise SieveError(_report(scenario, first, "undisturbed", "whoever is put to the test writes nothing"))
    figures = Figures(scenarios=1, moments=len(moments))
    expected, deeds = scenario.outcome(paper), scenario.deeds(paper) if scenario.deeds is not None else None
    _told(scenario, first, "undisturbed", lambda: _check_rest(first))
    before = [start, *moments]
    for number, moment in enumerate(moments):
        if number % every:
            continue
        for what, telling in _disturbed(scenario, before, number + 1, mishaps, number // every):
            where = f"{what} after write {number + 1}, {moment.wrote}, {_when(scenario, moment)}"
            _told(scenario, telling, where, telling.go_on)
            figures += Figures(tellings=1, writes=telling.writes)
            _same(scenario, telling, where, scenario.outcome(telling.paper), expected, "end")
            if scenario.deeds is not None and what is Mishap.DEATH:
                _same(scenario, telling, where, scenario.deeds(telling.paper), deeds, "way")
            _told(scenario, telling, where, lambda telling=telling: _check_rest(telling))  # type: ignore[misc]
    return figures


def _wrote(action: Action) -> str:
    return f"{type(action).__name__.lower()} {action.ref}"


def _check_rest(telling: _Telling) -> None:
    # No assert: pytest, which has this file for a plugin's, would have its say in the report.
    if left := telling.left_to_do():
        did = ", ".join(map(_wrote, left[:5]))
        raise AssertionError(f"whoever starts anew at the end still finds something to do: {did}")


def _told(scenario: Scenario, telling: _Telling, where: str, tell: Callable[[], object]) -> None:
    try:
        tell()
    except (AssertionError, Restless) as broken:
        raise SieveError(_report(scenario, telling, where, str(broken))) from broken
    except Exception as mistake:
        # A planner that stumbles over what it was shown is what a stale view is for.
        raised = f"{type(mistake).__name__}: {mistake}"
        raise SieveError(_report(scenario, telling, where, raised)) from mistake


def _same(scenario: Scenario, telling: _Telling, where: str, found: Any, expected: Any, what: str) -> None:
    if found != expected:
        shown = f"another {what} than undisturbed: {_difference(found, expected)}"
        raise SieveError(_report(scenario, telling, where, shown))


def _difference(found: Any, expected: Any) -> str:
    """Return what is other than it should be, object by object where there are any."""
    if not isinstance(found, Mapping) or not isinstance(expected, Mapping):
        return f"{found!r}, where it should be {expected!r}"
    lines: list[str] = []
    for key in {**expected, **found}:
        if key not in found:
            lines.append(f"{key} is missing")
        elif key not in expected:
            lines.append(f"{key} is there, and should not be")
        else:
            lines += [f"{key}: {change}" for change in diff(expected[key], found[key])]
    return "".join(f"\n  {line}" for line in lines)


def _when(scenario: Scenario, moment: _Moment) -> str:
    """Return where in its story a moment is, counting steps from 1."""
    steps = len(scenario.steps)
    return f"in step {moment.place + 1} of {steps}" if moment.place < steps else f"after all {steps} steps"


def _report(scenario: Scenario, telling: _Telling, where: str, what: str) -> str:
    did = "".join(f"\n  {line}" for line in telling.told[-30:]) or " nothing"
    return f"{scenario.name}: {where}: {what}\nwhat it wrote since, to the end or the last thirty:{did}"


def _disturbed(
    scenario: Scenario, moments: Sequence[_Moment], number: int, mishaps: Sequence[Mishap], turn: int
) -> Iterator[tuple[Mishap, _Telling]]:
    """Yield the tellings that begin at a moment, each with its mishap."""
    moment = moments[number]
    if Mishap.DEATH in mishaps and moment.ours:
        paper = moment.paper.as_it_is()
        yield Mishap.DEATH, _Telling(scenario, paper, moment.place, moment.until, mishap=Mishap.DEATH)
    if Mishap.STALE in mishaps:
        # A little behind, and far: which of the two takes turns, so that every moment has one.
        for lag in (1, 6) if number > 6 else (1,):
            yield Mishap.STALE, _stale(scenario, moment, moments[number - lag].paper)
    if Mishap.UNSEEN in mishaps:
        yield Mishap.UNSEEN, _unseen(scenario, moment, turn)


def _stale(scenario: Scenario, moment: _Moment, past: Paper) -> _Telling:
    """Return a telling by a process that starts with the past before its eyes."""
    paper = moment.paper.as_it_is()
    telling = _Telling(scenario, paper, moment.place, moment.until, seen=past.listed, mishap=Mishap.STALE)
    sight = telling.desk.sight
    sight.holds = True
    for news in _since(past, paper):
        sight.hear(news)
    telling.play.at(paper.now + scenario.lasts, lambda: _see_again(telling.desk))
    return telling


def _since(past: Paper, paper: Paper) -> list[News]:
    """Return what happened between two states, as a watch would tell it."""
    changed = [
        News(ref, obj, int(meta.resource_version(obj)))
        for ref, obj in paper.objects.items()
        if past.objects.get(ref) != obj
    ]
    gone = [News(ref, None, paper.version) for ref in past.objects if ref not in paper.objects]
    return sorted([*changed, *gone], key=lambda news: news.version)


def _see_again(desk: Desk) -> None:
    desk.sight.holds, desk.sight.seen = False, desk.paper.listed
    for kind in desk.sight.held:
        desk.sight.let_go(kind)


def _unseen(scenario: Scenario, moment: _Moment, turn: int) -> _Telling:
    """Return a telling by a process that hears nothing for a while, and then the last words, kind by kind."""
    paper = moment.paper.as_it_is()
    telling = _Telling(scenario, paper, moment.place, moment.until, mishap=Mishap.UNSEEN)
    desk = telling.desk
    desk.sight.holds = True

    def let_go() -> None:
        kinds = _turned(sorted(desk.sight.held), turn)
        for place, kind in enumerate(kinds):
            # A moment later each, so that everybody acts on what has come so far.
            when = paper.now + timedelta(milliseconds=10 * place)
            telling.play.at(when, lambda kind=kind: desk.sight.let_go(kind, last_words=True))  # type: ignore[misc]
        telling.play.at(paper.now + timedelta(milliseconds=10 * len(kinds)), lambda: _see_again(desk))

    telling.play.at(paper.now + scenario.lasts, let_go)
    return telling


def _turned(kinds: Sequence[GroupKind], turn: int) -> Sequence[GroupKind]:
    """Return the kinds in another order each turn."""
    if not kinds:
        return kinds
    start = turn // 2 % len(kinds)
    turned = [*kinds[start:], *kinds[:start]]
    return turned[::-1] if turn % 2 else turned
