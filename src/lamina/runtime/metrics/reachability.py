"""
Whether an API server answers, for the readiness of a process.

A server that is sent nothing is not known to be silent. It is once a request has
been unanswered for a while, and nothing else was answered since: the client polls
discovery, and requests of lost watches are repeated, so that is soon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from lamina.client.transport.base import Query, Response, Transport
from lamina.client.write_guard import WriteGuard
from lamina.errors import ApiError, NotLeading, Unreachable

_MAX_SILENCE = 30.0
"""How many seconds a server may leave a request unanswered."""


class Reachability:
    """Since when one server has not answered."""

    def __init__(self, server: str, now: Callable[[], float] = monotonic) -> None:
        self._server, self._now = server, now
        self._unanswered_since: float | None = None
        self._error = ""

    @property
    def problem(self) -> str:
        """Return why the process is not ready; empty while the server answers."""
        if self._unanswered_since is None:
            return ""
        seconds = self._now() - self._unanswered_since
        if seconds < _MAX_SILENCE:
            return ""
        return (
            f"{self._server} has not answered for {seconds:.0f}s{f': {self._error}' if self._error else ''}"
        )

    def asked(self) -> bool:
        """Note that a request is sent, and say whether no other one is unanswered."""
        is_first = self._unanswered_since is None
        if is_first:
            self._unanswered_since = self._now()
        return is_first

    def answered(self) -> None:
        """Note that a request was answered, however."""
        self._unanswered_since, self._error = None, ""

    def failed(self, error: Exception) -> None:
        """Note that a request ended without an answer."""
        self._error = str(error)

    def tracked(self, transport: Transport) -> Transport:
        """Return a transport whose requests tell whether the server answers."""
        return _Tracked(transport, self)


class _Tracked:
    def __init__(self, transport: Transport, reachability: Reachability) -> None:
        self._transport, self._reachability = transport, reachability

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
        is_first = self._reachability.asked()
        try:
            answer = await self._transport.request(
                method, path, query=query, headers=headers, body=body, streams=streams, guard=guard
            )
        except Unreachable as error:
            self._reachability.failed(error)
            raise
        except ApiError:
            # A transport raises those about its credentials itself.
            self._reachability.answered()
            raise
        except NotLeading:
            # It was not sent.
            if is_first:
                self._reachability.answered()
            raise
        self._reachability.answered()
        return answer

    async def close(self) -> None:
        await self._transport.close()
