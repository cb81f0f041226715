"""
What Prometheus is told: names that Metacontroller and controller-runtime have, and a few of our own.

Counting is done where things happen, through the meters; the text is made when
somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

from lamina.core.plan import Action, Apply, Create, Delete, DeleteAll, Emit, Patch, Post, Replace
from lamina.core.questions import Call
from lamina.objects.types import Ref
from lamina.runtime.meter import CallMeter, Meter
from lamina.runtime.traffic import Traffic

_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG = (*_SHORT, 120.0, 300.0, 1000.0)
_HOOKS = ("sync", "finalize", "customize")
_METHOD = "post"
_ERROR = "error"
_RESULTS = ("success", "requeue_after", "requeue", _ERROR)
_OWNERS = 1000
"""How many owners of one controller are counted one by one."""
_DEEDS: Mapping[type, str] = {
    Create: "created",
    Patch: "updated",
    Replace: "updated",
    Apply: "applied",
    Post: "updated",
    Delete: "deleted",
    DeleteAll: "deleted",
}


class Metrics:
    """Everything that is counted in one process."""

    def __init__(self, *, families: tuple[str, ...] = ("metacontroller",), host: str = "") -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self.calls: CallMeter = _Calls(registry, families)
        self._queues, self._passes, self._deeds = _Queues(registry), _Passes(registry), _Deeds(registry)
        self.traffic, self.reviews = Traffic(registry, host), _Reviews(registry)
        self._leads = Gauge(
            "leader_election_master_status",
            "Whether this process holds the Lease of that name.",
            ("name",),
            registry=registry,
        )

    def text(self) -> bytes:
        """Return all counts, as Prometheus reads them."""
        return generate_latest(self.registry)

    def of(self, controller: str) -> Meter:
        """Return who counts what a controller of that name does."""
        return _Controller(controller, self._queues, self._passes, self._deeds)

    def leads(self, lease: str, holds: Callable[[], bool]) -> None:
        """Have it told whether a Lease is held, whenever somebody asks."""
        self._leads.labels(lease).set_function(lambda: float(holds()))


class _Queues:
    """What waits, under the names of client-go."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # The name of a queue is that of its controller, and dashboards ask for either.
        named = ("name", "controller")
        self.depth = Gauge("workqueue_depth", "Keys that wait.", named, registry=registry)
        self.adds = Counter("workqueue_adds", "Keys that began to wait.", named, registry=registry)
        self.waits = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key waited.",
            named,
            buckets=_LONG,
            registry=registry,
        )
        self.works = Histogram(
            "workqueue_work_duration_seconds", "How long a key was worked on.", named, buckets=_LONG,
            registry=registry,
        )  # fmt: skip
        self.retries = Counter(
            "workqueue_retries", "Keys that were to be tried again.", named, registry=registry
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds", "For how long keys have been worked on, in all.", named,
            registry=registry,
        )  # fmt: skip
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds", "For how long the oldest has been worked on.", named,
            registry=registry,
        )  # fmt: skip


class _Passes:
    """What became of passes, under the names of controller-runtime."""

    def __init__(self, registry: CollectorRegistry) -> None:
        whose = ("controller",)
        self.total = Counter(
            "controller_runtime_reconcile", "Passes by their result.", (*whose, "result"), registry=registry
        )
        self.errors = Counter(
            "controller_runtime_reconcile_errors", "Passes that failed.", whose, registry=registry
        )
        self.terminal = Counter(
            "controller_runtime_terminal_reconcile_errors",
            "Passes that failed over a spec without a meaning, and are not tried again before something changes.",
            whose, registry=registry,
        )  # fmt: skip
        self.panics = Counter(
            "controller_runtime_reconcile_panics", "Passes that a mistake of ours ended.", whose, registry=registry
        )  # fmt: skip
        self.failures = {"terminal": self.terminal, "panic": self.panics}
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds", "How long a pass took.", whose, buckets=_LONG,
            registry=registry,
        )  # fmt: skip
        self.most = Gauge(
            "controller_runtime_max_concurrent_reconciles", "How many passes may run side by side.", whose,
            registry=registry,
        )  # fmt: skip
        self.active = Gauge(
            "controller_runtime_active_workers", "How many passes run now.", whose, registry=registry
        )


