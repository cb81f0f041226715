"""Prints the result of a simulation, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta

import click

from lamina.cli.output.print_plan import action_text
from lamina.objects.types import Made, Ref
from lamina.simulation.scenario import FinalState, Simulation, TimelineEntry

_NAMED = 3
"""Up to this many objects are listed by name; of more, the first and a count."""
_SHORT = timedelta(seconds=1)
_UNHEALTHY, _NOT_SIMULATED = 2, 3


def is_healthy(states: Sequence[FinalState]) -> bool:
    """Say whether the change leaves nothing unhealthy that is not unhealthy without it."""
    return all(one.healthy or one.unhealthy_without_change for one in states)


def exit_code(states: Sequence[FinalState]) -> int:
    """Return 0 if the change leaves nothing unhealthy, 3 if that is not known because of hooks, 2 otherwise."""
    bad = [one for one in states if not (one.healthy or one.unhealthy_without_change)]
    if not bad:
        return 0
    return _UNHEALTHY if any(one.is_simulated for one in bad) else _NOT_SIMULATED


def print_result(simulation: Simulation, states: Sequence[FinalState], output: str, everything: bool) -> None:
    """Print the steps of a simulation and the state of its objects at the end."""
    steps = [one for one in simulation.timeline if one.ours or everything or simulation.is_changed(one.ref)]
    if output == "json":
        result = {
            "healthy": is_healthy(states),
            "seconds": (simulation.cluster.now - simulation.now).total_seconds(),
            "timeline": [_step_json(one) for one in steps],
            "results": [_result_json(one) for one in states],
        }
        click.echo(json.dumps(result, indent=2))
    else:
        for line in _all_steps(steps) if everything else _summary(steps):
            click.echo(line)
        if steps:
            click.echo("")
        for line in _result_lines(states):
            click.echo(line)
        if not states:
            click.echo("no owners found, and no changes given")


def _sentence(one: TimelineEntry) -> str:
    return f"{one.because}; {one.failure}" if one.failure and one.failure != one.because else one.because


def _all_steps(steps: Sequence[TimelineEntry]) -> Iterator[str]:
    """Yield every step with its writes."""
    for one in steps:
        name = str(one.ref) if one.ref.name else f"{one.ref.kind.lower()}s"
        yield f"{_clock(one.after)}  {name}: {_sentence(one) or 'no reason given'}"
        for action in one.done:
            yield f"{'':10}  {action_text(action)}"


def _summary(steps: Sequence[TimelineEntry]) -> Iterator[str]:
    """
    Yield the steps whose sentence is new for their object, and one line for objects of a kind that share it.

    A wait of less than a second is left out.
    """
    kept: dict[tuple[str, Ref], list[TimelineEntry]] = {}
    for one in steps:
        earlier = kept.setdefault((one.by, one.ref), [])
        if not _sentence(one) or (earlier and _sentence(earlier[-1]) == _sentence(one)):
            continue
        if earlier and _is_waiting(earlier[-1]) and one.after - earlier[-1].after < _SHORT:
            earlier.pop()
        earlier.append(one)
    printed = {id(one) for found in kept.values() for one in found}
    lines: dict[tuple[str, str, str], dict[Ref, None]] = {}
    for one in steps:
        if id(one) in printed:
            lines.setdefault((_clock(one.after), one.ref.kind, _sentence(one)), {})[one.ref] = None
    for (clock, _, sentence), refs in lines.items():
        yield f"{clock}  {_names(tuple(refs))}: {sentence}"


def _is_waiting(one: TimelineEntry) -> bool:
    return one.because.startswith("waiting for") and not one.failure


def _names(refs: Sequence[Ref]) -> str:
    """Return the names of objects of a kind; of many, the first and a count."""
    if len(refs) <= _NAMED:
        return ", ".join(map(str, refs))
    return f"{refs[0]} and {len(refs) - 1} more {refs[0].kind.lower()}s"


def _result_lines(states: Sequence[FinalState]) -> Iterator[str]:
    """Yield a line for each owner, and one for other objects of a kind in the same state."""
    alike: dict[tuple[str, bool, str, str], list[FinalState]] = {}
    for one in states:
        if one.owner_status is not None:
            yield _line(one)
        else:
            alike.setdefault((one.ref.kind, one.healthy, one.state, one.because), []).append(one)
    for (_, _, state, because), found in alike.items():
        if len(found) <= _NAMED:
            yield from map(_line, found)
        else:
            names = _names([one.ref for one in found])
            yield f"{_verdict(found[0])}  {names} are {state}{f': {because}' if because else ''}"


def _verdict(state: FinalState) -> str:
    if state.healthy:
        return "ok"
    verdict = "FAILED" if state.is_simulated else "NOT SIMULATED"
    return f"{verdict} (also without the change)" if state.unhealthy_without_change else verdict


def _line(state: FinalState) -> str:
    owner_status = state.owner_status
    updated = (
        f", {owner_status.updated} of {len(owner_status.targets)} on revision {owner_status.goal}"
        if owner_status and owner_status.goal
        else ""
    )
    because = f": {state.because}" if state.because else ""
    if not state.is_simulated:
        return f"{_verdict(state)}  {state.ref}{because}"
    return f"{_verdict(state)}  {state.ref} is {state.state}{updated}{because}"


def _clock(after: timedelta) -> str:
    seconds = after.total_seconds()
    return f"{int(seconds // 3600)}:{int(seconds // 60 % 60):02}:{seconds % 60:04.1f}"


def _step_json(one: TimelineEntry) -> Made:
    return {
        "after": one.after.total_seconds(),
        "by": one.by,
        "object": str(one.ref),
        "because": one.because,
        "done": [action_text(action) for action in one.done],
        "failure": one.failure or None,
    }


def _result_json(one: FinalState) -> Made:
    owner_status = one.owner_status
    return {
        "object": str(one.ref),
        "healthy": one.healthy,
        "simulated": one.is_simulated,
        "anyway": one.unhealthy_without_change,
        "state": one.state,
        "because": one.because,
        "goal": owner_status.goal if owner_status else None,
        "targets": {name: one.revision for name, one in owner_status.targets.items()} if owner_status else {},
    }
