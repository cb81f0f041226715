"""What goes wrong from a moment of a story on: a death, a stale view, unseen states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from lamina.objects import meta
from lamina.objects.types import GroupKind
from lamina.paper import Desk, Paper
from lamina.paper.sight import News
from lamina.testing.story import Mishap, Moment, Scenario, Telling

_BEHIND = (1, 6)
"""How many moments a view is behind: a little, and far."""


def disturbed(
    scenario: Scenario, moments: Sequence[Moment], number: int, mishaps: Sequence[Mishap]
) -> Iterator[tuple[Mishap, Telling]]:
    """Yield the tellings that begin at a moment, each with its mishap."""
    moment = moments[number]
    if Mishap.DEATH in mishaps and number:
        yield (
            Mishap.DEATH,
            Telling(scenario, moment.paper.as_it_is(), moment.place, moment.until, mishap=Mishap.DEATH),
        )
    if Mishap.STALE in mishaps:
        for past in _pasts(moments, number):
            yield Mishap.STALE, _stale(scenario, moment, moments[past])
    if Mishap.UNSEEN in mishaps:
        heard: list[GroupKind] = []
        yield Mishap.UNSEEN, _unseen(scenario, moment, number, heard)
        if len(heard) > 1:
            yield Mishap.UNSEEN, _unseen(scenario, moment, number, [], backwards=True)


def _pasts(moments: Sequence[Moment], number: int) -> Sequence[int]:
    """
    Return the moments that somebody may still see: a little behind, far behind, and after the last two steps.

    What came right after a step is what there was something to do about, and may
    be the worst to do now.
    """
    steps = [place for place in range(number) if moments[place].is_step]
    behind = [number - lag for lag in _BEHIND]
    return sorted({place for place in (*behind, *steps[-2:]) if place >= 0})


def _stale(scenario: Scenario, moment: Moment, past: Moment) -> Telling:
    """Return a telling by a process that starts with the past before its eyes."""
    paper = moment.paper.as_it_is()
    telling = Telling(
        scenario,
        paper,
        moment.place,
        moment.until,
        seen=past.paper.listed,
        mishap=Mishap.STALE,
        saw=f"the cluster as it was {past.when}, for {scenario.lasts.total_seconds():g} s",
    )
    sight = telling.desk.sight
    sight.holds = True
    for news in _since(past.paper, paper):
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


def _unseen(
    scenario: Scenario, moment: Moment, turn: int, heard: list[GroupKind], *, backwards: bool = False
) -> Telling:
    """
    Return a telling by a process that hears nothing for a while, and then the last words, kind by kind.

    What it heard of then, and in which order, is in `heard` once it was told.
    """
    paper = moment.paper.as_it_is()
    telling = Telling(scenario, paper, moment.place, moment.until, mishap=Mishap.UNSEEN, saw="nothing yet")
    desk = telling.desk
    desk.sight.holds = True

    def let_go() -> None:
        kinds = heard[:] = _turned(sorted(desk.sight.held), turn, backwards=backwards)
        last = ", then ".join(kind.kind for kind in kinds)
        telling.saw = f"nothing for {scenario.lasts.total_seconds():g} s, then the last word on each {last}"
        for place, kind in enumerate(kinds):
            # A moment later each, so that everybody acts on what has come so far.
            when = paper.now + timedelta(milliseconds=10 * place)
            telling.play.at(when, lambda kind=kind: desk.sight.let_go(kind, last_words=True))  # type: ignore[misc]
        telling.play.at(paper.now + timedelta(milliseconds=10 * len(kinds)), lambda: _see_again(desk))

    telling.play.at(paper.now + scenario.lasts, let_go)
    return telling


def _turned(kinds: Sequence[GroupKind], turn: int, *, backwards: bool) -> Sequence[GroupKind]:
    """Return the kinds from another one on each turn, forwards or backwards."""
    start = turn % len(kinds) if kinds else 0
    turned = [*kinds[start:], *kinds[:start]]
    return turned[::-1] if backwards else turned
