"""
Runs controllers and their informers.

Both follow from the state of the clusters: the wanted informers from the
controllers and the served kinds, the wanted controllers from what their sources
watch. Whenever either may have changed, the wanted set is computed again and
compared with what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeAlias

from lamina.client.client import Client
from lamina.clock import Clock
from lamina.core.model.controller import AnyController, Source
from lamina.core.model.queries import Follow
from lamina.core.model.world import Change
from lamina.errors import CacheNotSynced
from lamina.logs import Logger
from lamina.logs import log as default_log
from lamina.objects.types import Ref
from lamina.ratelimit import TokenBuckets
from lamina.runtime.cache.discovery import DISCOVERY_PERIOD
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.published_schemas import PublishedSchemas
from lamina.runtime.cache.watch_spec import check_watches
from lamina.runtime.cluster.cluster import Cluster
from lamina.runtime.cluster.clusters import Clusters
from lamina.runtime.controller.event_broadcaster import EventBroadcaster
from lamina.runtime.controller.executor import Executor
from lamina.runtime.controller.live_queries import Caller, LiveQueries
from lamina.runtime.controller.runner import Runner, SourceRunner
from lamina.runtime.controller.worker import Leadership, Worker
from lamina.runtime.controller.workqueue import Workqueue
from lamina.runtime.metrics.recorder import Recorder

LeadOf: TypeAlias = Callable[[AnyController | Source], Leadership | None]


class Manager:
    """
    Runs controllers against a primary cluster, and against others.

    `lead` is the leadership that writes depend on; where it is not the same for all,
    `lead_of` returns that of a controller, or of the controllers of a source. `others` are the other clusters by the names that controllers use for them, or
    by any name where a controller watches EVERYWHERE. They may be bound and
    unbound at any time.
    """

    def __init__(
        self,
        client: Client,
        controllers: Sequence[AnyController],
        clock: Clock,
        log: Logger | None = None,
        sources: Sequence[Source] = (),
        caller: Caller | None = None,
        lead: Leadership | None = None,
        meters: Callable[[str], Recorder] = lambda name: Recorder(),
        *,
        lead_of: LeadOf | None = None,
        events: TokenBuckets | None = None,
        discovery_period: float = DISCOVERY_PERIOD,
        others: Mapping[str, Client] | None = None,
    ) -> None:
        self._meters, self._events = meters, events
        self._client, self._fixed, self._clock, self._sources = client, controllers, clock, sources
        self._caller, self._lead_of = caller, lead_of or (lambda part: lead)
        self._log: Logger = log if log is not None else default_log
        self._ready = asyncio.Event()
        self._failure: BaseException | None = None
        self._runners: dict[str, Runner] = {}
        self._active: set[Workqueue[Ref]] = set()
        self._stopping: list[asyncio.Task[None]] = []
        self._shutting_down = False
        self._sources_changed = asyncio.Event()
        self._broadcaster = EventBroadcaster(self._is_busy, self._log)
        self._schemas = PublishedSchemas()
        self._clusters = Clusters(client, others, self._log, discovery_period)
        self._group: asyncio.TaskGroup | None = None
        self._source_runners: list[SourceRunner] = []

    async def ready(self) -> None:
        """Wait until the caches of every controller have synced; raises the error that prevented it."""
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def is_idle(self) -> bool:
        """Say whether no key is ready or in progress and every event has been sent."""
        return (
            self._ready.is_set()
            and not self._sources_changed.is_set()
            and not self._is_busy()
            and self._broadcaster.is_idle
        )

    def _is_busy(self) -> bool:
        # Called often, for every cluster, while a test advances the clock: it must not visit every queue.
        return bool(self._active)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the controllers that run."""
        return tuple(self._runners)

    @property
    def in_progress(self) -> int:
        """Return how many reconciles run now."""
        return sum(len(runner.worker.queue.busy_since) for runner in self._runners.values())

    def due(self, ref: Ref) -> datetime | None:
        """Return when a controller reconciles an object next, if no event comes before."""
        moments = [runner.worker.queue.due(ref) for runner in self._runners.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def resync(self) -> None:
        """Enqueue every object for every controller: this replica may have become its leader."""
        if self._clusters.is_running:
            for runner in self._runners.values():
                runner.enqueued.clear()
            self._update()

    def bind(self, cluster: str, client: Client) -> None:
        """Add another cluster; it replaces an earlier one of that name."""
        self.unbind(cluster)
        self._clusters.bind(cluster, client)
        self._on_clusters_changed()

    def unbind(self, cluster: str) -> None:
        """Remove a cluster. Its objects stay as they are."""
        self._clusters.unbind(cluster)
        for runner in self._runners.values():
            runner.enqueued.discard(cluster)
            runner.worker.forget(cluster)
        self._on_clusters_changed()

    @property
    def has_other_clusters(self) -> bool:
        """Say whether there are clusters beside the primary one."""
        return bool(self._clusters.others)

    async def finish(self, timeout: float) -> None:
        """Shut down the workqueues, and wait a while for the reconciles in progress."""
        self._shutting_down = True
        for runner in self._runners.values():
            runner.worker.queue.shut_down()
        tasks = [*self._stopping, *(task for runner in self._runners.values() for task in runner.tasks)]
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                if tasks:
                    await asyncio.wait(tasks)
                await self._broadcaster.flush()

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            await self._run()
        except asyncio.CancelledError as cancelled:
            if not self._ready.is_set():
                self._failure = cancelled
            # Its traceback would keep every frame and what they refer to.
            raise cancelled.with_traceback(None) from None
        except BaseException as failure:
            self._failure = failure
            raise
        finally:
            self._ready.set()
            self._clear()

    def _clear(self) -> None:
        """Drop all references: they form cycles, which would stay until the garbage collector runs."""
        self._group = None
        self._clusters.clear()
        for runner in self._runners.values():
            runner.stop()
        self._runners, self._source_runners, self._stopping = {}, [], []
        self._active.clear()
        self._broadcaster.is_busy = lambda: False

    async def _run(self) -> None:
        await self._clusters.discover()
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._clusters.start(group, on_discovery=self._on_discovery, on_synced=self._on_synced)
            self._source_runners = [
                SourceRunner(source, self._clusters.cache(source.watches), self._on_source_change)
                for source in self._sources
            ]
            self._update()
            group.create_task(self._broadcaster.run())
            try:
                await self._clusters.wait_primary_synced()
                group.create_task(self._set_ready())
                # Other clusters may be unresponsive: controllers that need none of them do not wait.
                self._on_source_change()
                while True:
                    await self._sources_changed.wait()
                    # Changes that come together are handled together.
                    await asyncio.sleep(0)
                    self._sources_changed.clear()
                    self._update()
            finally:
                self._clusters.stop()

    async def _set_ready(self) -> None:
        await self._clusters.wait_synced()
        if self._source_runners:
            # The sources have synced; their controllers may watch more.
            self._update()
            await self._clusters.wait_synced()
        self._ready.set()

    # ── informers ──

    def _on_discovery(self, cluster: Cluster) -> None:
        """Update the informers after a cluster's served kinds changed."""
        for runner in self._runners.values():
            if runner.controller.resync_on_discovery:
                runner.enqueued.discard(cluster.name)
        if cluster.name:
            self._update_watches(cluster)
            self._on_source_change()
        else:
            self._update()

    def _on_synced(self, cluster: Cluster) -> None:
        """Enqueue what depends on another cluster, now that its caches have synced."""
        late = self._ready.is_set()
        missed = [
            runner
            for runner in self._runners.values()
            if runner.cache.includes_cluster(cluster.name) and (late or runner.cache.every_cluster)
        ]
        for runner in missed:
            # Earlier reconciles ran without this cluster, or failed.
            runner.enqueued -= {"", cluster.name}
        if missed or self._source_runners:
            self._update_watches(cluster)
            self._on_source_change()

    def _on_clusters_changed(self) -> None:
        """Update workers and informers after a cluster was bound or unbound."""
        if not self._clusters.is_running:
            return
        for runner in self._runners.values():
            runner.scale(len(self._clusters.others))
            if runner.cache.every_cluster:
                runner.enqueued.discard("")
        self._update_watches(None)
        self._on_source_change()

    def _update(self) -> None:
        """Run exactly the wanted controllers and the informers they need."""
        primary = next(iter(self._clusters))
        for source_runner in self._source_runners:
            # The wanted controllers may depend on the served kinds.
            source_runner.cache.set_kinds(primary.kinds)
        self._update_runners()
        self._update_watches(None)

    def _update_watches(self, cluster: Cluster | None) -> None:
        """Run the wanted informers on one cluster, or on all, and enqueue objects that were cached before."""
        runners = tuple(self._runners.values())
        for runner in runners:
            runner.drop_unused_follows()
        self._clusters.set_watches((*self._source_runners, *runners), cluster)
        for cluster in self._clusters:
            for runner in runners:
                if cluster.name not in runner.enqueued and cluster.is_discovered:
                    runner.enqueue_existing(cluster)

    def _follow(self, controller: AnyController, follow: Follow) -> Informer:
        """Start a dynamic watch for a key of a controller that runs, and return its informer."""
        runner = self._runners.get(controller.name)
        if runner is None or runner.controller is not controller:
            raise CacheNotSynced(f"{controller.name} has been stopped")
        cluster, what = self._clusters.watch_for(follow, runner.follows)
        if (follow.cluster, what) not in runner.follows:
            runner.follows[follow.cluster, what] = None
            self._update_watches(cluster)
        return cluster.informers.informer(what)

    def _on_source_change(self, change: Change | None = None) -> None:
        """Compute the wanted controllers again, if there are sources."""
        if self._source_runners:
            self._sources_changed.set()

    # ── controllers ──

    def _update_runners(self) -> None:
        """Start and stop controllers until those run that are wanted; none is started after `finish`."""
        group = self._group
        if self._shutting_down or group is None:
            return
        wanted: dict[str, AnyController] = {one.name: one for one in self._fixed}
        origins: dict[str, AnyController | Source] = {**wanted}
        for source_runner in self._source_runners:
            if source_runner.cache.is_synced:
                made = source_runner.source.controllers(source_runner.cache.world)
                wanted |= {one.name: one for one in made}
                origins |= {one.name: source_runner.source for one in made}
            else:
                # Not synced yet: the controllers that run because of it go on.
                wanted |= {
                    name: runner.controller for name, runner in self._runners.items() if name not in wanted
                }
        stopped: dict[str, Runner] = {}
        for name, runner in list(self._runners.items()):
            if name not in wanted or wanted[name].config_hash != runner.controller.config_hash:
                runner.worker.queue.shut_down()
                runner.worker.meter.end()
                stopped[name] = runner
                self._stopping = [task for task in self._stopping if not task.done()] + runner.tasks
                del self._runners[name]
                self._log.debug("controller stopped", controller=name)
                if name not in wanted:
                    group.create_task(runner.remove())
        for name, controller in wanted.items():
            if name not in self._runners:
                self._runners[name] = self._new_runner(
                    controller, self._lead_of(origins[name]), group, stopped.get(name)
                )

    def _new_runner(
        self,
        controller: AnyController,
        lead: Leadership | None,
        group: asyncio.TaskGroup,
        replaces: Runner | None,
    ) -> Runner:
        check_watches(controller.name, next(iter(self._clusters)).kinds, controller.watches)
        meter = self._meters(controller.name)
        worker: Worker[object] = Worker(
            controller,
            cache=self._clusters.cache(controller.watches),
            queries=LiveQueries(
                self._client, self._caller, others=self._clusters.others, schemas=self._schemas
            ),
            executor=Executor(
                self._client,
                others=self._clusters.others,
                manager=controller.manager,
                meter=meter,
                events=self._events,
                broadcaster=self._broadcaster,
            ),
            clock=self._clock,
            log=self._log,
            follow=partial(self._follow, controller),
            lead=lead,
            meter=meter,
            replaces=replaces.worker if replaces is not None else None,
        )
        queue = worker.queue
        queue.active, queue.on_idle = self._active, self._broadcaster.notify_idle
        meter.begin(
            depth=lambda: queue.depth, oldest=lambda: queue.busy_since, workers=max(1, controller.at_once)
        )
        if controller.owner_state is not None:
            meter.track_owners(worker.read_owner, worker.leads)
        runner = Runner(worker, group, replaces)
        runner.scale(len(self._clusters.others))
        return runner
