"""
A simulated process: controllers with their caches and one workqueue.

It drives the same reconciles as the runtime's worker, with the real functions of
the controllers. Nothing waits: a delayed key becomes ready when the clock of the
simulation reaches its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, assert_never

from msgspec import Struct

from lamina.core.model.controller import AnyController, Source, Watch, is_same_but_newer
from lamina.core.model.effects import Ask, CatchUp, Effect, Perform, Performed, Written
from lamina.core.model.plan import Action
from lamina.core.model.queries import Answer, Follow, Listed, Query, answering_cluster
from lamina.core.model.query_refusal import answer_of
from lamina.core.model.reconcile import Reconciler, drive, performing
from lamina.core.model.workqueue_schedule import Schedule, first
from lamina.core.model.world import Change, everything
from lamina.errors import LaminaError, PlanFailed
from lamina.objects.kinds import Kind
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.runtime.cache.dynamic_watches import DynamicWatches
from lamina.runtime.cache.indexer import DeletedUids
from lamina.runtime.cache.lister import Lister
from lamina.runtime.cache.watch_spec import WatchSpec, named_clusters
from lamina.simulation.cluster.apiserver import SimulatedCluster
from lamina.simulation.process.clusters import Clusters, Worlds
from lamina.simulation.process.informers import Informer
from lamina.simulation.process.record import Choose, Key, Pass


class _Runner:
    """One controller with its reconciler and its worlds."""

    def __init__(self, process: Process, controller: AnyController, replaces: _Runner | None = None) -> None:
        self.controller, self.worlds = controller, process.clusters.worlds()
        self.names = named_clusters(controller.watches)
        """The clusters that the controller names."""
        self.dynamic_watches: DynamicWatches = (
            replaces.dynamic_watches if replaces is not None else DynamicWatches()
        )
        self.handled: set[tuple[str, GroupKind]] = set()
        """The clusters and kinds of its dynamic watches that have a handler."""
        self.enqueued = False
        self.reconciler: Reconciler[Any] = Reconciler(
            controller,
            world=self.worlds.primary,
            queue=_Requeuer(process, controller.name),
            follows=self.dynamic_watches,
            now=lambda: process.cluster.now,
            strict=process.immediate,
            replaces=replaces.reconciler if replaces is not None else None,
        )


class _Requeuer:
    """The schedule of a process, as the reconciler of one of its controllers uses it."""

    def __init__(self, process: Process, controller: str) -> None:
        self._process, self._controller = process, controller

    def add_after(self, key: Ref, delay: timedelta) -> None:
        self._process.schedule.add_after(Key(self._controller, key), self._now, delay)

    def appoint(self, key: Ref, delay: timedelta) -> None:
        self._process.schedule.appoint(Key(self._controller, key), self._now, delay)

    def retry(
        self,
        key: Ref,
        *,
        base_delay: timedelta | None = None,
        max_delay: timedelta | None = None,
        spread: bool = False,
    ) -> timedelta:
        return self._process.schedule.retry(
            Key(self._controller, key),
            self._now,
            base_delay=base_delay,
            max_delay=max_delay,
            spread=spread,
        )

    def reset_backoff(self, key: Ref) -> None:
        self._process.schedule.reset_backoff(Key(self._controller, key))

    @property
    def _now(self) -> datetime:
        return self._process.cluster.now


class _SourceRunner(Struct):
    """A source and its worlds."""

    source: Source
    worlds: Worlds


class Process:
    """
    Runs controllers, fixed ones and those of sources, on one simulated cluster and others by name.

    It starts with empty caches: stopping one process and starting another is a
    crash and a restart. With `immediate`, delays between retries are skipped and
    errors are raised. `watches_kind` says which kinds are watched, `list_objects`
    returns the objects of a kind when its informer starts, and `deleted_uids` are
    known already.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        controllers: Iterable[AnyController] = (),
        sources: Iterable[Source] = (),
        *,
        others: Mapping[str, SimulatedCluster] | None = None,
        immediate: bool = False,
        watches_kind: Callable[[Kind], bool] = lambda kind: True,
        list_objects: Callable[[Kind], Iterable[Obj]] | None = None,
        deleted_uids: DeletedUids | None = None,
    ) -> None:
        self.cluster = cluster
        self.immediate = immediate
        self.schedule: Schedule[Key] = Schedule(
            group=lambda key: (key.controller, key.ref.cluster), immediate=immediate
        )
        self.clusters = Clusters(
            cluster,
            others or {},
            watches_kind=watches_kind,
            list_objects=list_objects or cluster.list_allowed,
            deleted_uids=deleted_uids or DeletedUids(),
            changed=self._mark_changed,
        )
        self.informers = self.clusters.primary.informers
        self.passes: list[Pass] = []
        """The reconciles that wrote something or failed; the reader clears it."""
        self.before_write: Callable[[Key, Action], None] = lambda key, action: None
        self.after_write: Callable[[Key, Action], None] = lambda key, action: None
        self._fixed = {one.name: one for one in controllers}
        self._source_runners = [_SourceRunner(one, self.clusters.worlds()) for one in sources]
        self._runners: dict[str, _Runner] = {}
        self._changed = True
        self._update()

    def stop(self) -> None:
        """Stop, and receive no more events."""
        self.clusters.stop()

    def bind(self, name: str, cluster: SimulatedCluster) -> None:
        """Add another cluster."""
        self.clusters.bind(name, cluster)
        self.resync()

    def unbind(self, name: str) -> None:
        """Remove a cluster."""
        self.clusters.unbind(name)
        self.resync()

    @property
    def controllers(self) -> tuple[AnyController, ...]:
        """Return the controllers that run."""
        return tuple(runner.controller for runner in self._runners.values())

    @property
    def is_idle(self) -> bool:
        """Say whether no key is ready."""
        return not self._changed and not self.schedule.depth

    @property
    def due(self) -> datetime | None:
        """Return when the next delayed key becomes ready."""
        return self.schedule.next_due

    def world(self, watches: Iterable[Watch]) -> Lister:
        """Return the cached world of these watches."""
        worlds = self.clusters.worlds()
        self.clusters.set_watches(worlds, [(watch, None) for watch in watches])
        return worlds.primary

    def resync(self) -> None:
        """Enqueue every object for every controller."""
        for runner in self._runners.values():
            runner.enqueued = False
        self._changed = True

    def step(self, choose: Choose = first) -> bool:
        """Reconcile one key, and say whether one was ready."""
        if self._changed:
            self._update()
        if not self.schedule.depth:
            return False
        key = self.schedule.take(self.cluster.now, choose)
        runner = self._runners.get(key.controller)
        if runner is not None and not self._is_unbound(runner, key.ref.cluster):
            self._attempt(runner, key)
        self.schedule.done(key)
        return True

    def _is_unbound(self, runner: _Runner, name: str) -> bool:
        """Say whether this is a cluster that the controller does not name and that has been unbound."""
        return not self.clusters.has(name) and name not in runner.names

    # ── controllers and informers ──

    def _update(self) -> None:
        """Run exactly the wanted controllers and the informers they need."""
        self._changed = False
        if self.clusters.refresh():
            for runner in self._runners.values():
                runner.enqueued = runner.enqueued and not runner.controller.resync_on_discovery
        for source_runner in self._source_runners:
            self.clusters.set_watches(
                source_runner.worlds, [(watch, self._mark_changed) for watch in source_runner.source.watches]
            )
        self._update_runners()
        for runner in list(self._runners.values()):
            watches = runner.controller.watches
            self.clusters.set_watches(
                runner.worlds, [(watch, partial(self._enqueue, runner, watch)) for watch in watches]
            )
            runner.handled.clear()
            for follow in runner.dynamic_watches:
                self._follow(runner, follow)
        for runner in self._runners.values():
            if not runner.enqueued:
                runner.enqueued = True
                self._enqueue_existing(runner)

    def _mark_changed(self, change: Change | None = None) -> None:
        if change is None or not is_same_but_newer(change):
            self._changed = True

    def _update_runners(self) -> None:
        wanted = dict(self._fixed)
        for source_runner in self._source_runners:
            wanted |= {
                one.name: one for one in source_runner.source.controllers(source_runner.worlds.primary)
            }
        replaced: dict[str, _Runner] = {}
        for name, runner in list(self._runners.items()):
            if name not in wanted or wanted[name].config_hash != runner.controller.config_hash:
                del self._runners[name]
                self.schedule.forget(lambda key, name=name: key.controller == name)  # type: ignore[misc]
                if name in wanted:
                    replaced[name] = runner
                else:
                    self._on_removed(runner.controller)
        for name, controller in wanted.items():
            if name not in self._runners:
                runner = self._runners[name] = _Runner(self, controller, replaced.get(name))
                for ref in runner.dynamic_watches.keys:
                    self.schedule.add(Key(name, ref))

    def _on_removed(self, controller: AnyController) -> None:
        """Perform a controller's plan on removal, as far as it is not refused."""
        plan = controller.on_removed(self.cluster.now)
        drive(performing(plan), lambda stage: [self._written(controller, one) for one in stage.actions])

    def _enqueue(self, runner: _Runner, watch: Watch, change: Change) -> None:
        name, now = runner.controller.name, self.cluster.now
        for ref in watch.enqueue(runner.worlds.primary, change):
            self.schedule.add_batched(Key(name, ref), now, watch.delay)

    def _follow(self, runner: _Runner, follow: Follow) -> None:
        followed = follow.cluster, follow.kind.group_kind
        if followed in runner.handled:
            return
        runner.handled.add(followed)

        def handle(change: Change) -> None:
            for ref in runner.dynamic_watches.keys_for(change):
                self.schedule.add(Key(runner.controller.name, ref))

        self._informer(follow).handlers.append(handle)

    def _informer(self, follow: Follow) -> Informer:
        informers = self.clusters.on(follow.cluster).informers
        return informers.follow(WatchSpec(follow.kind, everything, False, ""))

    def _enqueue_existing(self, runner: _Runner) -> None:
        """Enqueue all existing objects for a controller that has just started."""
        for watch in runner.controller.watches:
            for change in self.clusters.existing(watch):
                self._enqueue(runner, watch, change)

    # ── reconciling ──

    def _attempt(self, runner: _Runner, key: Key) -> None:
        """Reconcile a key once, and record what it came to."""
        attempt = drive(runner.reconciler.attempt(key.ref), partial(self._perform, runner, key))
        plan, outcome, failure = attempt.plan, attempt.outcome, attempt.failure
        if plan is not None and (outcome.done or failure is not None):
            self._record(
                key,
                because=plan.because,
                done=outcome.done,
                failure=failure,
                is_outdated=isinstance(failure, PlanFailed) and failure.serious is None,
            )
        if (complaint := attempt.complaint) is not None:
            error = complaint.error
            self._record(key, because=str(error), done=complaint.outcome.done, failure=error)

    def _record(self, key: Key, **facts: Any) -> None:
        self.passes.append(Pass(at=self.cluster.now, controller=key.controller, ref=key.ref, **facts))

    def _perform(self, runner: _Runner, key: Key, effect: Effect) -> object:
        match effect:
            case CatchUp(written=written, outdated=outdated):
                self._catch_up(runner, written, outdated)
                return None
            case Ask(queries=queries):
                return {query: self._answer(runner, query) for query in queries}
            case Perform(actions=actions):
                return [self._write(runner, key, action) for action in actions]
            case _:
                assert_never(effect)

    def _catch_up(self, runner: _Runner, written: Iterable[Written], outdated: Iterable[Ref]) -> None:
        """Deliver events up to the writes made for a key before, and read outdated objects live."""
        for name in runner.names:
            self.clusters.on(name)
        newest: dict[tuple[str, GroupKind], int] = {}
        for one in written:
            key = one.ref.cluster, GroupKind(one.ref.group, one.ref.kind)
            newest[key] = max(one.version or 0, newest.get(key, 0))
        for (name, kind), version in newest.items():
            self.clusters.on(name).informers.deliver(kind, until=version)
        for ref in outdated:
            connected, local = self.clusters.on(ref.cluster), ref._replace(cluster="")
            connected.informers.store_live(local, connected.cluster.at(local))

    def _answer(self, runner: _Runner, query: Query) -> Answer:
        if isinstance(query, Follow):
            self._follow(runner, query)
            informer = self._informer(query)
            if informer.refused is not None:
                return answer_of(query, informer.refused)
            # From the cache, which may be stale, as for every dynamic watch.
            return Listed(tuple(one for one in informer.indexer.every() if query.matches(one)))
        return self.clusters.on(answering_cluster(query)).cluster.answer(query)

    def _write(self, runner: _Runner, key: Key, action: Action) -> Performed:
        self.before_write(key, action)
        written = self._written(runner.controller, action)
        if not isinstance(written, LaminaError):
            self.after_write(key, action)
        return written

    def _written(self, controller: AnyController, action: Action) -> Performed:
        """Perform one action, and return the version it made, if it made one, or the error."""
        try:
            cluster = self.clusters.on(action.ref.cluster).cluster
            before = cluster.version
            cluster.perform(action, controller.manager)
        except LaminaError as error:
            return error
        return (Written(action.ref, "", cluster.version),) if cluster.version != before else ()
