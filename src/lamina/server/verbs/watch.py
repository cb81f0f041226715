"""
Tell what changes, as it changes.

A watch is a cursor into the log: first, where asked for, what is there already;
then every change after it, in the order of the log, each once. Events are
written once for all watchers that see the same thing.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import orjson

from lamina.errors import ApiError, Gone
from lamina.server import words
from lamina.server.encoding import encode_stored
from lamina.server.kind import Kind
from lamina.server.negotiate import Wanted, negotiate
from lamina.server.plane import Plane, Target
from lamina.server.rendering import included, partial, shown, typed
from lamina.server.request import Answer, Request
from lamina.server.selection import Selection
from lamina.server.store import Event, Row
from lamina.server.tables import table
from lamina.server.verbs.list import check
from lamina.server.verbs.versions import version_of

_BOOKMARK_EVERY = 30.0
_BEFORE_END = 2.0
_SHORTEST, _LONGEST = 1800.0, 3600.0
_INITIAL_SLICE = 500
_LOOK_AT_KIND = 1.0
_SELECTORS = ("labelSelector", "fieldSelector")

Line = Callable[[str, bytes], bytes]
"""How one event looks on the wire, given its type and the object's JSON."""


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
    initial = request.parameter("sendInitialEvents")
    asked = initial.lower() == "true" if initial else not version
    bookmarks = request.flag("allowWatchBookmarks")
    stream = _Stream(
        plane,
        target,
        selection,
        _writer(plane, request, target.kind, wanted),
        shares=None if wanted.form == "Table" else (target, wanted.form, *map(request.parameter, _SELECTORS)),
        bookmarks=bookmarks,
        # A watch from nowhere that can take bookmarks is a streaming list in all but name.
        marks_end=asked and bookmarks,
        timeout=_timeout(request),
    )
    if version:
        await _reach(plane, version)
    return Answer(200, stream.run(version or 0, asked), wanted.content_type)


async def _reach(plane: Plane, version: int) -> None:
    """Give a version that is still to come a moment; a watch may then wait for it as long as it likes."""
    if version > plane.store.version:
        await plane.store.wait_for(version, 3.0)


def _timeout(request: Request) -> float:
    seconds = request.number("timeoutSeconds")
    return float(seconds) if seconds and seconds > 0 else random.uniform(_SHORTEST, _LONGEST)


