"""
One bucket of the log in memory: its current rows, and its latest events.

A row does not refer to the row before it; an event does. So a previous row is kept exactly
as long as the event that replaced it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.errors import Gone
from lamina.server.storage.sorted_rows import SortedRows, path_of
from lamina.server.storage.store import Event, Row

if TYPE_CHECKING:
    from lamina.server.storage.watch_cursor import WatchCursor


class Window(Struct, frozen=True, kw_only=True):
    """
    The limits of one bucket's history in memory, independent of compaction.

    Beyond either limit the oldest quarter is dropped, and a reader that is further behind
    gets Gone. The file keeps its rows until compaction.
    """

    events: int = 100_000
    bytes: int = 64 * 1024 * 1024


class History:
    """
    The latest events of a bucket, oldest first.

    The position of an event is fixed: `base` counts the events that were dropped. All
    events after version `floor` are present.
    """

    __slots__ = ("_stale", "_stale_since", "_window", "base", "events", "floor", "size", "versions")

    def __init__(self, window: Window, floor: int) -> None:
        self.events: list[Event] = []
        self.versions: list[int] = []
        self.base = 0
        self.floor = floor
        self.size = 0
        self._window = window
        # Rows that dropped events replaced, and the version that replaced them. They are erased from
        # the file when the log is compacted up to that version.
        self._stale = array("q")
        self._stale_since = array("q")

    @property
    def end(self) -> int:
        """Return the position of the next event."""
        return self.base + len(self.events)

    def add(self, event: Event) -> None:
        self.events.append(event)
        self.versions.append(event.row.version)
        self.size += len(event.row.value)
        if len(self.events) > self._window.events or self.size > self._window.bytes:
            self._shrink()

    def position(self, version: int) -> int:
        """Return the position of the first event after a version."""
        if version < self.floor:
            raise Gone(f"too old resource version: {version} ({self.floor})")
        return self.base + bisect_right(self.versions, version)

    def after(self, version: int) -> list[Event]:
        """Return the events after a version."""
        return self.events[self.position(version) - self.base :]

    def compact(self, before: int) -> Sequence[int]:
        """Drop the events up to and including a version; return the rows to erase."""
        self._drop(bisect_right(self.versions, before))
        self.floor = max(self.floor, before)
        count = bisect_right(self._stale_since, before)
        stale = self._stale[:count]
        del self._stale[:count], self._stale_since[:count]
        return stale

    def _shrink(self) -> None:
        # A quarter at a time, because removing the front of a list moves the rest.
        count = max(1, len(self.events) // 4)
        size = self.size - sum(len(event.row.value) for event in self.events[:count])
        while size > self._window.bytes and count < len(self.events):
            size -= len(self.events[count].row.value)
            count += 1
        self._drop(count)

    def _drop(self, count: int) -> None:
        if not count:
            return
        for event in self.events[:count]:
            self.size -= len(event.row.value)
            if event.previous is not None:
                self._stale.append(event.previous.version)
                self._stale_since.append(event.row.version)
            if event.row.deleted:
                self._stale.append(event.row.version)
                self._stale_since.append(event.row.version)
        self.floor = max(self.floor, self.versions[count - 1])
        del self.events[:count], self.versions[:count]
        self.base += count


class Bucket:
    """The current rows and events of a bucket, and the readers that wait for the next event."""

    __slots__ = ("history", "rows", "waiting")

    def __init__(self, window: Window, floor: int) -> None:
        self.rows = SortedRows()
        self.history = History(window, floor)
        # By namespace, None for all: a change in one namespace costs nothing for readers of
        # another.
        self.waiting: dict[str | None, set[WatchCursor]] = {}

    def publish(self, row: Row, previous: Row | None) -> None:
        """Add a committed row, and wake the readers that wait for it."""
        key = row.key
        path = path_of(key.namespace, key.name)
        if row.deleted:
            self.rows.remove(path)
        else:
            self.rows.put(path, row)
        self.history.add(Event(row, previous))
        if self.waiting:
            position = self.history.end - 1
            for namespace in (None, key.namespace):
                for reader in self.waiting.pop(namespace, ()):
                    reader.resume(position)

    def at(self, version: int) -> SortedRows:
        """Return the rows at a version: the current ones if nothing changed since."""
        events = self.history.after(version)
        return self.rows.undone(events) if events else self.rows
