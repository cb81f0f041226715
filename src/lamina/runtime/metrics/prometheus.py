"""
Prometheus metrics, under the names of Metacontroller and controller-runtime, and a few of our own.

The recorders count as things happen; the text is rendered when it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from lamina.core.model.effects import Written
from lamina.core.model.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Post, Replace
from lamina.core.model.plan import Counter as ActionCounter
from lamina.core.model.plan import Gauge as OwnerGauge
from lamina.objects.types import Ref
from lamina.runtime.metrics.hook_calls import SHORT, HookCalls
from lamina.runtime.metrics.owners import Owners, OwnerStates
from lamina.runtime.metrics.recorder import HookRecorder, Leads, ReadOwner, Recorder
from lamina.runtime.metrics.rest import RestMetrics

_LONG = (*SHORT, 120.0, 300.0, 1000.0)
_ERROR = "error"
_RESULTS = ("success", "requeue_after", "requeue", _ERROR)
_MAX_OWNERS = 1000
"""How many owners of one controller have metrics of their own."""
_VERBS: Mapping[type, str] = {
    Create: "created",
    Patch: "updated",
    Replace: "updated",
    Apply: "applied",
    Post: "updated",
    Delete: "deleted",
    DeleteAll: "deleted",
}


class Metrics:
    """All metrics of one process."""

    def __init__(self, *, host: str = "") -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self.calls: HookRecorder = HookCalls(registry)
        self._queues, self._reconciles, self._writes = (
            _Queues(registry),
            _Reconciles(registry),
            _Writes(registry),
        )
        self._owner_states = OwnerStates()
        registry.register(self._owner_states)
        self.traffic, self.reviews = RestMetrics(registry, host), _Reviews(registry)
        self._leads = Gauge(
            "leader_election_master_status",
            "Whether this process holds the Lease of that name.",
            ("name",),
            registry=registry,
        )

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def of(self, controller: str) -> Recorder:
        """Return the recorder of a controller."""
        return _Controller(controller, self._queues, self._reconciles, self._writes, self._owner_states)

    def leads(self, lease: str, holds: Callable[[], bool]) -> None:
        """Report whether this process holds a Lease, evaluated at each scrape."""
        self._leads.labels(lease).set_function(lambda: float(holds()))


class _Queues:
    """Workqueues, under the names of client-go."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # A queue has the name of its controller; dashboards select by either label.
        labels = ("name", "controller")
        self.depth = Gauge("workqueue_depth", "Keys that are ready.", labels, registry=registry)
        self.adds = Counter("workqueue_adds", "Keys that became ready.", labels, registry=registry)
        self.waits = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key was ready before its reconcile began.",
            labels,
            buckets=_LONG,
            registry=registry,
        )
        self.work = Histogram(
            "workqueue_work_duration_seconds", "How long a key was in progress.", labels, buckets=_LONG,
            registry=registry,
        )  # fmt: skip
        self.retries = Counter(
            "workqueue_retries", "Keys that were requeued with backoff.", labels, registry=registry
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds", "For how long the keys in progress have been, in total.", labels,
            registry=registry,
        )  # fmt: skip
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds", "For how long the oldest key in progress has been.", labels,
            registry=registry,
        )  # fmt: skip


