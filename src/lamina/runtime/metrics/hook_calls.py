"""Prometheus metrics of hook calls, under the names that Metacontroller uses."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from lamina.core.model.queries import Call
from lamina.runtime.metrics.recorder import HookRecorder

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""The buckets of what takes seconds."""
_METHOD = "post"


class HookCalls(HookRecorder):
    """
    Counts calls to webhooks, for each hook of a family by controller, URL and outcome.

    The metrics of a hook are registered with its first call: they are named after the
    family and the hook of the call. A call without a family is not counted.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._hooks: dict[tuple[str, str], _Hook] = {}

    def began(self, call: Call) -> None:
        if hook := self._hook(call):
            hook.in_flight.labels(*_labels(call)).inc()

    def found(self, call: Call, event: str, seconds: float) -> None:
        if hook := self._hook(call):
            metric = hook.dns if event.startswith("dns") else hook.tls
            metric.labels(*_labels(call), event).observe(seconds)

    def ended(self, call: Call, outcome: str, seconds: float) -> None:
        if hook := self._hook(call):
            hook.in_flight.labels(*_labels(call)).dec()
            hook.requests.labels(*_labels(call), outcome, _METHOD).inc()
            hook.seconds.labels(*_labels(call), _METHOD).observe(seconds)

    def _hook(self, call: Call) -> _Hook | None:
        family, hook = call.origin.family, call.purpose
        if not family:
            return None
        if (family, hook) not in self._hooks:
            self._hooks[family, hook] = _Hook(self._registry, f"{family}_{hook}")
        return self._hooks[family, hook]


def _labels(call: Call) -> tuple[str, str, str]:
    return call.origin.name, call.origin.kind, call.url


class _Hook:
    """The metrics of one hook, under the names that upstream uses."""

    def __init__(self, registry: CollectorRegistry, name: str) -> None:
        labels = ("controller_name", "controller_type", "url")
        self.requests = Counter(
            f"{name}_requests",
            "Calls of this hook, by status code.",
            (*labels, "code", "method"),
            registry=registry,
        )
        self.seconds = Histogram(
            f"{name}_request_duration_histogram_seconds", "How long calls took.", (*labels, "method"),
            buckets=SHORT, registry=registry,
        )  # fmt: skip
        self.in_flight = Gauge(f"{name}_in_flight_requests", "Calls in flight.", labels, registry=registry)
        self.dns = Histogram(
            f"{name}_dns_duration_histogram_seconds", "When the hook's name was resolved, after the call began.",
            (*labels, "event"), buckets=SHORT, registry=registry,
        )  # fmt: skip
        self.tls = Histogram(
            f"{name}_tls_duration_histogram_seconds", "When the TLS handshake was complete, after the call began.",
            (*labels, "event"), buckets=SHORT, registry=registry,
        )  # fmt: skip
