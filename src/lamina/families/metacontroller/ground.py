"""
What a roll stands on from one pass to the next.

While nobody writes another record, each child stays with the revision that has
it; and of what was found out about the children, only what is about those that
have changed since has to be found out again. All of it is about the very objects
it was worked out of, which nobody changes in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import compress, count
from operator import is_, is_not
from typing import TypeAlias

from lamina.core.claims import Claims
from lamina.core.rollout import Target
from lamina.families.metacontroller.desired import Desired, Key
from lamina.families.metacontroller.revisions import Kept
from lamina.families.metacontroller.roster import Name, Roster, present
from lamina.families.metacontroller.view import View
from lamina.objects.types import Obj

Row: TypeAlias = tuple[int, Name, str, Desired]
"""A child that rolls: its place, what revisions call it and what people do, and how it is wanted."""


class Ground:
    """Who has which child, as the records say, and how the children stood when somebody looked the last time."""

    __slots__ = ("_asked", "_found", "_goal", "_on", "_since", "_targets", "claims", "elsewhere")

    def __init__(self, goal: Roster, asked: tuple[Kept, ...], claims: Claims[Name]) -> None:
        self._goal, self._asked, self.claims = goal, asked, claims
        latest = asked[0].name
        self.elsewhere = tuple(row for row in goal.rolling if claims.held.get(row[1]) != latest)
        """Those that roll and are not on the latest."""
        self._on: dict[str, tuple[Name, ...]] = {}
        self._found: Sequence[Obj | None] = ()
        self._since: datetime | None = None
        self._targets: list[Target] = []

    def holds(self, goal: Roster, asked: tuple[Kept, ...]) -> bool:
        """Say whether this is what the records say still, and these are the children that are wanted still."""
        return goal is self._goal and len(asked) == len(self._asked) and all(map(is_, asked, self._asked))

    def on(self, revision: str) -> tuple[Name, ...]:
        """Return the children of a revision."""
        if revision not in self._on:
            self._on[revision] = self.claims.on(revision)
        return self._on[revision]

    def targets(
        self, found: Sequence[Obj | None], since: datetime | None, judge: Callable[[Row], Target]
    ) -> tuple[Target, ...]:
        """Return those that roll as targets, judged anew where another object is found than the last time."""
        rolling = self._goal.rolling
        if len(self._targets) != len(rolling) or since != self._since:
            self._targets = list(map(judge, rolling))
        else:
            changed = set(differing(found, self._found))
            for place, row in enumerate(rolling) if changed else ():
                if row[0] in changed:
                    self._targets[place] = judge(row)
        self._found, self._since = found, since
        return tuple(self._targets)


class Rest:
    """Which children there was something to say of, the last time: the others were plainly as they are wanted."""

    __slots__ = ("_found", "_restless", "_wanted")

    def __init__(self) -> None:
        self._wanted: Sequence[Desired] = ()
        self._found: Sequence[Obj | None] = ()
        self._restless: set[int] = set()

    def restless(
        self,
        wanted: Sequence[Desired],
        found: Sequence[Obj | None],
        is_at_rest: Callable[[Desired, Obj], bool],
    ) -> list[int]:
        """Return the places of those there is something to say of now."""
        places: set[int] | range = range(len(wanted))
        if len(wanted) == len(self._wanted):
            places = {*self._restless, *differing(wanted, self._wanted), *differing(found, self._found)}
        self._restless = {
            place
            for place in places
            if (there := found[place]) is None or not is_at_rest(wanted[place], there)
        }
        self._wanted, self._found = wanted, found
        return sorted(self._restless)


def unsettled(
    view: View, goal: Roster, wanted: Sequence[Desired], is_at_rest: Callable[[Desired, Obj], bool]
) -> Iterator[tuple[Key, Desired]]:
    """Yield the children of which there is something to say, each as it is wanted: in most passes those are few."""
    known = view.recall.rest
    if known is None:
        known = view.recall.rest = Rest()
    for place in known.restless(wanted, present(view, goal), is_at_rest):
        yield goal.keys[place], wanted[place]


def differing(now: Sequence[object], before: Sequence[object]) -> Iterator[int]:
    """Yield the places in which two sequences of one length do not hold the very same."""
    return compress(count(), map(is_not, now, before))