class _Reconciles:
    """Reconciles, under the names of controller-runtime."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("controller",)
        self.total = Counter(
            "controller_runtime_reconcile", "Reconciles by result.", (*labels, "result"), registry=registry
        )
        self.errors = Counter(
            "controller_runtime_reconcile_errors", "Reconciles that failed.", labels, registry=registry
        )
        self.terminal = Counter(
            "controller_runtime_terminal_reconcile_errors",
            "Reconciles that failed because of an invalid spec, and are not retried before something changes.",
            labels, registry=registry,
        )  # fmt: skip
        self.panics = Counter(
            "controller_runtime_reconcile_panics", "Reconciles that failed because of a defect.", labels, registry=registry
        )  # fmt: skip
        self.failures = {"terminal": self.terminal, "panic": self.panics}
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds", "How long a reconcile took.", labels, buckets=_LONG,
            registry=registry,
        )  # fmt: skip
        self.max_concurrent = Gauge(
            "controller_runtime_max_concurrent_reconciles", "How many reconciles may run concurrently.", labels,
            registry=registry,
        )  # fmt: skip
        self.active = Gauge(
            "controller_runtime_active_workers", "How many reconciles run now.", labels, registry=registry
        )


class _Reviews:
    """Admission requests of API servers, under the names of controller-runtime."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("webhook",)
        self._total = Counter(
            "controller_runtime_webhook_requests", "Admission requests by status code.",
            (*labels, "code"), registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "controller_runtime_webhook_latency_seconds", "How long an admission request took.", labels,
            buckets=SHORT, registry=registry,
        )  # fmt: skip
        self._in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight", "Admission requests in flight.", labels,
            registry=registry,
        )  # fmt: skip
        self._panics = Counter(
            "controller_runtime_webhook_panics", "Admission requests that failed because of a defect.",
            registry=registry,
        )  # fmt: skip

    def began(self, webhook: str) -> None:
        self._in_flight.labels(webhook).inc()

    def ended(self, webhook: str, code: int, seconds: float) -> None:
        self._in_flight.labels(webhook).dec()
        self._total.labels(webhook, str(code)).inc()
        self._seconds.labels(webhook).observe(seconds)

    def broke(self) -> None:
        self._panics.inc()


