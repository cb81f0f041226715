"""
Tell what changes, as it changes.

A watch is a cursor into the log: first, where asked for, what is there already;
then every change after it, in the order of the log, each once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from lamina.errors import Gone
from lamina.server import words
from lamina.server.faults import asked_of, is_spared
from lamina.server.negotiate import negotiate
from lamina.server.plane import Plane, Target
from lamina.server.request import Answer, Request, Sink
from lamina.server.selection import Selection
from lamina.server.store import Event, Follower
from lamina.server.verbs.list import check
from lamina.server.verbs.versions import version_of
from lamina.server.voice import Voice, error_line, voice_for

_BOOKMARK_EVERY = 30.0
_BEFORE_END = 2.0
_DICE = random.Random()
_SHORTEST, _LONGEST = 1800.0, 3600.0
_INITIAL_SLICE = 500
_LOOK_AT_KIND = 1.0


async def watch(plane: Plane, request: Request, target: Target) -> Answer:
    """Answer with a stream of events that ends at its timeout, with the kind, or with the server."""
    if "watch" not in target.kind.verbs:
        raise words.not_allowed()
    check(request, watch=True)
    selection = Selection(target.kind, request)
    if target.name:
        selection.only(target.name)
    wanted = negotiate(request.headers.get("accept", ""), ("Table", "PartialObjectMetadata"))
    version = version_of(request)
    asked = request.flag("sendInitialEvents") if request.parameter("sendInitialEvents") else not version
    if not asked and not version:
        version = plane.store.version
    bookmarks = request.flag("allowWatchBookmarks")
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
        timeout=_timeout(request),
    )
    plane.watchers[watcher] = None if is_spared(request) else asked_of(request)
    if version:
        await _reach(plane, version)
    return Answer(200, watcher, wanted.content_type)


async def _reach(plane: Plane, version: int) -> None:
    """Give a version that is still to come a moment; a watch may then wait for it as long as it likes."""
    if version > plane.store.version:
        await plane.store.wait_for(version, 3.0)


def _timeout(request: Request) -> float:
    seconds = request.number("timeoutSeconds")
    return float(seconds) if seconds and seconds > 0 else _DICE.uniform(_SHORTEST, _LONGEST)


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
        self._follower: Follower | None = None
        self._ended = False
        self._chunks = self._run()

    def push_to(self, sink: Sink) -> None:
        self._sink = sink

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        await self._chunks.aclose()

    def end(self) -> None:
        """End the stream, as cleanly as its timeout would."""
        self._ended = True
        if self._follower is not None:
            self._follower.end()

    async def _run(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of the stream, from the headers' being due to its clean end."""
        plane, kind, namespace = self._plane, self._target.kind, self._target.namespace or None
        version, voice = self._version, self._voice
        clock = asyncio.get_running_loop().time
        end = clock() + self._timeout
        retired = plane.registry.retirement(kind)
        # An offer may be turned down, and is then made again: the words have to be the same.
        offer = self._push if self._sink is not None and voice.repeats else None
        try:
            listing = plane.store.list(kind.bucket, namespace) if self._initial else None
            follower = plane.store.follow(listing.version if listing else version, kind.bucket, namespace)
            self._follower = follower
            if self._ended:
                follower.end()
            if listing is not None:
                for start in range(0, len(listing.rows), _INITIAL_SLICE):
                    if chunk := voice.existing(listing.rows[start : start + _INITIAL_SLICE]):
                        yield chunk
                if self._marks_end:
                    yield voice.bookmark(listing.version, {"k8s.io/initial-events-end": "true"})
            mark_at = self._next_mark(clock(), end)
            while (now := clock()) < end:
                if now >= mark_at:
                    yield voice.bookmark(follower.version)
                    mark_at = self._next_mark(now, end)
                wait = min(mark_at, end) - now
                # A kind that is no longer served as it was ends its watches soon, not at their timeout.
                events = await follower.next(min(wait, _LOOK_AT_KIND) if kind.custom else wait, offer)
                if events:
                    if chunk := voice.changes(events):
                        yield chunk
                elif events is None or retired.is_set():
                    return
        except Gone:
            yield error_line(words.expired(version, plane.store.compacted + 1))

    def _push(self, events: Sequence[Event]) -> bool:
        """Hand over what happened while nobody reads, without anybody's waking up for it."""
        assert self._sink is not None
        chunk = self._voice.changes(events)
        return not chunk or self._sink(chunk)

    def _next_mark(self, now: float, end: float) -> float:
        """Return when the next bookmark is due: regularly, and once more shortly before the end."""
        if not self._bookmarks or now >= end - _BEFORE_END:
            return end
        return min(now + _BOOKMARK_EVERY, end - _BEFORE_END)
