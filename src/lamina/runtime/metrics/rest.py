"""Requests to the API server, counted under the names of client-go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Histogram

from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.errors import Unauthorized

_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG = (*_SHORT, 120.0, 300.0, 1000.0)
_BYTES = tuple(float(1 << power) for power in (6, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24))


class RestMetrics:
    """The requests of one process to one server."""

    def __init__(self, registry: CollectorRegistry, host: str) -> None:
        self._host = host
        labels = ("verb", "host")
        self._requests = Counter(
            "rest_client_requests", "Requests to the API server.", ("code", "method", "host"),
            registry=registry,
        )  # fmt: skip
        self._retries = Counter(
            "rest_client_request_retries", "Requests that were retried because the API server asked for it.",
            ("code", *labels), registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "rest_client_request_duration_seconds", "How long the API server took until its response began.",
            labels, buckets=_SHORT, registry=registry,
        )  # fmt: skip
        self._limited = Histogram(
            "rest_client_rate_limiter_duration_seconds", "How long requests waited for the client-side rate limiter.",
            labels, buckets=_LONG, registry=registry,
        )  # fmt: skip
        self._sent = Histogram(
            "rest_client_request_size_bytes", "Size of request bodies.",
            labels, buckets=_BYTES, registry=registry,
        )  # fmt: skip
        self._got = Histogram(
            "rest_client_response_size_bytes", "Size of response bodies, watches excepted.",
            labels, buckets=_BYTES, registry=registry,
        )  # fmt: skip
        self._throttled = Counter(
            "lamina_api_throttled_seconds", "How long the API server asked this client to wait, in total.",
            registry=registry,
        )  # fmt: skip

    def metered(self, transport: Transport) -> Transport:
        """Return a transport whose requests are counted."""
        return _Metered(transport, self)

    def waited(self, method: str, seconds: float) -> None:
        """Record the time a request waited for the rate limiter."""
        self._limited.labels(method, self._host).observe(seconds)

    def retried(self, method: str, code: int) -> None:
        """Record a request that is retried after a response with that code."""
        self._retries.labels(str(code), method, self._host).inc()

    def asked(self, method: str, size: int, code: str, seconds: float, throttled: float) -> None:
        """Record a request and the beginning of its response."""
        self._requests.labels(code, method, self._host).inc()
        self._seconds.labels(method, self._host).observe(seconds)
        self._sent.labels(method, self._host).observe(size)
        if throttled:
            self._throttled.inc(throttled)

    def got(self, method: str, size: int) -> None:
        """Record the size of a response that was read to its end."""
        self._got.labels(method, self._host).observe(size)


class _Metered:
    """A transport whose requests are counted."""

    def __init__(self, transport: Transport, metrics: RestMetrics) -> None:
        self._transport, self._metrics = transport, metrics

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        began, code, throttled = monotonic(), "<error>", 0.0
        try:
            answer = await self._transport.request(
                method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
            )
            code = str(answer.status)
            wait = answer.headers.get("retry-after", "") if answer.status == 429 else ""
            throttled = float(wait) if wait.isascii() and wait.isdigit() else 0.0
        except Unauthorized as error:
            code = str(error.code)
            raise
        finally:
            self._metrics.asked(method, len(body or b""), code, monotonic() - began, throttled)
        return answer if streams else _Measured(answer, lambda size: self._metrics.got(method, size))

    async def close(self) -> None:
        await self._transport.close()


class _Measured:
    """A response whose size is reported when it has been read."""

    def __init__(self, answer: Response, on_read: Callable[[int], None]) -> None:
        self._answer, self._on_read = answer, on_read

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    async def read(self) -> bytes:
        body = await self._answer.read()
        self._on_read(len(body))
        return body

    def stream(self) -> AsyncIterator[bytes]:
        return self._answer.stream()

    async def close(self) -> None:
        await self._answer.close()