class _Writes:
    """Writes and the progress of rollouts; these names are our own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.writes = Counter(
            "lamina_objects_written", "Objects created, updated, applied and deleted.",
            ("controller", "kind", "operation"), registry=registry,
        )  # fmt: skip
        self.targets = Gauge(
            "lamina_rollout_targets", "Targets of rollouts, by state.", ("controller", "state"),
            registry=registry,
        )  # fmt: skip
        self.owners = Gauge(
            "lamina_owner_targets", "Targets of one owner's rollout, by state.",
            ("controller", "namespace", "name", "state"), registry=registry,
        )  # fmt: skip
        self.registry = registry
        self.gauges: dict[str, Gauge] = {}
        """The gauges that plans have, by name."""
        self.counters: dict[str, Counter] = {}
        """The counters that actions have, by name."""
        self.events = Counter(
            "lamina_events", "Events, by type and reason.", ("controller", "type", "reason"),
            registry=registry,
        )  # fmt: skip

    def gauge(self, of: OwnerGauge) -> Gauge:
        """Return the gauge of that name, registered when a plan first has it."""
        if of.name not in self.gauges:
            labels = tuple(name for name, _ in of.labels)
            self.gauges[of.name] = Gauge(of.name, of.help, labels, registry=self.registry)
        return self.gauges[of.name]

    def add(self, to: ActionCounter) -> None:
        """Add one to the counter of that name, registered when an action first has it."""
        names, values = zip(*to.labels, strict=True) if to.labels else ((), ())
        if to.name not in self.counters:
            self.counters[to.name] = Counter(to.name, to.help, names, registry=self.registry)
        counter = self.counters[to.name]
        (counter.labels(*values) if values else counter).inc()


class _Controller(Recorder):
    """Counts what one controller does; its gauges are removed when it stops."""

    def __init__(
        self, name: str, queues: _Queues, reconciles: _Reconciles, writes: _Writes, states: OwnerStates
    ) -> None:
        self._owner_states = states
        self._tracked: Owners | None = None
        self._name, self._queues, self._reconciles, self._writes = name, queues, reconciles, writes
        self._queue = (name, name)
        self._progress: dict[Ref, Mapping[str, int]] = {}
        self._states: dict[str, int] = {}
        self._owners: dict[Ref, set[str]] = {}
        """The owners that have metrics of their own, with the states that were set."""
        self._gauges: dict[Ref, Sequence[OwnerGauge]] = {}

    def begin(self, *, depth: Callable[[], int], oldest: Callable[[], list[float]], workers: int) -> None:
        queue, queues, reconciles = self._queue, self._queues, self._reconciles
        queues.depth.labels(*queue).set_function(depth)
        queues.unfinished.labels(*queue).set_function(lambda: sum(monotonic() - since for since in oldest()))
        queues.longest.labels(*queue).set_function(
            lambda: max((monotonic() - since for since in oldest()), default=0.0)
        )
        reconciles.max_concurrent.labels(self._name).set(workers)
        reconciles.active.labels(self._name).set_function(lambda: len(oldest()))
        # Counters start at zero: a rate is only computed from a series that has a start.
        for counted in (queues.adds, queues.retries, queues.waits, queues.work):
            counted.labels(*queue)
        for counted in (reconciles.errors, reconciles.terminal, reconciles.panics, reconciles.seconds):
            counted.labels(self._name)
        for result in _RESULTS:
            reconciles.total.labels(self._name, result)

    def track_owners(self, read: ReadOwner, leads: Leads) -> None:
        self._tracked = Owners(read, leads)
        self._owner_states.add(self._tracked)

    def changed(self, ref: Ref) -> None:
        if self._tracked is not None:
            self._tracked.changed(ref)

    def end(self) -> None:
        if self._tracked is not None:
            self._owner_states.remove(self._tracked)
            self._tracked = None
        queues, reconciles = self._queues, self._reconciles
        for gauge in (queues.depth, queues.unfinished, queues.longest):
            _forget(gauge, *self._queue)
        for gauge in (reconciles.max_concurrent, reconciles.active):
            _forget(gauge, self._name)
        for state in self._states:
            _forget(self._writes.targets, self._name, state)
        for ref in list(self._owners):
            self._forget_owner(ref, self._owners.pop(ref))
        for ref in list(self._gauges):
            self.gauges(ref, ())

    def added(self) -> None:
        self._queues.adds.labels(*self._queue).inc()

    def taken(self, waited: float) -> None:
        self._queues.waits.labels(*self._queue).observe(waited)

    def worked(self, result: str, seconds: float) -> None:
        reconciles, name = self._reconciles, self._name
        self._queues.work.labels(*self._queue).observe(seconds)
        reconciles.seconds.labels(name).observe(seconds)
        if (kind := reconciles.failures.get(result)) is not None:
            kind.labels(name).inc()
            result = _ERROR
        reconciles.total.labels(name, result).inc()
        if result == _ERROR:
            reconciles.errors.labels(name).inc()

    def retried(self) -> None:
        self._queues.retries.labels(*self._queue).inc()

    def wrote(self, action: Action, written: Sequence[Written] = ()) -> None:
        if isinstance(action, Emit):
            event = action.event
            self._writes.events.labels(self._name, event.get("type") or "", event.get("reason") or "").inc()
        else:
            self._writes.writes.labels(self._name, action.ref.kind, _VERBS[type(action)]).inc()
        if isinstance(action, Create | Patch | Replace | Delete):
            for counter in action.counters:
                self._writes.add(counter)

    def progress(self, ref: Ref, progress: Mapping[str, int]) -> None:
        before = self._progress.pop(ref, {})
        if progress:
            self._progress[ref] = progress
        for state in {*before, *progress}:
            changed = progress.get(state, 0) - before.get(state, 0)
            self._states[state] = self._states.get(state, 0) + changed
            self._writes.targets.labels(self._name, state).set(self._states[state])
        self._count_owner(ref, progress)

    def forget_cluster(self, cluster: str) -> None:
        for ref in [ref for ref in self._progress if ref.cluster == cluster]:
            self.progress(ref, {})
        for ref in [ref for ref in self._gauges if ref.cluster == cluster]:
            self.gauges(ref, ())

    def gauges(self, ref: Ref, gauges: Sequence[OwnerGauge]) -> None:
        before = self._gauges.pop(ref, ())
        if gauges:
            self._gauges[ref] = gauges
        if before == gauges:
            return
        for one in before:
            _forget(self._writes.gauge(one), *(value for _, value in one.labels))
        for one in gauges:
            self._writes.gauge(one).labels(*(value for _, value in one.labels)).set(one.value)

    def _count_owner(self, ref: Ref, progress: Mapping[str, int]) -> None:
        """Count one owner's targets, up to a limited number of owners: each adds time series."""
        if not progress:
            self._forget_owner(ref, self._owners.pop(ref, set()))
            return
        if ref not in self._owners and len(self._owners) >= _MAX_OWNERS:
            return
        counted = self._owners.setdefault(ref, set())
        counted.update(progress)
        for state in counted:
            owner = self._writes.owners.labels(self._name, ref.namespace, ref.name, state)
            owner.set(progress.get(state, 0))

    def _forget_owner(self, ref: Ref, states: set[str]) -> None:
        for state in states:
            _forget(self._writes.owners, self._name, ref.namespace, ref.name, state)


def _forget(metric: Gauge, *labels: str) -> None:
    metric.remove(*labels)
