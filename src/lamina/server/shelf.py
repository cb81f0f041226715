"""
Rows in order.

Kept in boxes of some hundred, so that putting one in moves a box and not the
whole shelf, and a list is a few slices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from lamina.server.store import Event, Key, Row


def path_of(namespace: str, name: str) -> str:
    """Return what rows are sorted by; one string, so that the order is etcd's."""
    return f"{namespace}/{name}"


class Shelf:
    """The rows of a bucket, by path. A box is made with `box` rows at most, and split when it has twice as many."""

    __slots__ = ("_box", "_lasts", "_paths", "_rows")

    def __init__(self, rows: Iterable[Row] = (), *, box: int = 512) -> None:
        self._box = box
        placed = [(path_of(row.key.namespace, row.key.name), row) for row in rows]
        placed.sort(key=lambda pair: pair[0])
        boxes = [placed[start : start + box] for start in range(0, len(placed), box)]
        # Box by box: the paths in it, the rows in it, and the last of its paths.
        self._paths = [[path for path, _ in each] for each in boxes]
        self._rows = [[row for _, row in each] for each in boxes]
        self._lasts = [each[-1][0] for each in boxes]

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def put(self, path: str, row: Row) -> None:
        """Put a row in its place, instead of the one that was there."""
        if not self._lasts:
            self._paths, self._rows, self._lasts = [[path]], [[row]], [path]
            return
        box = bisect_left(self._lasts, path)
        if box == len(self._lasts):
            box -= 1
            self._lasts[box] = path
            spot = len(self._paths[box])
        else:
            spot = bisect_left(self._paths[box], path)
            if self._paths[box][spot] == path:
                self._rows[box][spot] = row
                return
        self._paths[box].insert(spot, path)
        self._rows[box].insert(spot, row)
        if len(self._rows[box]) >= 2 * self._box:
            self._split(box)

    def remove(self, path: str) -> None:
        box, spot = self._find(path)
        paths = self._paths[box]
        del paths[spot], self._rows[box][spot]
        if not paths:
            del self._paths[box], self._rows[box], self._lasts[box]
        else:
            self._lasts[box] = paths[-1]

    def page(
        self, namespace: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[Sequence[Row], int]:
        """Return rows, of one namespace or all, after a name and up to a limit, and how many it cut off."""
        first, end = "", ""
        if namespace is not None:
            first, end = f"{namespace}/", f"{namespace}0"  # "0" is the character after "/"
        if after is not None:
            first = max(first, path_of(*after) + "\0")
        if end and first >= end:
            return (), 0
        box, spot = self._find(first)
        last_box, last_spot = self._find(end) if end else (len(self._rows), 0)
        found = sum(map(len, self._rows[box:last_box])) + last_spot - spot
        wanted = min(found, limit) if limit > 0 else found
        rows: list[Row] = []
        while len(rows) < wanted:
            rows += self._rows[box][spot : spot + wanted - len(rows)]
            box, spot = box + 1, 0
        return rows, found - wanted

    def undone(self, events: Sequence[Event]) -> Shelf:
        """Return the shelf as it was before these events, the last of which made it what it is."""
        before: dict[Key, Row | None] = {}
        for event in events:
            before.setdefault(event.row.key, event.previous)
        rows = [row for box in self._rows for row in box if row.key not in before]
        rows += [row for row in before.values() if row is not None]
        return Shelf(rows, box=self._box)

    def _find(self, path: str) -> tuple[int, int]:
        """Return the box and the spot of the first row that does not come before a path."""
        box = bisect_left(self._lasts, path)
        return (box, bisect_left(self._paths[box], path)) if box < len(self._lasts) else (box, 0)

    def _split(self, box: int) -> None:
        paths, rows, half = self._paths[box], self._rows[box], self._box
        self._paths[box : box + 1] = [paths[:half], paths[half:]]
        self._rows[box : box + 1] = [rows[:half], rows[half:]]
        self._lasts.insert(box, paths[half - 1])
