"""What a simulation comes to, in words and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta

import click

from lamina.cli.plans import words
from lamina.objects.types import Made, Ref
from lamina.simulation import Ending, Simulation, Told

_FEW = 3
"""How many objects are named each; of more, the first."""
_AT_ONCE = timedelta(seconds=1)


def is_well(endings: Sequence[Ending]) -> bool:
    """Say whether all ended well that might have; what ends badly anyway is nobody's fault here."""
    return all(one.well or one.anyway for one in endings)


def say(done: Simulation, endings: Sequence[Ending], output: str, everything: bool) -> None:
    """Print the story, and what it ended in."""
    told = [one for one in done.story if one.ours or everything or done.is_changed(one.ref)]
    if output == "json":
        shown = {
            "well": is_well(endings),
            "seconds": (done.paper.now - done.now).total_seconds(),
            "story": [_told(one) for one in told],
            "endings": [_ended(one) for one in endings],
        }
        click.echo(json.dumps(shown, indent=2))
    else:
        for line in _in_full(told) if everything else _in_short(told):
            click.echo(line)
        if told:
            click.echo("")
        for line in _endings(endings):
            click.echo(line)
        if not endings:
            click.echo("nothing is rolled out here, and nothing was changed")


def _sentence(one: Told) -> str:
    return f"{one.because}; {one.failure}" if one.failure and one.failure != one.because else one.because


def _in_full(story: Sequence[Told]) -> Iterator[str]:
    """Yield everything that happened, and what was done."""
    for one in story:
        who = str(one.ref) if one.ref.name else f"{one.ref.kind.lower()}s"
        yield f"{_clock(one.after)}  {who}: {_sentence(one) or 'as it should be'}"
        for action in one.done:
            yield f"{'':10}  {words(action)}"


def _in_short(story: Sequence[Told]) -> Iterator[str]:
    """
    Yield what is news: a sentence once for each object, and once for all of a kind that have it at one moment.

    That somebody waits is no news where the waiting is over at once.
    """
    said: dict[tuple[str, Ref], list[Told]] = {}
    for one in story:
        before = said.setdefault((one.by, one.ref), [])
        if not _sentence(one) or (before and _sentence(before[-1]) == _sentence(one)):
            continue
        if before and _waits(before[-1]) and one.after - before[-1].after < _AT_ONCE:
            before.pop()
        before.append(one)
    kept = {id(one) for told in said.values() for one in told}
    lines: dict[tuple[str, str, str], dict[Ref, None]] = {}
    for one in story:
        if id(one) in kept:
            lines.setdefault((_clock(one.after), one.ref.kind, _sentence(one)), {})[one.ref] = None
    for (clock, _, sentence), refs in lines.items():
        yield f"{clock}  {_named(tuple(refs))}: {sentence}"


def _waits(one: Told) -> bool:
    return one.because.startswith("waiting for") and not one.failure


def _named(refs: Sequence[Ref]) -> str:
    """Return what people call some objects of a kind: the first few of many."""
    if len(refs) <= _FEW:
        return ", ".join(map(str, refs))
    return f"{refs[0]} and {len(refs) - 1} more {refs[0].kind.lower()}s"


def _endings(endings: Sequence[Ending]) -> Iterator[str]:
    """Yield how everybody stands; those of a kind that merely are there, in one line."""
    alike: dict[tuple[str, bool, str, str], list[Ending]] = {}
    for one in endings:
        if one.account is not None:
            yield _line(one)
        else:
            alike.setdefault((one.ref.kind, one.well, one.state, one.because), []).append(one)
    for (_, _, state, because), found in alike.items():
        if len(found) <= _FEW:
            yield from map(_line, found)
        else:
            named = _named([one.ref for one in found])
            yield f"{_how(found[0])}  {named} are {state}{f': {because}' if because else ''}"


def _how(ending: Ending) -> str:
    if ending.well:
        return "well"
    return "NOT WELL anyway" if ending.anyway else "NOT WELL"


def _line(ending: Ending) -> str:
    account = ending.account
    moved = (
        f", {account.arrived} of {len(account.targets)} on revision {account.goal}"
        if account and account.goal
        else ""
    )
    because = f": {ending.because}" if ending.because else ""
    return f"{_how(ending)}  {ending.ref} is {ending.state}{moved}{because}"


def _clock(after: timedelta) -> str:
    seconds = after.total_seconds()
    return f"{int(seconds // 3600)}:{int(seconds // 60 % 60):02}:{seconds % 60:04.1f}"


def _told(one: Told) -> Made:
    return {
        "after": one.after.total_seconds(),
        "by": one.by,
        "object": str(one.ref),
        "because": one.because,
        "done": [words(action) for action in one.done],
        "failure": one.failure or None,
    }


def _ended(one: Ending) -> Made:
    account = one.account
    return {
        "object": str(one.ref),
        "well": one.well,
        "anyway": one.anyway,
        "state": one.state,
        "because": one.because,
        "goal": account.goal if account else None,
        "targets": dict(account.targets) if account else {},
    }