class _Reviews:
    """What API servers asked about writes, under the names of controller-runtime."""

    def __init__(self, registry: CollectorRegistry) -> None:
        whose = ("webhook",)
        self._total = Counter(
            "controller_runtime_webhook_requests", "Questions about writes, by the code of the answer.",
            (*whose, "code"), registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "controller_runtime_webhook_latency_seconds", "How long an answer about a write took.", whose,
            buckets=_SHORT, registry=registry,
        )  # fmt: skip
        self._in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight", "Questions that are not answered yet.", whose,
            registry=registry,
        )  # fmt: skip
        self._panics = Counter(
            "controller_runtime_webhook_panics", "Questions that a mistake of ours left without an answer.",
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


class _Deeds:
    """What was done, and how far rollouts are; these names are our own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.writes = Counter(
            "lamina_objects_written", "Objects created, updated, applied and deleted.",
            ("controller", "kind", "deed"), registry=registry,
        )  # fmt: skip
        self.targets = Gauge(
            "lamina_rollout_targets", "Targets of rollouts, by where they stand.", ("controller", "standing"),
            registry=registry,
        )  # fmt: skip
        self.owners = Gauge(
            "lamina_owner_targets", "Targets of one owner's rollout, by where they stand.",
            ("controller", "namespace", "name", "standing"), registry=registry,
        )  # fmt: skip
        self.events = Counter(
            "lamina_events", "What happened, by the reason that events give.", ("controller", "type", "reason"),
            registry=registry,
        )  # fmt: skip


class _Controller(Meter):
    """Counts what one controller does; its counts go when it does."""

    def __init__(self, name: str, queues: _Queues, passes: _Passes, deeds: _Deeds) -> None:
        self._name, self._queues, self._passes, self._deeds = name, queues, passes, deeds
        self._queue = (name, name)
        self._progress: dict[Ref, Mapping[str, int]] = {}
        self._standings: dict[str, int] = {}
        self._owners: dict[Ref, set[str]] = {}
        """Which owners are counted one by one, and what was counted of each."""

    def begin(self, *, depth: Callable[[], int], oldest: Callable[[], list[float]], hands: int) -> None:
        queue, queues, passes = self._queue, self._queues, self._passes
        queues.depth.labels(*queue).set_function(depth)
        queues.unfinished.labels(*queue).set_function(lambda: sum(monotonic() - since for since in oldest()))
        queues.longest.labels(*queue).set_function(
            lambda: max((monotonic() - since for since in oldest()), default=0.0)
        )
        passes.most.labels(self._name).set(hands)
        passes.active.labels(self._name).set_function(lambda: len(oldest()))
        # What has not happened yet is counted as none: whoever asks how it grows has to see where it began.
        for counted in (queues.adds, queues.retries, queues.waits, queues.works):
            counted.labels(*queue)
        for counted in (passes.errors, passes.terminal, passes.panics, passes.seconds):
            counted.labels(self._name)
        for result in _RESULTS:
            passes.total.labels(self._name, result)

    def end(self) -> None:
        queues, passes = self._queues, self._passes
        for gauge in (queues.depth, queues.unfinished, queues.longest):
            _forget(gauge, *self._queue)
        for gauge in (passes.most, passes.active):
            _forget(gauge, self._name)
        for standing in self._standings:
            _forget(self._deeds.targets, self._name, standing)
        for ref in list(self._owners):
            self._forget_owner(ref, self._owners.pop(ref))

    def added(self) -> None:
        self._queues.adds.labels(*self._queue).inc()

    def taken(self, waited: float) -> None:
        self._queues.waits.labels(*self._queue).observe(waited)

    def worked(self, result: str, seconds: float) -> None:
        passes, name = self._passes, self._name
        self._queues.works.labels(*self._queue).observe(seconds)
        passes.seconds.labels(name).observe(seconds)
        if (kind := passes.failures.get(result)) is not None:
            kind.labels(name).inc()
            result = _ERROR
        passes.total.labels(name, result).inc()
        if result == _ERROR:
            passes.errors.labels(name).inc()

    def retried(self) -> None:
        self._queues.retries.labels(*self._queue).inc()

    def wrote(self, action: Action) -> None:
        if isinstance(action, Emit):
            event = action.event
            self._deeds.events.labels(self._name, event.get("type") or "", event.get("reason") or "").inc()
        else:
            self._deeds.writes.labels(self._name, action.ref.kind, _DEEDS[type(action)]).inc()

    def stands(self, ref: Ref, progress: Mapping[str, int]) -> None:
        before = self._progress.pop(ref, {})
        if progress:
            self._progress[ref] = progress
        for standing in {*before, *progress}:
            changed = progress.get(standing, 0) - before.get(standing, 0)
            self._standings[standing] = self._standings.get(standing, 0) + changed
            self._deeds.targets.labels(self._name, standing).set(self._standings[standing])
        self._stands_alone(ref, progress)

    def lost(self, cluster: str) -> None:
        for ref in [ref for ref in self._progress if ref.cluster == cluster]:
            self.stands(ref, {})

    def _stands_alone(self, ref: Ref, progress: Mapping[str, int]) -> None:
        """Count one owner's targets, unless there are so many owners that nobody could look at them."""
        if not progress:
            self._forget_owner(ref, self._owners.pop(ref, set()))
            return
        if ref not in self._owners and len(self._owners) >= _OWNERS:
            return
        counted = self._owners.setdefault(ref, set())
        counted.update(progress)
        for standing in counted:
            owner = self._deeds.owners.labels(self._name, ref.namespace, ref.name, standing)
            owner.set(progress.get(standing, 0))

    def _forget_owner(self, ref: Ref, standings: set[str]) -> None:
        for standing in standings:
            _forget(self._deeds.owners, self._name, ref.namespace, ref.name, standing)


def _forget(metric: Gauge, *labels: str) -> None:
    metric.remove(*labels)


class _Calls(CallMeter):
    """Counts calls to webhooks: for each hook of a family, who asked whom and how that ended."""

    def __init__(self, registry: CollectorRegistry, families: tuple[str, ...]) -> None:
        self._hooks = {
            (family, hook): _Hook(registry, f"{family}_{hook}") for family in families for hook in _HOOKS
        }

    def began(self, call: Call) -> None:
        if hook := self._hooks.get((call.asked_by.family, call.purpose)):
            hook.in_flight.labels(*_whom(call)).inc()

    def found(self, call: Call, event: str, seconds: float) -> None:
        if hook := self._hooks.get((call.asked_by.family, call.purpose)):
            metric = hook.dns if event.startswith("dns") else hook.tls
            metric.labels(*_whom(call), event).observe(seconds)

    def ended(self, call: Call, outcome: str, seconds: float) -> None:
        if hook := self._hooks.get((call.asked_by.family, call.purpose)):
            hook.in_flight.labels(*_whom(call)).dec()
            hook.requests.labels(*_whom(call), outcome, _METHOD).inc()
            hook.seconds.labels(*_whom(call), _METHOD).observe(seconds)


def _whom(call: Call) -> tuple[str, str, str]:
    return call.asked_by.name, call.asked_by.kind, call.url


class _Hook:
    """The counts of one hook, under the names of the original."""

    def __init__(self, registry: CollectorRegistry, name: str) -> None:
        whom = ("controller_name", "controller_type", "url")
        self.requests = Counter(
            f"{name}_requests", "Calls of this hook.", (*whom, "code", "method"), registry=registry
        )
        self.seconds = Histogram(
            f"{name}_request_duration_histogram_seconds", "How long calls took.", (*whom, "method"),
            buckets=_SHORT, registry=registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            f"{name}_in_flight_requests", "Calls that are not answered yet.", whom, registry=registry
        )
        self.dns = Histogram(
            f"{name}_dns_duration_histogram_seconds", "When the hook's address was looked up.",
            (*whom, "event"), buckets=_SHORT, registry=registry,
        )  # fmt: skip
        self.tls = Histogram(
            f"{name}_tls_duration_histogram_seconds", "When a secure connection stood.",
            (*whom, "event"), buckets=_SHORT, registry=registry,
        )  # fmt: skip
