"""What the server counts about itself, under the names Kubernetes gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from lamina.server.kind import Kind
from lamina.server.request import Answer
from lamina.server.routes import Path
from lamina.server.store import Store

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The server's metrics. Children are looked up once per combination of labels, not once per request."""

    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.registry.register(_Objects(store))
        labels = ("verb", "group", "version", "resource", "subresource", "scope")
        self._requests = Counter(
            "apiserver_request", "Requests served.", (*labels, "code"), registry=self.registry
        )
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "How long requests took, without those that stream.",
            labels,
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.streams = Gauge(
            "apiserver_longrunning_requests", "Streams that are open now.", registry=self.registry
        )
        self._known: dict[tuple[object, ...], tuple[Counter, Histogram]] = {}

    def count(self, verb: str, kind: Kind | None, path: Path | None, answer: Answer, seconds: float) -> None:
        """Count one request."""
        below = path.subresource if path is not None else ""
        scope = (
            "" if path is None else "resource" if path.name else "namespace" if path.namespace else "cluster"
        )
        key = (verb, kind, below, scope, answer.status)
        known = self._known.get(key)
        if known is None:
            group, version, plural = (
                (kind.group, kind.version, kind.plural) if kind is not None else ("", "", "")
            )
            labels = (verb.upper(), group, version, plural, below, scope)
            known = (self._requests.labels(*labels, answer.status), self._durations.labels(*labels))
            if len(self._known) < 10_000:
                self._known[key] = known
        known[0].inc()
        if verb != "watch":
            known[1].observe(seconds)

    def text(self) -> bytes:
        """Return everything in the Prometheus text format."""
        return generate_latest(self.registry)


class _Objects(Collector):
    """How many objects of each kind are stored, counted when somebody looks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects stored, by kind.", labels=["resource"]
        )
        for bucket in self._buckets():
            family.add_metric([bucket], self._store.count(bucket))
        yield family

    def describe(self) -> Iterable[Metric]:
        return ()

    def _buckets(self) -> list[str]:
        return sorted(self._store.buckets())
