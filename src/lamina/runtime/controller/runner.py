"""Runs one controller with as many workers as it needs, and holds the watches of a source."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from lamina.core.model.controller import AnyController, Source, Watch, is_same_but_newer
from lamina.core.model.world import Change
from lamina.runtime.cache.watch_spec import (
    ChangeHandler,
    WatchSpec,
    specs_to_follow,
    watch_specs,
    watches_cluster,
)
from lamina.runtime.cluster.cache_view import CacheView
from lamina.runtime.cluster.cluster import Cluster
from lamina.runtime.controller.worker import Worker


class Runner:
    """
    The workers and watches of one controller.

    A worker task is started when a key is ready and no worker waits, up to a
    maximum. It begins after the workers of the runner that this one replaces have
    ended. The dynamic watches of that one go on, until its keys have been reconciled.
    """

    def __init__(
        self, worker: Worker[object], group: asyncio.TaskGroup, replaces: Runner | None = None
    ) -> None:
        self.worker = worker
        self.follows: dict[tuple[str, WatchSpec], None] = (
            dict(replaces.follows) if replaces is not None else {}
        )
        """The dynamic watches, each with its cluster."""
        self.enqueued: set[str] = set()
        """The clusters whose existing objects have been enqueued."""
        self.tasks: list[asyncio.Task[None]] = []
        self._group = group
        self._after: Sequence[asyncio.Task[None]] = replaces.tasks if replaces is not None else ()
        self._watches = [(watch, worker.handler(watch)) for watch in worker.controller.watches]
        self._max_workers = 0
        self.scale()
        worker.queue.needs_worker = self._start_worker
        for ref in worker.dynamic_watches.keys:
            worker.queue.add(ref)

    @property
    def controller(self) -> AnyController:
        return self.worker.controller

    @property
    def cache(self) -> CacheView:
        return self.worker.cache

    def handle_dynamic(self, change: Change) -> None:
        self.worker.handle_dynamic(change)

    def scale(self, clusters: int = 0) -> None:
        """Allow workers for this many other clusters, if the controller watches every cluster."""
        clusters_served = 1 + clusters if self.cache.every_cluster else 1
        self._max_workers = max(self._max_workers, clusters_served * max(1, self.controller.at_once))
        for _ in range(self.worker.queue.depth):
            self._start_worker()

    def _start_worker(self) -> None:
        if len(self.tasks) >= self._max_workers:
            return
        work = _run_after(self.worker, self._after)
        try:
            self.tasks.append(self._group.create_task(work))
        except RuntimeError:
            # The task group is shutting down.
            work.close()

    def watches_on(self, cluster: str) -> list[tuple[Watch, ChangeHandler]]:
        """Return the watches on a cluster with their handlers."""
        return [(watch, handler) for watch, handler in self._watches if watches_cluster(watch, cluster)]

    def enqueue_existing(self, cluster: Cluster) -> None:
        """Enqueue the keys of all objects that the informers of a cluster hold already."""
        name = cluster.name
        self.enqueued.add(name)
        for watch, handler in self.watches_on(name):
            for what in watch_specs(cluster.kinds, watch):
                indexer = cluster.informers.informer(what).indexer
                if indexer.count:
                    for obj in indexer.every():
                        handler(Change(what.kind, None, obj, name))

    def drop_unused_follows(self) -> None:
        """Drop the dynamic watches that no key queries any more."""
        followed = {
            (follow.cluster, what) for follow in self.worker.follows for what in specs_to_follow(follow)
        }
        self.follows = {what: None for what in self.follows if what in followed}

    def stop(self) -> None:
        """Drop all references, once every task has ended."""
        self.worker.queue.needs_worker = lambda: None
        # A delayed key would make the queue active for ever.
        self.worker.queue.shut_down()
        self.tasks, self._watches, self._after = [], [], ()

    async def remove(self) -> None:
        """Perform the controller's plan on removal, once its workers have ended."""
        if self.tasks:
            await asyncio.wait(self.tasks)
        await self.worker.remove()


class SourceRunner:
    """The watches of one source; `on_change` is called with each change that its controllers may depend on."""

    follows: Sequence[tuple[str, WatchSpec]] = ()

    def __init__(self, source: Source, cache: CacheView, on_change: ChangeHandler) -> None:
        self.source, self.cache, self._on_change = source, cache, on_change

    def handle_dynamic(self, change: Change) -> None:
        if not is_same_but_newer(change):
            self._on_change(change)

    def watches_on(self, cluster: str) -> list[tuple[Watch, ChangeHandler]]:
        return [
            (watch, self.handle_dynamic) for watch in self.source.watches if watches_cluster(watch, cluster)
        ]


async def _run_after(worker: Worker[object], after: Iterable[asyncio.Task[None]]) -> None:
    """Run a worker once the tasks it replaces have ended."""
    pending = [task for task in after if not task.done()]
    if pending:
        await asyncio.wait(pending)
    await worker.run()
