"""
One bucket of the log in memory: what it holds now, and what changed in it lately.

A row does not point at the row before it; an event does. So what an object
used to be lives exactly as long as the event that changed it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.errors import Gone
from lamina.server.shelf import Shelf, path_of
from lamina.server.store import Event, Row

if TYPE_CHECKING:
    from lamina.server.follower import Reader


class Window(Struct, frozen=True, kw_only=True):
    """
    How much history one bucket keeps in memory at most, however seldom the log is compacted.

    Beyond either bound the oldest quarter is dropped, and whoever is that far
    behind is told that it is gone. The file keeps its rows until the log is compacted.
    """

    events: int = 100_000
    bytes: int = 64 * 1024 * 1024


class History:
    """
    The latest events of a bucket, oldest first.

    An event keeps its position for good: `base` counts those dropped in front
    of the first one kept. Everything after version `floor` is here.
    """

    __slots__ = ("_stale", "_stale_since", "_window", "base", "events", "floor", "size", "versions")

    def __init__(self, window: Window, floor: int) -> None:
        self.events: list[Event] = []
        self.versions: list[int] = []
        self.base = 0
        self.floor = floor
        self.size = 0
        self._window = window
        # Rows that dropped events made superfluous, and since which version
        # they are. They go from the file when the log is compacted that far.
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
            self._make_room()

    def position(self, version: int) -> int:
        """Return the position of the first event after a version."""
        if version < self.floor:
            raise Gone(f"too old resource version: {version} ({self.floor})")
        return self.base + bisect_right(self.versions, version)

    def after(self, version: int) -> list[Event]:
        """Return the events after a version."""
        return self.events[self.position(version) - self.base :]

    def compact(self, before: int) -> Sequence[int]:
        """Drop the events up to and including a version; return which rows are superfluous now."""
        self._drop(bisect_right(self.versions, before))
        self.floor = max(self.floor, before)
        count = bisect_right(self._stale_since, before)
        stale = self._stale[:count]
        del self._stale[:count], self._stale_since[:count]
        return stale

    def _make_room(self) -> None:
        # A quarter at a time: cutting the front off a list moves all the rest.
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
    """What one bucket holds, what changed in it, and who waits for the next change."""

    __slots__ = ("history", "shelf", "waiting")

    def __init__(self, window: Window, floor: int) -> None:
        self.shelf = Shelf()
        self.history = History(window, floor)
        # By the namespace they follow, None for all: a change in one namespace
        # costs nothing to the readers of another.
        self.waiting: dict[str | None, set[Reader]] = {}

    def publish(self, row: Row, previous: Row | None) -> None:
        """Take in a committed row, and wake who waits for it."""
        key = row.key
        path = path_of(key.namespace, key.name)
        if row.deleted:
            self.shelf.remove(path)
        else:
            self.shelf.put(path, row)
        self.history.add(Event(row, previous))
        if self.waiting:
            position = self.history.end - 1
            for namespace in (None, key.namespace):
                for reader in self.waiting.pop(namespace, ()):
                    reader.rouse(position)

    def at(self, version: int) -> Shelf:
        """Return what the bucket held at a version: the shelf itself when nothing changed since."""
        events = self.history.after(version)
        return self.shelf.undone(events) if events else self.shelf
