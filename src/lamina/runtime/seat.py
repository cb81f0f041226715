"""Who looks at clusters: a controller at work, and a source that says which controllers there should be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextvars import copy_context

from lamina.core.controller import AnyController, Source, Watch
from lamina.core.world import Change
from lamina.runtime.lookout import Lookout
from lamina.runtime.sight import Sight
from lamina.runtime.subscriptions import Hear, Subscription, is_about, subscriptions, ways
from lamina.runtime.worker import Worker


class Seat:
    """
    One controller at work.

    Its hands come as there is work for them, and begin once those whose place it
    takes have finished what they had begun.
    """

    def __init__(
        self, worker: Worker[object], group: asyncio.TaskGroup, after: Sequence[asyncio.Task[None]] = ()
    ) -> None:
        self.worker = worker
        self.follows: dict[tuple[str, Subscription], None] = {}
        """What is followed on which cluster because some key asked for it."""
        self.told: set[str] = set()
        """The clusters of which it has been told what was there before it looked."""
        self.tasks: list[asyncio.Task[None]] = []
        self._group, self._after = group, after
        self._context = copy_context()
        self._watches = [(watch, worker.listener(watch)) for watch in worker.controller.watches]
        self._hands = 0
        self.hire()
        worker.queue.short_handed = self._lend_a_hand

    @property
    def controller(self) -> AnyController:
        return self.worker.controller

    @property
    def sight(self) -> Sight:
        return self.worker.sight

    def overhear(self, change: Change) -> None:
        self.worker.overhear(change)

    def hire(self, clusters: int = 0) -> None:
        """Allow for hands enough for as many other clusters, if it looks at whatever clusters there are."""
        several = 1 + clusters if self.sight.is_wide else 1
        self._hands = max(self._hands, several * max(1, self.controller.at_once))
        for _ in range(self.worker.queue.depth):
            self._lend_a_hand()

    def _lend_a_hand(self) -> None:
        if len(self.tasks) >= self._hands:
            return
        work = _work(self.worker, self._after)
        # Whoever brings work may be another controller, in the middle of a write: what holds for that is not for us.
        try:
            self.tasks.append(self._group.create_task(work, context=self._context.copy()))
        except RuntimeError:
            # Everybody is being sent home.
            work.close()

    def on(self, cluster: str) -> list[tuple[Watch, Hear]]:
        """Return what it watches on a cluster, and whom to tell of it."""
        return [(watch, hear) for watch, hear in self._watches if is_about(watch, cluster)]

    def introduce(self, lookout: Lookout) -> None:
        """Tell it of everything that is known already of a cluster."""
        cluster = lookout.cluster
        self.told.add(cluster)
        for watch, hear in self.on(cluster):
            for what in subscriptions(lookout.kinds, watch):
                shelf = lookout.informers.following(what).shelf
                if shelf.count:
                    for obj in shelf.every():
                        hear(Change(what.kind, None, obj, cluster))

    def forget_unasked(self) -> None:
        """Follow no more what no key asks for any more."""
        asked = {(follow.cluster, what) for follow in self.worker.follows for what in ways(follow)}
        self.follows = {what: None for what in self.follows if what in asked}

    def end(self) -> None:
        """Know nobody any more, once all that was begun has ended."""
        self.worker.queue.short_handed = lambda: None
        # What it was to look at later would have it be at work for ever.
        self.worker.queue.close()
        self.tasks, self._watches, self._after = [], [], ()

    async def take_leave(self) -> None:
        """Say that it is not wanted any more, once it has finished what it had begun."""
        if self.tasks:
            await asyncio.wait(self.tasks)
        await self.worker.take_leave()


class Room:
    """Where one source looks; `stir` is told that something changed there."""

    follows: Sequence[tuple[str, Subscription]] = ()

    def __init__(self, source: Source, sight: Sight, stir: Hear) -> None:
        self.source, self.sight, self.overhear = source, sight, stir

    def on(self, cluster: str) -> list[tuple[Watch, Hear]]:
        return [(watch, self.overhear) for watch in self.source.watches if is_about(watch, cluster)]


async def _work(worker: Worker[object], after: Iterable[asyncio.Task[None]]) -> None:
    """Work once those whose place this worker takes have finished what they had begun."""
    pending = [task for task in after if not task.done()]
    if pending:
        await asyncio.wait(pending)
    await worker.run()
