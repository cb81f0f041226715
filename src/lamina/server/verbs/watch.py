"""
The watch verb.

A watch is a cursor into the log: first, if requested, the objects that exist; then every change after them,
in log order, each once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from lamina.errors import Gone
from lamina.server import status_errors
from lamina.server.codec.negotiate import negotiate
from lamina.server.codec.selectors import Selection
from lamina.server.codec.watch_encoder import WatchEncoder, encoder_for, error_line
from lamina.server.context import ServerContext
from lamina.server.fault_matching import FaultTarget, is_exempt
from lamina.server.http.request import Request, Response, Sink
from lamina.server.kinds.target import Target
from lamina.server.storage.store import Cursor, Event, Listing
from lamina.server.verbs.list import check_list_options
from lamina.server.verbs.resource_version import requested_version

_BOOKMARK_EVERY = 30.0
_LAST_BOOKMARK_BEFORE = 2.0
_RANDOM = random.Random()
_MIN_TIMEOUT, _MAX_TIMEOUT = 1800.0, 3600.0
_INITIAL_SLICE = 500
_FORMS = ("Table", "PartialObjectMetadata")
_REMOVED_KIND_DELAY = 1.0


class _WatchOptions(NamedTuple):
    """Watch parameters of a query: start version, initial events, bookmarks and timeout."""

    version: int | None
    initial: bool
    bookmarks: bool
    seconds: int | None


async def watch(context: ServerContext, request: Request, target: Target) -> Response:
    """Return a stream of events that ends at its timeout, when its kind is removed, or with the server."""
    if "watch" not in target.kind.verbs:
        raise status_errors.not_allowed()
    _check(request.query)
    selection = Selection(target.kind, request)
    if target.name:
        selection.restrict_to(target.name)
    representation = negotiate(request.headers.get("accept", ""), _FORMS)
    version, initial, bookmarks, seconds = _watch_options(request.query)
    if not initial and not version:
        version = context.store.version
    encoder = encoder_for(
        context.encoders,
        context.now,
        request,
        target.kind,
        (target.namespace, target.name),
        selection,
        representation,
    )
    stream = _Watch(
        context,
        target,
        encoder,
        version or 0,
        initial=initial,
        bookmarks=bookmarks,
        # A watch without a resourceVersion that allows bookmarks is served as a streaming list.
        marks_end=initial and bookmarks,
        timeout=float(seconds) if seconds and seconds > 0 else _RANDOM.uniform(_MIN_TIMEOUT, _MAX_TIMEOUT),
    )
    context.watches[stream] = None if is_exempt(request) else FaultTarget.of(request)
    if version:
        await _wait_for_version(context, version)
    return Response(200, stream, representation.content_type)


async def _wait_for_version(context: ServerContext, version: int) -> None:
    """Wait briefly for a version in the future; the watch itself then waits without limit."""
    if version > context.store.version:
        await context.store.wait_for(version, 3.0)


@lru_cache(maxsize=512)
def _check(query: str) -> None:
    """Raise Invalid for contradicting options; cached, since many watches have the same query."""
    check_list_options(Request("GET", "", query), watch=True)


@lru_cache(maxsize=512)
def _watch_options(query: str) -> _WatchOptions:
    request = Request("GET", "", query)
    version = requested_version(request)
    initial = request.flag("sendInitialEvents") if request.parameter("sendInitialEvents") else not version
    return _WatchOptions(
        version, initial, request.flag("allowWatchBookmarks"), request.number("timeoutSeconds")
    )


class _Watch:
    """One watch: the `PushStream` of its encoded events."""

    def __init__(
        self,
        context: ServerContext,
        target: Target,
        encoder: WatchEncoder,
        version: int,
        *,
        initial: bool,
        bookmarks: bool,
        marks_end: bool,
        timeout: float,
    ) -> None:
        self._context = context
        self._target = target
        self._encoder = encoder
        self._version = version
        self._initial = initial
        self._bookmarks = bookmarks
        self._marks_end = marks_end
        self._timeout = timeout
        self._sink: Sink | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cursor: Cursor | None = None
        self._initial_chunks: Iterator[bytes] = iter(())
        self._ends_at = self._bookmark_at = 0.0
        self._end_requested = self._finished = False

    def push_to(self, sink: Sink) -> None:
        self._sink = sink

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes of the stream."""
        if self._finished:
            raise StopAsyncIteration
        try:
            cursor = self._cursor or self._begin()
            for chunk in self._initial_chunks:
                if not self._push_chunk(chunk):
                    return chunk
            chunk = await self._next(cursor)
        except Gone:
            self._finished = True
            return error_line(status_errors.expired(self._version, self._context.store.compacted + 1))
        if not chunk:
            self._finished = True
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self._finished = True

    def end(self) -> None:
        """End the stream cleanly, as at its timeout."""
        self._end_requested = True
        if self._cursor is not None:
            self._cursor.end()

    def retire(self) -> None:
        """End the stream soon, since its kind is no longer served as it was."""
        # Events until now are still sent.
        if self._loop is not None:
            self._loop.call_later(_REMOVED_KIND_DELAY, self.end)

    def _begin(self) -> Cursor:
        context, kind, namespace = self._context, self._target.kind, self._target.namespace or None
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._ends_at = now + self._timeout
        self._bookmark_at = self._next_bookmark(now)
        if kind.custom:
            # Built-in kinds are never removed.
            context.registry.observe(kind, self)
        listing = context.store.list(kind.bucket, namespace) if self._initial else None
        version = listing.version if listing else self._version
        self._cursor = cursor = context.store.watch(version, kind.bucket, namespace)
        if self._end_requested:
            cursor.end()
        if listing is not None:
            self._initial_chunks = self._initial_events(listing)
        return cursor

    def _initial_events(self, listing: Listing) -> Iterator[bytes]:
        """Yield the objects that exist, and the bookmark that ends them."""
        for start in range(0, len(listing.rows), _INITIAL_SLICE):
            if chunk := self._encoder.existing(listing.rows[start : start + _INITIAL_SLICE]):
                yield chunk
        if self._marks_end:
            yield self._encoder.bookmark(listing.version, {"k8s.io/initial-events-end": "true"})

    async def _next(self, cursor: Cursor) -> bytes:
        """Return the next bytes, empty at the end of the stream."""
        clock, until, encoder = asyncio.get_running_loop().time, self._ends_at, self._encoder
        # A batch that is not delivered is encoded again, so encoding must be repeatable.
        deliver = self._deliver if self._sink is not None and encoder.repeats else None
        while (now := clock()) < until:
            if now >= self._bookmark_at:
                self._bookmark_at = self._next_bookmark(now)
                bookmark_line = encoder.bookmark(cursor.version)
                if not self._push_chunk(bookmark_line):
                    return bookmark_line
            events = await cursor.next(min(self._bookmark_at, until) - now, deliver)
            if events is None:
                break
            if events and (chunk := encoder.changes(events)):
                return chunk
        return b""

    def _deliver(self, events: Sequence[Event]) -> bool:
        """Push a batch into the sink while the reader waits, without waking its task."""
        chunk = self._encoder.changes(events)
        return not chunk or self._push_chunk(chunk)

    def _push_chunk(self, chunk: bytes) -> bool:
        """Push bytes into the sink; false if there is none or it is paused."""
        return self._sink is not None and self._sink(chunk)

    def _next_bookmark(self, now: float) -> float:
        """Return when the next bookmark is due: periodically, and once shortly before the end."""
        end = self._ends_at
        if not self._bookmarks or now >= end - _LAST_BOOKMARK_BEFORE:
            return end
        return min(now + _BOOKMARK_EVERY, end - _LAST_BOOKMARK_BEFORE)
