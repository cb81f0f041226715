"""
Request metrics under kube-apiserver's names.

Counting is a few additions; the Prometheus text is built when it is scraped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

from lamina.objects.api_paths import Path
from lamina.server.http.request import Response, Sink
from lamina.server.kinds.kind import Kind
from lamina.server.storage.store import Store

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_VERB_LABELS = {"create": "POST", "update": "PUT"}
"""Verbs that are labelled by their method."""
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_MAX_SERIES = 10_000
"""Label combinations that are counted separately; a bound against clients that invent paths."""


class RequestCounter:
    """Count and duration of requests with the same labels."""

    __slots__ = ("buckets", "count", "labels", "seconds")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(_BOUNDS) + 1)

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        self.buckets[bisect_left(_BOUNDS, seconds)] += 1


class CountedStream:
    """A stream that is counted as long-running until it is closed."""

    __slots__ = ("_chunks", "_metrics")

    def __init__(self, chunks: AsyncIterator[bytes], metrics: Metrics) -> None:
        self._chunks = chunks
        self._metrics: Metrics | None = metrics
        metrics.streams += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        # The inner stream itself: counting costs nothing per chunk.
        return aiter(self._chunks)

    def push_to(self, sink: Sink) -> None:
        push_to = getattr(self._chunks, "push_to", None)
        if push_to is not None:
            push_to(sink)

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        if self._metrics is not None:
            self._metrics.streams -= 1
            self._metrics = None
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            await close()


class Metrics:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._counters: dict[tuple[object, ...], RequestCounter] = {}
        self._registry: CollectorRegistry | None = None
        self.streams = 0

    def count(
        self, verb: str, kind: Kind | None, path: Path | None, response: Response, seconds: float
    ) -> None:
        counter = self.counter(verb, kind, path, response.status)
        if verb == "watch":
            counter.count += 1
        else:
            counter.add(seconds)

    def counter(self, verb: str, kind: Kind | None, path: Path | None, status: int) -> RequestCounter:
        """Return the counter of requests with these labels."""
        if path is None:
            scope = ""
        elif path.name or verb == "create":
            scope = "resource"
        else:
            scope = "namespace" if path.namespace else "cluster"
        # Subresources that do not exist share a label: their number is unbounded.
        below = path.subresource if path is not None and kind is not None else ""
        if below and kind is not None and kind.subresource(below) is None:
            below = ""
        key = (verb, kind, below, scope, status)
        counter = self._counters.get(key)
        if counter is None:
            named = (kind.group, kind.version, kind.plural) if kind is not None else ("", "", "")
            shown = _VERB_LABELS.get(verb) or verb.upper()
            counter = RequestCounter((shown, *named, below, scope, str(status)))
            if len(self._counters) < _MAX_SERIES:
                self._counters[key] = counter
        return counter

    def open(self, chunks: AsyncIterator[bytes]) -> CountedStream:
        """Return a stream that counts as open until it is closed."""
        return CountedStream(chunks, self)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest

        if self._registry is None:
            self._registry = CollectorRegistry()
            ProcessCollector(registry=self._registry)
            PlatformCollector(registry=self._registry)
            self._registry.register(self)
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily("apiserver_request", "Requests served.", labels=[*_LABELS, "code"])
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "How long requests took, without those that stream.",
            labels=list(_LABELS),
        )
        by_request: dict[tuple[str, ...], RequestCounter] = {}
        for counter in self._counters.values():
            requests.add_metric(counter.labels, counter.count)
            whole = by_request.setdefault(counter.labels[:-1], RequestCounter(counter.labels[:-1]))
            whole.seconds += counter.seconds
            whole.buckets = [one + other for one, other in zip(whole.buckets, counter.buckets, strict=True)]
        for labels, whole in by_request.items():
            durations.add_metric(list(labels), _cumulative(whole.buckets), whole.seconds)
        yield requests
        yield durations
        yield GaugeMetricFamily("apiserver_longrunning_requests", "Streams that are open now.", self.streams)
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects stored, by kind.", labels=["resource"]
        )
        for bucket in self._store.buckets():
            objects.add_metric([bucket], self._store.count(bucket))
        yield objects


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    counted, total = [], 0
    for bound, count in zip((*map(str, _BOUNDS), "+Inf"), buckets, strict=True):
        total += count
        counted.append((bound, float(total)))
    return counted
