"""
Encodes watch events, and shares the bytes between identical watches.

Watches with the same kind, namespace, selectors and representation share one
encoder, so each event is encoded once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from lamina.errors import ApiError
from lamina.server.codec.negotiate import Representation
from lamina.server.codec.response import include_object, partial, typed, versioned_json
from lamina.server.codec.selectors import Selection
from lamina.server.codec.tables import table
from lamina.server.http.request import Request
from lamina.server.kinds.kind import Kind
from lamina.server.storage.encoding import encode_stored
from lamina.server.storage.store import Event, Row

_CACHED = 8
"""Number of cached chunks; watches that share an encoder are at nearly the same version."""
_MAX_CACHED_BYTES = 256 * 1024
"""Size up to which a chunk is cached: a larger one is mostly a single watch that catches up."""


class WatchEncoder:
    """
    Encodes the events of a selection, with complete objects.

    `repeats` is whether the same event is encoded to the same bytes every time.
    """

    repeats = True

    def __init__(self, kind: Kind, selection: Selection) -> None:
        self._kind = kind
        self._selection = selection
        self._cache: dict[tuple[int, int], bytes] = {}
        self._prefixes = _prefixes(kind.prefix)

    def changes(self, events: Sequence[Event]) -> bytes:
        """Return the events that match the selection, encoded; empty if none does."""
        # All watches of an encoder have the same namespace, so the events between two versions are the same
        # for each of them.
        span = (events[0].row.version, events[-1].row.version)
        encoded = self._cache.get(span)
        if encoded is None:
            encoded = self._lines(events)
            if len(encoded) <= _MAX_CACHED_BYTES:
                if len(self._cache) >= _CACHED:
                    self._cache.clear()
                self._cache[span] = encoded
        return encoded

    def existing(self, rows: Sequence[Row]) -> bytes:
        """Return the existing objects as ADDED events."""
        kind, matches = self._kind, self._selection.matches
        everything = self._selection.everything
        return b"".join(
            [self._line("ADDED", versioned_json(kind, row)) for row in rows if everything or matches(row)]
        )

    def bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        """Return a BOOKMARK event."""
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        return self._line("BOOKMARK", orjson.dumps({"metadata": metadata}))

    def _lines(self, events: Sequence[Event]) -> bytes:
        kind, line = self._kind, self._line
        if not self._selection.everything:
            return b"".join([self._selected_line(row, previous) for row, previous in events])
        return b"".join(
            [
                line(
                    "DELETED" if row.deleted else "ADDED" if previous is None else "MODIFIED",
                    versioned_json(kind, row),
                )
                for row, previous in events
            ]
        )

    def _selected_line(self, row: Row, previous: Row | None) -> bytes:
        """Return an event as the selector turns it: an object that begins to match is ADDED, one that stops is DELETED."""
        matches, kind = self._selection.matches, self._kind
        matched = previous is not None and matches(previous)
        if row.deleted:
            return self._line("DELETED", versioned_json(kind, row)) if matched else b""
        if matches(row):
            return self._line("MODIFIED" if matched else "ADDED", versioned_json(kind, row))
        if previous is None or not matched:
            return b""
        # The DELETED event has the last matching object, at the version in which it stopped matching.
        last_match = orjson.loads(versioned_json(kind, previous))
        last_match["metadata"]["resourceVersion"] = str(row.version)
        return self._line("DELETED", encode_stored(last_match))

    def _line(self, event: str, value: bytes) -> bytes:
        """Return one line, given the event's type and the object's JSON."""
        return self._prefixes[event] + value[1:] + b"}\n"


@lru_cache(maxsize=1024)
def _prefixes(prefix: bytes) -> Mapping[str, bytes]:
    """Return the beginning of each event type's line; cached per kind."""
    return {
        event: f'{{"type":"{event}","object":'.encode() + prefix
        for event in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
    }


class _MetadataEncoder(WatchEncoder):
    """Encodes only the metadata of objects."""

    def _line(self, event: str, value: bytes) -> bytes:
        return _line(event, partial(value))


class _TableEncoder(WatchEncoder):
    """Encodes table rows; the first event has the column definitions, so it is never shared."""

    repeats = False

    def __init__(self, kind: Kind, selection: Selection, now: Callable[[], datetime], include: str) -> None:
        super().__init__(kind, selection)
        self._now = now
        self._include = include
        self._first = True

    def changes(self, events: Sequence[Event]) -> bytes:
        return self._lines(events)

    def _line(self, event: str, value: bytes) -> bytes:
        kind, now = self._kind, self._now()
        obj = typed(kind, orjson.loads(value))
        if event == "BOOKMARK":
            shown_table = table(kind, [], now, include=self._include)
            shown_table["metadata"] = obj["metadata"]
        else:
            shown_table = table(kind, [obj], now, include=self._include)
            shown_table["metadata"] = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        if not self._first:
            shown_table["columnDefinitions"] = None
        self._first = False
        return _line(event, orjson.dumps(shown_table))


def encoder_for(
    encoders: MutableMapping[tuple[object, ...], WatchEncoder],
    now: Callable[[], datetime],
    request: Request,
    kind: Kind,
    place: tuple[str, str],
    selection: Selection,
    wanted: Representation,
) -> WatchEncoder:
    """Return the encoder for a watch of a kind in a namespace, or of one name."""
    if wanted.form == "Table":
        return _TableEncoder(kind, selection, now, include_object(request))
    key = (kind, place, wanted.form, request.parameter("labelSelector"), request.parameter("fieldSelector"))
    encoder = encoders.get(key)
    if encoder is None:
        encoder_class = _MetadataEncoder if wanted.form == "PartialObjectMetadata" else WatchEncoder
        encoder = encoders[key] = encoder_class(kind, selection)
    return encoder


def error_line(error: ApiError) -> bytes:
    """Return the ERROR event that ends a watch."""
    return _line("ERROR", orjson.dumps(error.status()))


def _line(event: str, value: bytes) -> bytes:
    return f'{{"type":"{event}","object":'.encode() + value + b"}\n"
