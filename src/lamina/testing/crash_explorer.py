"""
Runs a scenario again from every checkpoint, each time with a perturbation of the controllers under test.

    a crash         the process is gone after a write or a step; another one
                    starts, with empty caches and queues
    a stale view    the process that starts reads an older state of the cluster,
                    complete and in order, and the newer events only later
    missed events   for some time no watch event arrives; then only the latest
                    state of each object does, one kind after the other: in one
                    order, and in another run in the reverse order

The scenario runs once without perturbation; a checkpoint is taken at its start,
after each step, and after each write. From each checkpoint the scenario then runs
to its end again, with one perturbation at its start. Invariants are checked after
each write; the outcome must be the same; and a process that starts at the end must
find nothing to do.

The classes of perturbations are those of Sieve (Sun et al., OSDI 2022), which finds
bugs of controllers on real clusters. Here the cluster is simulated, so runs are
deterministic and take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lamina.errors import NotSettled
from lamina.objects.diff import diff
from lamina.testing.fault_injection import perturbed_runs
from lamina.testing.scenario import (
    Checkpoint,
    Invariant,
    Perturbation,
    Run,
    Scenario,
    Step,
    ValuesOrFactory,
    Write,
    state,
)

__all__ = [
    "Coverage",
    "ExplorerError",
    "Invariant",
    "Perturbation",
    "Scenario",
    "Step",
    "ValuesOrFactory",
    "Write",
    "explore",
    "state",
]
_REPORTED_WRITES = 30


@dataclass(frozen=True)
class Coverage:
    """How much was explored."""

    scenarios: int = 0
    checkpoints: int = 0
    runs: int = 0
    writes: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(
            self.scenarios + other.scenarios,
            self.checkpoints + other.checkpoints,
            self.runs + other.runs,
            self.writes + other.writes,
        )

    def __str__(self) -> str:
        return (
            f"{self.scenarios} scenarios, {self.checkpoints} checkpoints, "
            f"{self.runs} perturbed runs, {self.writes} writes checked"
        )


class ExplorerError(AssertionError):
    """A controller failed under a perturbation. The message has the scenario, the checkpoint and the writes since."""


def explore(
    scenario: Scenario, *, perturbations: Sequence[Perturbation] = tuple(Perturbation), every: int = 1
) -> Coverage:
    """
    Run a scenario with perturbations from every checkpoint, or from every nth; return how much was explored.

    Raises ExplorerError if an invariant is violated, if the outcome differs or is never
    reached, if a controller raises, or if the controllers under test write nothing.
    """
    if every < 1 or not perturbations:
        raise ValueError(
            f"nothing to explore: every {every} checkpoints, with {len(perturbations)} perturbations"
        )
    cluster = scenario.given()
    before = Run(scenario, cluster)
    _checked(
        scenario, before, "before the start", lambda: before.loop.until(cluster.now + scenario.settles_within)
    )
    before.under_test.stop()
    before.others.stop()
    cluster.journal.clear()
    checkpoints = [Checkpoint(0, None, cluster.copy(), "at the start")]
    first = Run(scenario, cluster, keep=checkpoints.append)
    _checked(scenario, first, "unperturbed", first.resume)
    if not any(checkpoint.under_test for checkpoint in checkpoints):
        # A controller without writes passes every check, which proves nothing.
        raise ExplorerError(
            _report(scenario, first, "unperturbed", "the controllers under test write nothing")
        )
    coverage = Coverage(scenarios=1, checkpoints=len(checkpoints))
    outcome = scenario.outcome(cluster)
    effects = scenario.effects(cluster) if scenario.effects is not None else None
    _checked(scenario, first, "unperturbed", lambda: _check_idle(first))
    for number in _selected(len(checkpoints), every):
        for kind, run in perturbed_runs(scenario, checkpoints, number, perturbations):
            where = f"{kind} {checkpoints[number].when}"
            _checked(scenario, run, where, run.resume)
            coverage += Coverage(runs=1, writes=run.writes)
            _check_equal(scenario, run, where, scenario.outcome(run.cluster), outcome, "outcome differs")
            if scenario.effects is not None and kind is Perturbation.CRASH:
                _check_equal(scenario, run, where, scenario.effects(run.cluster), effects, "effects differ")
            _checked(scenario, run, where, lambda run=run: _check_idle(run))  # type: ignore[misc]
    return coverage


def _selected(count: int, every: int) -> Sequence[int]:
    """Return the checkpoints to explore: the start, and every nth from the middle of the first n."""
    return [0, *range(min(1 + every // 2, count - 1), count, every)]


def _check_idle(run: Run) -> None:
    # Not `assert`: pytest rewrites assertions of plugin modules, and its text would replace the message.
    if remaining := run.remaining_work():
        listed = ", ".join(remaining[:5])
        raise AssertionError(f"a process that starts at the end still finds work: {listed}")


def _checked(scenario: Scenario, run: Run, where: str, action: Callable[[], object]) -> None:
    try:
        action()
    except (AssertionError, NotSettled) as violation:
        raise ExplorerError(_report(scenario, run, where, str(violation))) from violation
    except Exception as error:
        # A plan that raises on a stale view is what this explores, too.
        raise ExplorerError(_report(scenario, run, where, f"{type(error).__name__}: {error}")) from error


def _check_equal(scenario: Scenario, run: Run, where: str, found: Any, expected: Any, what: str) -> None:
    if found != expected:
        text = f"{what} from the unperturbed run: {_difference(found, expected)}"
        raise ExplorerError(_report(scenario, run, where, text))


def _difference(found: Any, expected: Any) -> str:
    """Return the differences, object by object if both are mappings of objects."""
    if not isinstance(found, Mapping) or not isinstance(expected, Mapping):
        return f"{found!r}, expected {expected!r}"
    lines: list[str] = []
    for key in {**expected, **found}:
        if key not in found:
            lines.append(f"{key} is missing")
        elif key not in expected:
            lines.append(f"{key} exists, but should not")
        else:
            lines += [f"{key}: {change}" for change in diff(expected[key], found[key])]
    return "".join(f"\n  {line}" for line in lines)


def _report(scenario: Scenario, run: Run, where: str, text: str) -> str:
    writes = "".join(f"\n  {line}" for line in run.log[-_REPORTED_WRITES:]) or " none"
    view = f"\nits view: {run.view}" if run.view else ""
    return f"{scenario.name}: {where}: {text}{view}\nits writes since then (at most the last {_REPORTED_WRITES}):{writes}"
