"""What goes to the API server and comes back, counted under the names of client-go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Histogram

from lamina.client.transport import Query, Response, Transport

_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG = (*_SHORT, 120.0, 300.0, 1000.0)
_BYTES = tuple(float(1 << power) for power in (6, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24))


class Traffic:
    """The requests of one process to one server."""

    def __init__(self, registry: CollectorRegistry, host: str) -> None:
        self._host = host
        whither = ("verb", "host")
        self._requests = Counter(
            "rest_client_requests", "Requests to the API server.", ("code", "method", "host"),
            registry=registry,
        )  # fmt: skip
        self._retries = Counter(
            "rest_client_request_retries", "Requests that were sent again because the API server asked for that.",
            ("code", *whither), registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "rest_client_request_duration_seconds", "How long the API server took to begin its answer.",
            whither, buckets=_SHORT, registry=registry,
        )  # fmt: skip
        self._limited = Histogram(
            "rest_client_rate_limiter_duration_seconds", "How long our own limit of requests kept one waiting.",
            whither, buckets=_LONG, registry=registry,
        )  # fmt: skip
        self._sent = Histogram(
            "rest_client_request_size_bytes", "How much was sent along with a request.",
            whither, buckets=_BYTES, registry=registry,
        )  # fmt: skip
        self._got = Histogram(
            "rest_client_response_size_bytes", "How much an answer was, unless it was a watch.",
            whither, buckets=_BYTES, registry=registry,
        )  # fmt: skip
        self._throttled = Counter(
            "lamina_api_throttled_seconds", "How long the API server asked us to wait, in all.",
            registry=registry,
        )  # fmt: skip

    def metered(self, transport: Transport) -> Transport:
        """Return a transport whose requests are counted."""
        return _Metered(transport, self)

    def waited(self, method: str, seconds: float) -> None:
        """Take note of a request that waited for its turn."""
        self._limited.labels(method, self._host).observe(seconds)

    def retried(self, method: str, code: int) -> None:
        """Take note of a request that is sent again after such an answer."""
        self._retries.labels(str(code), method, self._host).inc()

    def asked(self, method: str, size: int, code: str, seconds: float, throttled: float) -> None:
        """Take note of a request and of the beginning of its answer."""
        self._requests.labels(code, method, self._host).inc()
        self._seconds.labels(method, self._host).observe(seconds)
        self._sent.labels(method, self._host).observe(size)
        if throttled:
            self._throttled.inc(throttled)

    def got(self, method: str, size: int) -> None:
        """Take note of an answer that was read to its end."""
        self._got.labels(method, self._host).observe(size)


class _Metered:
    """A transport whose requests are counted."""

    def __init__(self, transport: Transport, traffic: Traffic) -> None:
        self._transport, self._traffic = transport, traffic

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
    ) -> Response:
        began, code, throttled = monotonic(), "<error>", 0.0
        try:
            answer = await self._transport.request(
                method, path, query=query, headers=headers, body=body, streams=streams
            )
            code = str(answer.status)
            wait = answer.headers.get("retry-after", "") if answer.status == 429 else ""
            throttled = float(wait) if wait.isascii() and wait.isdigit() else 0.0
        finally:
            self._traffic.asked(method, len(body or b""), code, monotonic() - began, throttled)
        return answer if streams else _Weighed(answer, lambda size: self._traffic.got(method, size))

    async def close(self) -> None:
        await self._transport.close()


class _Weighed:
    """An answer of which it is told how much it was."""

    def __init__(self, answer: Response, tell: Callable[[int], None]) -> None:
        self._answer, self._tell = answer, tell

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    async def read(self) -> bytes:
        body = await self._answer.read()
        self._tell(len(body))
        return body

    def stream(self) -> AsyncIterator[bytes]:
        return self._answer.stream()

    async def close(self) -> None:
        await self._answer.close()
