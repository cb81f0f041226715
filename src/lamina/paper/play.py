"""Several processes on clusters on paper, and a clock that is wound from one thing that is due to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

from lamina.errors import Restless
from lamina.paper.cluster import Paper
from lamina.paper.desk import Desk
from lamina.paper.passes import Choose
from lamina.paper.turns import first

_MOST = 100_000


class Play:
    """
    What happens on a cluster on paper when time passes.

    Whoever has something to do does it before the clock moves on. `most` is how
    many steps may be taken at one moment. Desks take turns; with `ranked`, one
    waits until all before it have nothing left to do, and so sees what happens
    at one moment at once, as somebody does who takes longer than the others.
    """

    def __init__(
        self,
        paper: Paper,
        *desks: Desk,
        choose: Choose = first,
        most: int = _MOST,
        ranked: bool = False,
    ) -> None:
        self.paper, self.desks = paper, list(desks)
        self._choose, self._most, self._ranked = choose, most, ranked
        self._planned: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()
        self.steps = 0

    def at(self, moment: datetime, act: Callable[[], None]) -> None:
        """Have something happen at a moment that nobody at a desk decides on."""
        heapq.heappush(self._planned, (moment, next(self._numbers), act))

    def settle(self) -> None:
        """Have everybody do what there is to do now; raises Restless if that never ends."""
        for _ in range(self._most):
            steps = self._turn()
            if not steps:
                return
            self.steps += steps
        waiting = [str(key.ref) for desk in self.desks for key in desk.turns.waiting]
        raise Restless(f"nobody comes to rest at {self.paper.now}: {', '.join(waiting[:5])}")

    def _turn(self) -> int:
        """Have everybody take a step whose turn it is, and return how many did."""
        if self._ranked:
            return int(any(desk.step(self._choose) for desk in self.desks))
        return sum(desk.step(self._choose) for desk in self.desks)

    def pass_time(self, span: timedelta) -> None:
        """Let time pass; whatever falls due on the way happens at its own moment."""
        self.until(self.paper.now + span)

    def until(self, end: datetime) -> None:
        """Let time pass until a moment."""
        self.settle()
        while (moment := self.next) is not None and moment <= end:
            self._wind(moment)
            while self._planned and self._planned[0][0] <= self.paper.now:
                heapq.heappop(self._planned)[2]()
            for desk in self.desks:
                desk.turns.ring(self.paper.now)
            self.settle()
        self._wind(end)

    def _wind(self, moment: datetime) -> None:
        """Have it be that moment, or the present one if that is later, on every cluster that somebody looks at."""
        now = max(self.paper.now, moment)
        for desk in self.desks:
            for paper in desk.horizon.papers:
                paper.now = now
        self.paper.now = now

    @property
    def next(self) -> datetime | None:
        """Return when something happens next, if nobody does anything before."""
        moments = [desk.due for desk in self.desks]
        moments.append(self._planned[0][0] if self._planned else None)
        return min((moment for moment in moments if moment is not None), default=None)
