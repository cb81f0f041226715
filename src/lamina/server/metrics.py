"""
What the server counts about itself, under the names Kubernetes gives them.

Counting is a few additions; the text that Prometheus reads is made of the
counts when somebody asks for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

from lamina.server.kind import Kind
from lamina.server.request import Answer, Sink
from lamina.server.routes import Path
from lamina.server.store import Store

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SHOWN = {"create": "POST", "update": "PUT"}
"""Verbs that are called by their method where they are counted."""
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_MOST = 10_000
"""How many combinations of labels are told apart; there are far fewer, unless somebody plays with paths."""


class Tally:
    """How often one kind of request was served, and how long that took."""

    __slots__ = ("buckets", "count", "labels", "seconds")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(_BOUNDS) + 1)

    def add(self, seconds: float) -> None:
        """Count one request that took so long."""
        self.count += 1
        self.seconds += seconds
        self.buckets[bisect_left(_BOUNDS, seconds)] += 1


class Stream:
    """A stream that is counted for as long as it is open: until it is closed, whether it was read to its end or not."""

    __slots__ = ("_chunks", "_metrics")

    def __init__(self, chunks: AsyncIterator[bytes], metrics: Metrics) -> None:
        self._chunks = chunks
        self._metrics: Metrics | None = metrics
        metrics.streams += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        # The stream itself: being counted costs nothing a chunk.
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
    """The server's counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tallies: dict[tuple[object, ...], Tally] = {}
        self._registry: CollectorRegistry | None = None
        self.streams = 0

    def count(self, verb: str, kind: Kind | None, path: Path | None, answer: Answer, seconds: float) -> None:
        """Count one request."""
        tally = self.tally(verb, kind, path, answer.status)
        if verb == "watch":
            tally.count += 1
        else:
            tally.add(seconds)

    def tally(self, verb: str, kind: Kind | None, path: Path | None, status: int) -> Tally:
        """Return where requests like this one are counted."""
        if path is None:
            scope = ""
        elif path.name or verb == "create":
            scope = "resource"
        else:
            scope = "namespace" if path.namespace else "cluster"
        # What clients make up is not told apart: there is no end of it.
        below = path.subresource if path is not None and kind is not None else ""
        if below and kind is not None and kind.subresource(below) is None:
            below = ""
        key = (verb, kind, below, scope, status)
        tally = self._tallies.get(key)
        if tally is None:
            named = (kind.group, kind.version, kind.plural) if kind is not None else ("", "", "")
            shown = _SHOWN.get(verb) or verb.upper()
            tally = Tally((shown, *named, below, scope, str(status)))
            if len(self._tallies) < _MOST:
                self._tallies[key] = tally
        return tally

    def open(self, chunks: AsyncIterator[bytes]) -> Stream:
        """Return a stream that counts as open until it is closed."""
        return Stream(chunks, self)

    def text(self) -> bytes:
        """Return everything in the Prometheus text format."""
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
        """Yield the counts as Prometheus has them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily("apiserver_request", "Requests served.", labels=[*_LABELS, "code"])
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "How long requests took, without those that stream.",
            labels=list(_LABELS),
        )
        together: dict[tuple[str, ...], Tally] = {}
        for tally in self._tallies.values():
            requests.add_metric(tally.labels, tally.count)
            whole = together.setdefault(tally.labels[:-1], Tally(tally.labels[:-1]))
            whole.seconds += tally.seconds
            whole.buckets = [one + other for one, other in zip(whole.buckets, tally.buckets, strict=True)]
        for labels, whole in together.items():
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
