"""
The worker: takes keys from the workqueue and drives their reconciles.

What a reconcile does next, and what follows from a conflict or another failure, is
decided in `core.model.reconcile`; the worker waits for caches, sends queries and
writes, and logs the outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar, assert_never

from lamina.clock import Clock
from lamina.core.model.controller import Controller, Watch
from lamina.core.model.effects import Ask, Attempt, CatchUp, Effect, Perform, Performed, Result, Written
from lamina.core.model.plan import Action, Plan
from lamina.core.model.queries import Answer, Follow, Listed, Query
from lamina.core.model.query_refusal import answer_of
from lamina.core.model.reconcile import Reconciler
from lamina.core.model.state import State
from lamina.core.model.state_since import state_since
from lamina.core.model.world import Change
from lamina.errors import CacheNotSynced, LaminaError
from lamina.logs import Logger
from lamina.objects import meta
from lamina.objects.types import Obj, Ref
from lamina.runtime.cache.dynamic_watches import DynamicWatches
from lamina.runtime.cache.indexer import Indexer
from lamina.runtime.cache.informer import Informer
from lamina.runtime.cache.watch_spec import ChangeHandler
from lamina.runtime.cluster.cache_view import CacheView
from lamina.runtime.cluster.per_cluster_limit import PerClusterLimit
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.executor import Executor
from lamina.runtime.controller.live_queries import LiveQueries
from lamina.runtime.controller.reconcile_log import ReconcileLog
from lamina.runtime.controller.workqueue import ShutDown, Workqueue
from lamina.runtime.metrics.recorder import OwnerState, Recorder

View = TypeVar("View")

_SYNC_TIMEOUT = 5.0


class InformerStarter(Protocol):
    """Returns the informer of what a key follows, started if there is none yet."""

    def __call__(self, follow: Follow) -> Informer: ...


class Leadership(Protocol):
    """Says whether this replica leads an owner."""

    def holds(self, uid: str) -> bool: ...


class Worker(Generic[View]):
    """
    Runs one controller, one key at a time and several keys at once.

    One that replaces another of the same name goes on with what that one wrote and followed.
    """

    def __init__(
        self,
        controller: Controller[View],
        *,
        cache: CacheView,
        queries: LiveQueries,
        executor: Executor,
        clock: Clock,
        log: Logger,
        follow: InformerStarter | None = None,
        lead: Leadership | None = None,
        meter: Recorder | None = None,
        replaces: Worker[Any] | None = None,
    ) -> None:
        self.meter = meter or Recorder()
        self.controller, self.cache = controller, cache
        self.queue: Workqueue[Ref] = Workqueue(clock, meter=self.meter, group=lambda ref: ref.cluster)
        self.dynamic_watches: DynamicWatches = (
            replaces.dynamic_watches if replaces is not None else DynamicWatches()
        )
        self._reconciler: Reconciler[View] = Reconciler(
            controller,
            world=cache.world,
            queue=self.queue,
            follows=self.dynamic_watches,
            now=clock.now,
            is_visible=cache.contains,
            replaces=replaces._reconciler if replaces is not None else None,
        )
        self._owner_kinds: set[tuple[str, str]] = set()
        """The group and kind of the owners whose keys have been enqueued."""
        self._queries, self._executor, self._clock = queries, executor, clock
        self._follow, self._lead = follow, lead
        self._log = log.bind(controller=controller.name)
        self._reconcile_log: ReconcileLog = (
            replaces._reconcile_log if replaces is not None else ReconcileLog(self._log)
        )
        self._per_cluster = PerClusterLimit(max(1, controller.at_once)) if cache.every_cluster else None

    def handler(self, watch: Watch) -> ChangeHandler:
        """Return the event handler of one watch of the controller."""

        def handle(change: Change) -> None:
            for ref in watch.enqueue(self.cache.world, change):
                self.queue.add_after(ref, watch.delay)

        def handle_and_note(change: Change) -> None:
            for ref in watch.enqueue(self.cache.world, change):
                self.queue.add_after(ref, watch.delay)
                self._note_owner(ref)
            # A controller may ignore the status that it writes itself.
            if (change.kind.group, change.kind.kind) in self._owner_kinds:
                self.meter.changed(change.ref)

        return handle if self.controller.owner_state is None else handle_and_note

    def _note_owner(self, ref: Ref) -> None:
        self._owner_kinds.add((ref.group, ref.kind))
        self.meter.changed(ref)

    def read_owner(self, ref: Ref) -> OwnerState | None:
        """Return the state of an owner, as the cache has it."""
        obj, read = self.cache.world.get(ref), self.controller.owner_state
        if obj is None or read is None:
            return None
        try:
            state = read(self.cache.world, ref)
        except LaminaError:
            # It cannot be planned for, and that is what its status says, or will say.
            state = State.DEGRADED
        return OwnerState(state, state_since(obj, state), self._clock.now()) if state is not None else None

    def handle_dynamic(self, change: Change) -> None:
        """Enqueue the keys that follow what changed."""
        for ref in self.dynamic_watches.keys_for(change):
            self.queue.add(ref)
            if self.controller.owner_state is not None:
                self._note_owner(ref)

    async def run(self) -> None:
        """Reconcile keys until the queue is shut down; several of these may run side by side."""
        while True:
            try:
                ref = await self.queue.get()
            except ShutDown:
                return
            if self._per_cluster is not None and not self._per_cluster.acquire(ref):
                self.queue.done(ref)
                continue
            began, bindings = monotonic(), self.cache.bindings
            try:
                result = await self._attempt(ref)
                self.meter.worked(result, monotonic() - began)
            finally:
                if not self.cache.same_bindings((ref.cluster,), bindings):
                    self._forget(ref)
                self.queue.done(ref)
                if self._per_cluster is not None and (waiting := self._per_cluster.release(ref)) is not None:
                    self.queue.add(waiting)
            # A server in the same process may answer without a suspension; other tasks run here.
            await asyncio.sleep(0)

    def forget(self, cluster: str) -> None:
        """Drop everything that is remembered of a cluster: another one may take its name."""
        self._reconciler.forget_cluster(cluster)
        self.meter.forget_cluster(cluster)

    def _forget(self, ref: Ref) -> None:
        self._reconciler.forget(ref)
        self._reconcile_log.forget(ref)
        self.meter.progress(ref, {})
        self.meter.gauges(ref, ())

    async def remove(self) -> None:
        """Perform what a controller does once it has stopped for good."""
        plan = self.controller.on_removed(self._clock.now())
        try:
            await self._executor.run(plan, allowed=lambda: self._leads_all)
        except LaminaError as error:
            self._log.debug("plan on removal failed", because=str(error))

    @property
    def _leads_all(self) -> bool:
        return self._lead is None or self._lead.holds(self.controller.name)

    @property
    def follows(self) -> Iterator[Follow]:
        """Yield what keys follow, in their last reconcile or in the present one."""
        return iter(self.dynamic_watches)

    async def _attempt(self, ref: Ref) -> Result:
        """Reconcile a key once, log what it came to, and return how it is counted."""
        if not self.leads(ref) or self.cache.is_unbound(ref.cluster):
            # The replica that gains the shard, or the cluster, resyncs all of it.
            self.queue.reset_backoff(ref)
            return Result.SUCCESS
        try:
            attempt = await drive(self._reconciler.attempt(ref), _Driver(self, ref))
        except Exception:
            self._log.exception("reconciling failed because of a defect", object=str(ref))
            self.queue.retry(ref, spread=True)
            return Result.PANIC
        self._note(ref, attempt)
        return attempt.result

    def _note(self, ref: Ref, attempt: Attempt) -> None:
        """Count and log what a reconcile came to."""
        plan, failure = attempt.plan, attempt.failure
        if plan is not None:
            self.meter.progress(ref, plan.progress)
            self.meter.gauges(ref, plan.gauges)
        elif not attempt.has_view and failure is None:
            self.meter.progress(ref, {})
            self.meter.gauges(ref, ())
        self._reconcile_log.note(ref, attempt, self._clock.now(), self.queue.due(ref))

    def leads(self, ref: Ref) -> bool:
        """Say whether this replica reconciles a key now."""
        if self._lead is None:
            return True
        owner = self.cache.world.get(ref)
        return self._lead.holds(meta.uid(owner) if owner is not None else str(ref))


class _Driver:
    """
    Performs the effects of one reconcile.

    From the moment the caches have caught up, everything is asked of and written
    to the clusters that had their names then.
    """

    def __init__(self, worker: Worker[View], ref: Ref) -> None:
        self._worker, self._ref = worker, ref
        self._bind()

    def _bind(self) -> None:
        worker = self._worker
        self._bindings, self._queries = worker.cache.bindings, worker._queries.with_current_bindings()

    async def __call__(self, effect: Effect) -> object:
        match effect:
            case CatchUp(cluster=cluster, written=written, outdated=outdated):
                await self._catch_up(cluster, written, outdated)
                return None
            case Ask(queries=queries):
                return await self._ask(queries)
            case Perform(plan=plan, actions=actions):
                return await self._perform(plan, actions)
            case _:
                assert_never(effect)

    async def _catch_up(self, cluster: str, written: Collection[Written], outdated: Collection[Ref]) -> None:
        cache = self._worker.cache
        await cache.wait_synced(cluster)
        if written:
            await cache.wait_written(written)
        if outdated:
            await cache.refresh(outdated)
        self._bind()

    async def _ask(self, queries: Sequence[Query]) -> Mapping[Query, Answer]:
        answers: dict[Query, Answer] = {
            query: await self._list_followed(query) for query in queries if isinstance(query, Follow)
        }
        others = [query for query in queries if not isinstance(query, Follow)]
        return {**answers, **(await self._queries.ask(others) if others else {})}

    async def _list_followed(self, follow: Follow) -> Answer:
        start = self._worker._follow
        assert start is not None, "a worker whose controller follows objects can start informers"
        informer = start(follow)
        try:
            async with asyncio.timeout(_SYNC_TIMEOUT):
                await informer.synced.wait()
        except TimeoutError:
            raise CacheNotSynced(f"the informer of {follow.kind.plural} has not synced yet") from None
        if informer.stopped:
            raise CacheNotSynced(f"the informer of {follow.kind.plural} has stopped")
        if informer.refused is not None:
            return answer_of(follow, informer.refused)
        return Listed(tuple(_matching(informer.indexer, follow)))

    async def _perform(self, plan: Plan, actions: Sequence[Action]) -> Sequence[Performed]:
        results = await self._worker._executor.perform(actions, allowed=self._guard(plan))
        return [
            result if isinstance(result, LaminaError) else self._still_bound(result) for result in results
        ]

    def _still_bound(self, written: Sequence[Written]) -> Sequence[Written]:
        """Leave out writes to clusters that have lost their names since."""
        cache, bindings = self._worker.cache, self._bindings
        return [one for one in written if cache.same_bindings((one.ref.cluster,), bindings)]

    def _guard(self, plan: Plan) -> Callable[[], bool]:
        """Return whether a plan may still be performed, and on the clusters it was made for."""
        worker, ref, bindings = self._worker, self._ref, self._bindings
        clusters = {ref.cluster, *(action.ref.cluster for action in plan.actions)}
        return lambda: worker.leads(ref) and worker.cache.same_bindings(clusters, bindings)


def _matching(indexer: Indexer, follow: Follow) -> Iterator[Obj]:
    """Yield the cached objects that match: by name where the names are known, otherwise by scanning."""
    namespaces = follow.namespaces if follow.kind.namespaced else ("",)
    found: Iterable[Obj | None]
    if follow.names is not None and namespaces is not None:
        names = dict.fromkeys(follow.names)
        found = (indexer.get(namespace, name) for namespace in dict.fromkeys(namespaces) for name in names)
    else:
        namespaces_to_search: Sequence[str | None] = namespaces if namespaces is not None else (None,)
        found = (obj for namespace in namespaces_to_search for obj in indexer.every(namespace))
    yield from (obj for obj in found if obj is not None and follow.matches(obj))
