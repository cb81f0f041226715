"""Runs several simulated processes, and advances their clock from one due time to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

from lamina.core.model.workqueue_schedule import first
from lamina.errors import NotSettled
from lamina.simulation.cluster.apiserver import SimulatedCluster
from lamina.simulation.process.process import Process
from lamina.simulation.process.record import Choose

_MAX_STEPS = 100_000


class Loop:
    """
    Runs processes on a simulated cluster as time passes.

    All ready keys are reconciled before the clock advances, in at most `max_steps`
    steps at one moment. Processes alternate; with `ranked`, a process runs only
    while all before it are idle, and so receives what happens at one moment at
    once, as a slower process does.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        *processes: Process,
        choose: Choose = first,
        max_steps: int = _MAX_STEPS,
        ranked: bool = False,
    ) -> None:
        self.cluster, self.processes = cluster, list(processes)
        self._choose, self._max_steps, self._ranked = choose, max_steps, ranked
        self._planned: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()
        self.steps = 0

    def at(self, moment: datetime, act: Callable[[], None]) -> None:
        """Call a function at a moment, independently of the processes."""
        heapq.heappush(self._planned, (moment, next(self._numbers), act))

    def settle(self) -> None:
        """Run all processes until they are idle; raises NotSettled if they never are."""
        for _ in range(self._max_steps):
            steps = self._step_all()
            if not steps:
                return
            self.steps += steps
        waiting = [str(key.ref) for process in self.processes for key in process.schedule.ready]
        raise NotSettled(f"the controllers do not settle at {self.cluster.now}: {', '.join(waiting[:5])}")

    def _step_all(self) -> int:
        """Have the processes take a step, and return how many did."""
        if self._ranked:
            return int(any(process.step(self._choose) for process in self.processes))
        return sum(process.step(self._choose) for process in self.processes)

    def pass_time(self, span: timedelta) -> None:
        """Advance the clock; what is due on the way happens at its own moment."""
        self.until(self.cluster.now + span)

    def until(self, end: datetime) -> None:
        """Advance the clock to a moment."""
        self.settle()
        while (moment := self.next) is not None and moment <= end:
            self._set_time(moment)
            while self._planned and self._planned[0][0] <= self.cluster.now:
                heapq.heappop(self._planned)[2]()
            for process in self.processes:
                process.schedule.promote(self.cluster.now)
            self.settle()
        self._set_time(end)

    def _set_time(self, moment: datetime) -> None:
        """Set the clock of every cluster to a moment, or to the present one if that is later."""
        now = max(self.cluster.now, moment)
        for process in self.processes:
            for cluster in process.clusters.clusters:
                cluster.now = now
        self.cluster.now = now

    @property
    def next(self) -> datetime | None:
        """Return when something is due next."""
        moments = [process.due for process in self.processes]
        moments.append(self._planned[0][0] if self._planned else None)
        return min((moment for moment in moments if moment is not None), default=None)