class _Stream:
    """One watcher."""

    def __init__(
        self,
        plane: Plane,
        target: Target,
        selection: Selection,
        line: Line,
        *,
        shares: tuple[object, ...] | None,
        bookmarks: bool,
        marks_end: bool,
        timeout: float,
    ) -> None:
        self._plane = plane
        self._target = target
        self._selection = selection
        self._line = line
        self._shares = shares
        self._bookmarks = bookmarks
        self._marks_end = marks_end
        self._timeout = timeout

    async def run(self, version: int, initial: bool) -> AsyncIterator[bytes]:
        """Yield the bytes of the stream, from the headers' being due to its clean end."""
        plane, kind, namespace = self._plane, self._target.kind, self._target.namespace or None
        clock = asyncio.get_running_loop().time
        end = clock() + self._timeout
        retired = plane.registry.retirement(kind)
        try:
            listing = plane.store.list(kind.bucket, namespace) if initial else None
            follower = plane.store.follow(listing.version if listing else version, kind.bucket, namespace)
            if listing is not None:
                for start in range(0, len(listing.rows), _INITIAL_SLICE):
                    if chunk := self._initial(listing.rows[start : start + _INITIAL_SLICE]):
                        yield chunk
                if self._marks_end:
                    yield self._bookmark(listing.version, {"k8s.io/initial-events-end": "true"})
            mark_at = self._next_mark(clock(), end)
            while True:
                wait = max(min(mark_at, end) - clock(), 0.0)
                # A kind that is no longer served as it was ends its watches soon, not at their timeout.
                events = await follower.next(min(wait, _LOOK_AT_KIND) if kind.custom else wait)
                if events:
                    if chunk := self._changes(events):
                        yield chunk
                    continue
                now = clock()
                if events is None or now >= end or retired.is_set():
                    return
                if now >= mark_at:
                    yield self._bookmark(follower.version, None)
                    mark_at = self._next_mark(now, end)
        except Gone:
            yield _error_line(words.expired(version, plane.store.compacted + 1))

    def _next_mark(self, now: float, end: float) -> float:
        """Return when the next bookmark is due: regularly, and once more shortly before the end."""
        if not self._bookmarks or now >= end - _BEFORE_END:
            return end
        return min(now + _BOOKMARK_EVERY, end - _BEFORE_END)

    def _initial(self, rows: Sequence[Row]) -> bytes:
        kind, matches = self._target.kind, self._selection.matches
        everything = self._selection.everything
        return b"".join([self._line("ADDED", shown(kind, row)) for row in rows if everything or matches(row)])

    def _changes(self, events: Sequence[Event]) -> bytes:
        if self._shares is None:
            return self._lines(events)
        # Watchers who asked for the same see the same changes at the same moment: the bytes are made once.
        key = (self._shares, events[0].row.version, events[-1].row.version, len(events))
        chunk = self._plane.chunks.get(key)
        if chunk is None:
            chunk = self._plane.keep_chunk(key, self._lines(events))
        return chunk

    def _lines(self, events: Sequence[Event]) -> bytes:
        kind, line = self._target.kind, self._line
        if not self._selection.everything:
            return b"".join([self._selected(row, previous) for row, previous in events])
        return b"".join(
            [
                line(
                    "DELETED" if row.deleted else "ADDED" if previous is None else "MODIFIED",
                    shown(kind, row),
                )
                for row, previous in events
            ]
        )

    def _selected(self, row: Row, previous: Row | None) -> bytes:
        """Return an event as this selector sees it: entering is an addition, leaving is a deletion."""
        matches, kind = self._selection.matches, self._target.kind
        was = previous is not None and matches(previous)
        if row.deleted:
            return self._line("DELETED", shown(kind, row)) if was else b""
        if matches(row):
            return self._line("MODIFIED" if was else "ADDED", shown(kind, row))
        if previous is None or not was:
            return b""
        # What leaves is shown as it last matched, at the version that made it leave.
        left = orjson.loads(shown(kind, previous))
        left["metadata"]["resourceVersion"] = str(row.version)
        return self._line("DELETED", encode_stored(left))

    def _bookmark(self, version: int, annotations: dict[str, str] | None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        return self._line("BOOKMARK", orjson.dumps({"metadata": metadata}))


def _writer(plane: Plane, request: Request, kind: Kind, wanted: Wanted) -> Line:
    """Return how events are written: whole objects, metadata only, or rows of a table."""
    if wanted.form == "Table":
        return _table_writer(plane, request, kind)
    if wanted.form == "PartialObjectMetadata":
        return lambda event, value: _line(event, partial(value))
    prefix = kind.prefix
    openings = {
        event: f'{{"type":"{event}","object":'.encode() + prefix
        for event in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
    }
    return lambda event, value: openings[event] + value[1:] + b"}\n"


def _table_writer(plane: Plane, request: Request, kind: Kind) -> Line:
    include = included(request)
    first = True

    def line(event: str, value: bytes) -> bytes:
        nonlocal first
        obj = typed(kind, orjson.loads(value))
        if event == "BOOKMARK":
            shown_table = table(kind, [], plane.now(), include=include)
            shown_table["metadata"] = obj["metadata"]
        else:
            shown_table = table(kind, [obj], plane.now(), include=include)
            shown_table["metadata"] = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        if not first:
            # Column definitions are said once a stream.
            shown_table["columnDefinitions"] = None
        first = False
        return _line(event, orjson.dumps(shown_table))

    return line


def _line(event: str, value: bytes) -> bytes:
    return f'{{"type":"{event}","object":'.encode() + value + b"}\n"


def _error_line(error: ApiError) -> bytes:
    return _line("ERROR", orjson.dumps(error.status()))
