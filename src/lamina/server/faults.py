"""
Injects faults into the responses of a server, before routing; knows no kind.

The injector runs only while the fault table has entries. Clients get responses late, never, as errors or
from a stale store, and watches are cut. Requests are served by the server itself, so every message is its
own.

Paths below `/lamina/` and requests of `lamina chaos` are exempt, so that faults can always be removed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from lamina.errors import ApiError
from lamina.faults import Cut, Expire, Faults, Silence, Stale
from lamina.faults.table import Entry, RequestFaults, applies
from lamina.server.codec.response import negotiated_status
from lamina.server.context import ServerContext
from lamina.server.fault_matching import FaultTarget
from lamina.server.http.request import Request, Response, error_response
from lamina.server.storage.stale_store import CompactedStore, StaleStore
from lamina.server.storage.store import Store

_SAMPLES = 20
"""Samples of the store's version within the lag of a stale response."""

Serve = Callable[[Request, ServerContext], Awaitable[Response]]


class FaultInjector:
    """Injects the faults of a fault table into one server."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._stale_versions: dict[str, _StaleVersion] = {}

    async def handle(self, request: Request, faults: Faults, serve: Serve) -> Response:
        """Serve a request with the faults that match it."""
        effects = faults.match(FaultTarget.of(request).attributes)
        if not effects.entries:
            return await serve(request, self._context)
        try:
            # If the client disconnects while the request is delayed, the request has no effect.
            request.abandonable, request.silenced = True, effects.find(Silence) is not None
            await effects.before()
            request.abandonable = False
            response = await serve(request, self._context_for(request, effects))
            try:
                request.abandonable = True
                await effects.after()
                request.abandonable = False
            except BaseException:
                await _close(response)
                raise
        except ApiError as refused:
            return negotiated_status(request, error_response(refused))
        if not isinstance(response.body, bytes) and effects.touches_streams:
            response.body = effects.stream(response.body)
        return response

    def _context_for(self, request: Request, effects: RequestFaults) -> ServerContext:
        """Return the context to serve a request from: the live one, a stale one or a compacted one."""
        if effects.find(Expire) is not None:
            return self._context.reading(CompactedStore(self._context.store))
        stale = effects.find(Stale)
        if stale is None or stale.fault.id not in self._stale_versions:
            return self._context
        version = self._stale_versions[stale.fault.id].version
        wanted = request.parameter("resourceVersion")
        if wanted.isdecimal():
            # A client is never served from before a version it names itself.
            version = min(max(version, int(wanted)), self._context.store.version)
        return self._context.reading(StaleStore(self._context.store, version))

    def begin(self, entry: Entry) -> None:
        """Activate a fault; watches that match it are ended, so that they reconnect through it."""
        fault = entry.fault
        self._stale_versions = {
            name: stale_version
            for name, stale_version in self._stale_versions.items()
            if not stale_version.is_over
        }
        if isinstance(fault, Stale):
            self._stale_versions[fault.id] = _StaleVersion(self._context.store, entry, fault)
        if isinstance(fault, Cut | Stale | Silence):
            for watcher, attributes in list(self._context.watches.items()):
                if attributes is not None and applies(entry, attributes.attributes):
                    watcher.end()


class _StaleVersion:
    """The version that a stale response shows: that of the fault's start, or of a fixed time ago."""

    def __init__(self, store: Store, entry: Entry, fault: Stale) -> None:
        self._store, self._entry = store, entry
        self._seconds, self._versions = fault.seconds, fault.versions
        self._loop = asyncio.get_running_loop()
        self._samples = deque([(self._loop.time(), store.version)])
        if self._seconds is not None:
            self._wait(self._seconds)

    @property
    def is_over(self) -> bool:
        return self._entry.removed.is_set()

    @property
    def version(self) -> int:
        if self._versions is not None:
            return max(1, self._store.version - self._versions)
        if self._seconds is not None:
            self._drop_samples(self._loop.time() - self._seconds)
        return self._samples[0][1]

    def _wait(self, seconds: float) -> None:
        self._loop.call_later(seconds / _SAMPLES, self._sample, seconds)

    def _sample(self, seconds: float) -> None:
        if not self.is_over:
            now = self._loop.time()
            self._drop_samples(now - seconds)
            self._samples.append((now, self._store.version))
            self._wait(seconds)

    def _drop_samples(self, before: float) -> None:
        """Drop the samples before a moment, except the newest of them."""
        while len(self._samples) > 1 and self._samples[1][0] <= before:
            self._samples.popleft()


async def _close(response: Response) -> None:
    close = getattr(response.body, "aclose", None)
    if close is not None and isinstance(response.body, AsyncIterator):
        await close()
