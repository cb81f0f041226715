"""
How changes sound on the wire: the lines of a watch.

Watchers who asked for the same hear the same voice, so what it says is put
into words once, however many listen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from lamina.errors import ApiError
from lamina.server.encoding import encode_stored
from lamina.server.kind import Kind
from lamina.server.negotiate import Wanted
from lamina.server.plane import Plane
from lamina.server.rendering import included, partial, shown, typed
from lamina.server.request import Request
from lamina.server.selection import Selection
from lamina.server.store import Event, Row
from lamina.server.tables import table

_REMEMBERED = 8
"""How many utterances a voice remembers: those that listen are at nearly the same place."""
_LONGEST = 256 * 1024
"""How long they may be: what is longer is mostly somebody's catching up, alone."""


class Voice:
    """
    Says what happens to the objects of a selection, whole.

    `repeats` says whether the same is said in the same words a second time.
    """

    repeats = True

    def __init__(self, kind: Kind, selection: Selection) -> None:
        self._kind = kind
        self._selection = selection
        self._said: dict[tuple[int, int], bytes] = {}
        self._openings = _openings(kind.prefix)

    def changes(self, events: Sequence[Event]) -> bytes:
        """Return what happened, empty if nothing of it concerns the selection."""
        # All who share a voice follow the same namespace: what happened from
        # one version to another is the same for each of them.
        span = (events[0].row.version, events[-1].row.version)
        said = self._said.get(span)
        if said is None:
            said = self._lines(events)
            if len(said) <= _LONGEST:
                if len(self._said) >= _REMEMBERED:
                    self._said.clear()
                self._said[span] = said
        return said

    def existing(self, rows: Sequence[Row]) -> bytes:
        """Return what is there already."""
        kind, matches = self._kind, self._selection.matches
        everything = self._selection.everything
        return b"".join([self._line("ADDED", shown(kind, row)) for row in rows if everything or matches(row)])

    def bookmark(self, version: int, annotations: dict[str, str] | None = None) -> bytes:
        """Return a line that says how far the watch is, and nothing else."""
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        return self._line("BOOKMARK", orjson.dumps({"metadata": metadata}))

    def _lines(self, events: Sequence[Event]) -> bytes:
        kind, line = self._kind, self._line
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
        matches, kind = self._selection.matches, self._kind
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

    def _line(self, event: str, value: bytes) -> bytes:
        """Return one event, given its type and the object's JSON."""
        return self._openings[event] + value[1:] + b"}\n"


@lru_cache(maxsize=1024)
def _openings(prefix: bytes) -> Mapping[str, bytes]:
    """Return how lines about a kind begin: the same wherever it is spoken of."""
    return {
        event: f'{{"type":"{event}","object":'.encode() + prefix
        for event in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
    }


class _PartialVoice(Voice):
    """Says of each object its metadata only."""

    def _line(self, event: str, value: bytes) -> bytes:
        return _line(event, partial(value))


class _TableVoice(Voice):
    """Says rows of a table; the columns are named once, so nobody else can listen."""

    repeats = False

    def __init__(self, kind: Kind, selection: Selection, plane: Plane, include: str) -> None:
        super().__init__(kind, selection)
        self._plane = plane
        self._include = include
        self._first = True

    def changes(self, events: Sequence[Event]) -> bytes:
        return self._lines(events)

    def _line(self, event: str, value: bytes) -> bytes:
        kind, now = self._kind, self._plane.now()
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


def voice_for(
    plane: Plane, request: Request, kind: Kind, place: tuple[str, str], selection: Selection, wanted: Wanted
) -> Voice:
    """Return the voice in which a request wants to hear of a kind in a place, a namespace and a name."""
    if wanted.form == "Table":
        return _TableVoice(kind, selection, plane, included(request))
    asked = (kind, place, wanted.form, request.parameter("labelSelector"), request.parameter("fieldSelector"))
    voice = plane.voices.get(asked)
    if voice is None:
        speaks = _PartialVoice if wanted.form == "PartialObjectMetadata" else Voice
        voice = plane.voices[asked] = speaks(kind, selection)
    return voice


def error_line(error: ApiError) -> bytes:
    """Return the line that ends a watch with an error."""
    return _line("ERROR", orjson.dumps(error.status()))


def _line(event: str, value: bytes) -> bytes:
    return f'{{"type":"{event}","object":'.encode() + value + b"}\n"
