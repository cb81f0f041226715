"""
The rows of a bucket, sorted by namespace and name.

They are kept in chunks of a few hundred: an insert moves one chunk instead of all rows, and
a list is a few slices. docs/decisions/sorted_rows.md explains why this is not
`sortedcontainers`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from lamina.server.storage.store import Event, Key, Row


def path_of(namespace: str, name: str) -> str:
    """Return the sort key of a row; one string, so that the order is etcd's."""
    return f"{namespace}/{name}"


class SortedRows:
    """Rows by path. A new chunk has at most `size` rows, and is split at twice as many."""

    __slots__ = ("_lasts", "_paths", "_rows", "_size")

    def __init__(self, rows: Iterable[Row] = (), *, size: int = 512) -> None:
        self._size = size
        placed = [(path_of(row.key.namespace, row.key.name), row) for row in rows]
        placed.sort(key=lambda pair: pair[0])
        chunks = [placed[start : start + size] for start in range(0, len(placed), size)]
        # For each chunk: its paths, its rows, and its last path.
        self._paths = [[path for path, _ in each] for each in chunks]
        self._rows = [[row for _, row in each] for each in chunks]
        self._lasts = [each[-1][0] for each in chunks]

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def put(self, path: str, row: Row) -> None:
        """Insert a row, or replace the one of the same path."""
        if not self._lasts:
            self._paths, self._rows, self._lasts = [[path]], [[row]], [path]
            return
        chunk = bisect_left(self._lasts, path)
        if chunk == len(self._lasts):
            chunk -= 1
            self._lasts[chunk] = path
            index = len(self._paths[chunk])
        else:
            index = bisect_left(self._paths[chunk], path)
            if self._paths[chunk][index] == path:
                self._rows[chunk][index] = row
                return
        self._paths[chunk].insert(index, path)
        self._rows[chunk].insert(index, row)
        if len(self._rows[chunk]) >= 2 * self._size:
            self._split(chunk)

    def remove(self, path: str) -> None:
        chunk, index = self._find(path)
        paths = self._paths[chunk]
        del paths[index], self._rows[chunk][index]
        if not paths:
            del self._paths[chunk], self._rows[chunk], self._lasts[chunk]
        else:
            self._lasts[chunk] = paths[-1]

    def page(
        self, namespace: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[Sequence[Row], int]:
        """Return rows of one namespace or all, after a key and up to a limit, and how many remain."""
        first, end = "", ""
        if namespace is not None:
            first, end = f"{namespace}/", f"{namespace}0"  # "0" is the character after "/"
        if after is not None:
            first = max(first, path_of(*after) + "\0")
        if end and first >= end:
            return (), 0
        chunk, index = self._find(first)
        last_chunk, last_index = self._find(end) if end else (len(self._rows), 0)
        found = sum(map(len, self._rows[chunk:last_chunk])) + last_index - index
        wanted = min(found, limit) if limit > 0 else found
        rows: list[Row] = []
        while len(rows) < wanted:
            rows += self._rows[chunk][index : index + wanted - len(rows)]
            chunk, index = chunk + 1, 0
        return rows, found - wanted

    def undone(self, events: Sequence[Event]) -> SortedRows:
        """Return the rows before these events, which are the latest ones."""
        before: dict[Key, Row | None] = {}
        for event in events:
            before.setdefault(event.row.key, event.previous)
        rows = [row for chunk in self._rows for row in chunk if row.key not in before]
        rows += [row for row in before.values() if row is not None]
        return SortedRows(rows, size=self._size)

    def _find(self, path: str) -> tuple[int, int]:
        """Return chunk and index of the first row at or after a path."""
        chunk = bisect_left(self._lasts, path)
        return (chunk, bisect_left(self._paths[chunk], path)) if chunk < len(self._lasts) else (chunk, 0)

    def _split(self, chunk: int) -> None:
        paths, rows, half = self._paths[chunk], self._rows[chunk], self._size
        self._paths[chunk : chunk + 1] = [paths[:half], paths[half:]]
        self._rows[chunk : chunk + 1] = [rows[:half], rows[half:]]
        self._lasts.insert(chunk, paths[half - 1])
