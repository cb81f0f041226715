"""
Tell what changes, as it changes.

A watch is a cursor into the log: first, where asked for, what is there already;
then every change after it, in the order of the log, each once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from lamina.errors import Gone
from lamina.server import words
from lamina.server.faults import Asking, is_spared
from lamina.server.negotiate import negotiate
from lamina.server.plane import Plane, Target
from lamina.server.request import Answer, Request, Sink
from lamina.server.selection import Selection
from lamina.server.store import Event, Follower, Listing
from lamina.server.verbs.list import check
from lamina.server.verbs.versions import version_of
from lamina.server.voice import Voice, error_line, voice_for

_BOOKMARK_EVERY = 30.0
_BEFORE_END = 2.0
_DICE = random.Random()
_SHORTEST, _LONGEST = 1800.0, 3600.0
_INITIAL_SLICE = 500
_FORMS = ("Table", "PartialObjectMetadata")
_AFTER_KIND = 1.0


class _Terms(NamedTuple):
    """What a query says about how to watch: from which version on, what comes first, and for how long."""

    version: int | None
    initial: bool
    bookmarks: bool
    seconds: int | None


async def watch(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with a stream of events that ends at its timeout, with the kind, or with the server."""
    if "watch" not in target.kind.verbs:
        raise words.not_allowed()
    _check(request.query)
    selection = Selection(target.kind, request)
    if target.name:
        selection.only(target.name)
    wanted = negotiate(request.headers.get("accept", ""), _FORMS)
    version, asked, bookmarks, seconds = _terms(request.query)
    if not asked and not version:
        version = plane.store.version
    voice = voice_for(plane, request, target.kind, (target.namespace, target.name), selection, wanted)
    watcher = _Watcher(
        plane,
        target,
        voice,
        version or 0,
        initial=asked,
        bookmarks=bookmarks,
        # A watch from nowhere that can take bookmarks is a streaming list in all but name.
        marks_end=asked and bookmarks,
        timeout=float(seconds) if seconds and seconds > 0 else _DICE.uniform(_SHORTEST, _LONGEST),
    )
    plane.watchers[watcher] = None if is_spared(request) else Asking.of(request)
    if version:
        await _reach(plane, version)
    return Answer(200, watcher, wanted.content_type)


async def _reach(plane: Plane, version: int) -> None:
    """Give a version that is still to come a moment; a watch may then wait for it as long as it likes."""
    if version > plane.store.version:
        await plane.store.wait_for(version, 3.0)


@lru_cache(maxsize=512)
def _check(query: str) -> None:
    """Refuse a query that contradicts itself; most watchers ask for the same few, and so do many at once."""
    check(Request("GET", "", query), watch=True)


@lru_cache(maxsize=512)
def _terms(query: str) -> _Terms:
    request = Request("GET", "", query)
    version = version_of(request)
    initial = request.flag("sendInitialEvents") if request.parameter("sendInitialEvents") else not version
    return _Terms(version, initial, request.flag("allowWatchBookmarks"), request.number("timeoutSeconds"))


class _Watcher:
    """One watcher, and the stream that is written to it: a `Feed`."""

    def __init__(
        self,
        plane: Plane,
        target: Target,
        voice: Voice,
        version: int,
        *,
        initial: bool,
        bookmarks: bool,
        marks_end: bool,
        timeout: float,
    ) -> None:
        self._plane = plane
        self._target = target
        self._voice = voice
        self._version = version
        self._initial = initial
        self._bookmarks = bookmarks
        self._marks_end = marks_end
        self._timeout = timeout
        self._sink: Sink | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._follower: Follower | None = None
        self._opening: Iterator[bytes] = iter(())
        self._until = self._mark_at = 0.0
        self._ended = self._over = False

    def push_to(self, sink: Sink) -> None:
        self._sink = sink

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return the next bytes of the stream, from the headers' being due to its clean end."""
        if self._over:
            raise StopAsyncIteration
        try:
            follower = self._follower or self._begin()
            for chunk in self._opening:
                if not self._takes(chunk):
                    return chunk
            chunk = await self._next(follower)
        except Gone:
            self._over = True
            return error_line(words.expired(self._version, self._plane.store.compacted + 1))
        if not chunk:
            self._over = True
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self._over = True

    def end(self) -> None:
        """End the stream, as cleanly as its timeout would."""
        self._ended = True
        if self._follower is not None:
            self._follower.end()

    def retire(self) -> None:
        """Take note that the kind is no longer served as it was: that ends the stream soon, not at its timeout."""
        # What happened until now is still told.
        if self._loop is not None:
            self._loop.call_later(_AFTER_KIND, self.end)

    def _begin(self) -> Follower:
        plane, kind, namespace = self._plane, self._target.kind, self._target.namespace or None
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._until = now + self._timeout
        self._mark_at = self._next_mark(now)
        if kind.custom:
            # Those that the server was born with are served for as long as it is.
            plane.registry.tell_of_its_end(kind, self)
        listing = plane.store.list(kind.bucket, namespace) if self._initial else None
        version = listing.version if listing else self._version
        self._follower = follower = plane.store.follow(version, kind.bucket, namespace)
        if self._ended:
            follower.end()
        if listing is not None:
            self._opening = self._existing(listing)
        return follower

    def _existing(self, listing: Listing) -> Iterator[bytes]:
        """Yield what is there already, and the mark that this was all."""
        for start in range(0, len(listing.rows), _INITIAL_SLICE):
            if chunk := self._voice.existing(listing.rows[start : start + _INITIAL_SLICE]):
                yield chunk
        if self._marks_end:
            yield self._voice.bookmark(listing.version, {"k8s.io/initial-events-end": "true"})

    async def _next(self, follower: Follower) -> bytes:
        """Return what happened next, or nothing at the end."""
        clock, until, voice = asyncio.get_running_loop().time, self._until, self._voice
        # An offer may be turned down, and is then made again: the words have to be the same.
        offer = self._push if self._sink is not None and voice.repeats else None
        while (now := clock()) < until:
            if now >= self._mark_at:
                self._mark_at = self._next_mark(now)
                mark = voice.bookmark(follower.version)
                if not self._takes(mark):
                    return mark
            events = await follower.next(min(self._mark_at, until) - now, offer)
            if events is None:
                break
            if events and (chunk := voice.changes(events)):
                return chunk
        return b""

    def _push(self, events: Sequence[Event]) -> bool:
        """Hand over what happened while nobody reads, without anybody's waking up for it."""
        chunk = self._voice.changes(events)
        return not chunk or self._takes(chunk)

    def _takes(self, chunk: bytes) -> bool:
        """Hand something over at once, if there is somebody who takes it."""
        return self._sink is not None and self._sink(chunk)

    def _next_mark(self, now: float) -> float:
        """Return when the next bookmark is due: regularly, and once more shortly before the end."""
        end = self._until
        if not self._bookmarks or now >= end - _BEFORE_END:
            return end
        return min(now + _BOOKMARK_EVERY, end - _BEFORE_END)
