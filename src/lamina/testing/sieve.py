"""
Three ways in which a controller is let down, tried at every moment of a story.

    a death         after a write, its own or another's, or after somebody's
                    step the process is gone, and another starts with
                    nothing remembered
    a stale view    the process that starts sees the cluster as it was a
                    while ago, whole and in order, and only later the rest
    unseen states   for a while nothing is heard; then only the last word on
                    each object, one kind after the other: in one order, and
                    told again, in the opposite one

A story is told once without any of it, and what the cluster looks like is kept
at its beginning, after each step and after each write. From each such moment it is told to its end again, with one
mishap at its beginning. What was promised is checked after each write; the end
has to be the same; and whoever starts anew at the end finds nothing to do.

The classes are those of Sieve (Sun et al., OSDI 2022), which finds bugs in
controllers on real clusters this way. Here the cluster is on paper, where
nothing is random and a story takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.errors import Restless
from lamina.objects.diff import diff
from lamina.testing.mishaps import disturbed
from lamina.testing.story import (
    Mishap,
    Moment,
    Promise,
    Scenario,
    Staff,
    Step,
    Telling,
    Wrote,
    state,
)

__all__ = [
    "Figures",
    "Mishap",
    "Promise",
    "Scenario",
    "SieveError",
    "Staff",
    "Step",
    "Wrote",
    "sieve",
    "state",
]


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


def sieve(scenario: Scenario, *, mishaps: Sequence[Mishap] = tuple(Mishap), every: int = 1) -> Figures:
    """
    Tell a story with a mishap at each of its moments, or at every so manieth; return how much was tried.

    Raises SieveError, which says what happened, where a promise is broken, the
    end is another, there is none, or a controller stumbles; and where nothing is
    written in the story, so that there is nothing to try.
    """
    if every < 1 or not mishaps:
        raise ValueError(
            f"nothing would be tried at every {every} of its moments, with {len(mishaps)} mishaps"
        )
    paper = scenario.given()
    begin = Telling(scenario, paper)
    _told(scenario, begin, "before it begins", lambda: begin.play.until(paper.now + scenario.ends))
    begin.desk.leave()
    begin.rest.leave()
    paper.journal.clear()
    moments = [Moment(0, None, paper.as_it_is(), "as it begins")]
    first = Telling(scenario, paper, keep=moments.append)
    _told(scenario, first, "undisturbed", first.go_on)
    if not any(moment.ours for moment in moments):
        # Who does nothing bears everything, and that proves nothing.
        raise SieveError(_report(scenario, first, "undisturbed", "whoever is put to the test writes nothing"))
    figures = Figures(scenarios=1, moments=len(moments))
    expected, deeds = scenario.outcome(paper), scenario.deeds(paper) if scenario.deeds is not None else None
    _told(scenario, first, "undisturbed", lambda: _check_rest(first))
    for number in _chosen(len(moments), every):
        for what, telling in disturbed(scenario, moments, number, mishaps):
            where = f"{what} {moments[number].when}"
            _told(scenario, telling, where, telling.go_on)
            figures += Figures(tellings=1, writes=telling.writes)
            _same(scenario, telling, where, scenario.outcome(telling.paper), expected, "end")
            if scenario.deeds is not None and what is Mishap.DEATH:
                _same(scenario, telling, where, scenario.deeds(telling.paper), deeds, "way")
            _told(scenario, telling, where, lambda telling=telling: _check_rest(telling))  # type: ignore[misc]
    return figures


def _chosen(count: int, every: int) -> Sequence[int]:
    """Return the moments that are tried: the beginning, and every so manieth, from the middle of the first so many on."""
    return [0, *range(min(1 + every // 2, count - 1), count, every)]


def _check_rest(telling: Telling) -> None:
    # No assert: pytest, which has this file for a plugin's, would have its say in the report.
    if left := telling.left_to_do():
        did = ", ".join(left[:5])
        raise AssertionError(f"whoever starts anew at the end still finds something to do: {did}")


def _told(scenario: Scenario, telling: Telling, where: str, tell: Callable[[], object]) -> None:
    try:
        tell()
    except (AssertionError, Restless) as broken:
        raise SieveError(_report(scenario, telling, where, str(broken))) from broken
    except Exception as mistake:
        # A planner that stumbles over what it was shown is what a stale view is for.
        raised = f"{type(mistake).__name__}: {mistake}"
        raise SieveError(_report(scenario, telling, where, raised)) from mistake


def _same(scenario: Scenario, telling: Telling, where: str, found: Any, expected: Any, what: str) -> None:
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


def _report(scenario: Scenario, telling: Telling, where: str, what: str) -> str:
    did = "".join(f"\n  {line}" for line in telling.told[-30:]) or " nothing"
    saw = f"\nwhat it saw: {telling.saw}" if telling.saw else ""
    return f"{scenario.name}: {where}: {what}{saw}\nwhat it wrote since, to the end or the last thirty:{did}"
