"""Tables in the layout of kubectl: upper-case headers, columns as wide as their widest cell."""

from __future__ import annotations

from collections.abc import Sequence

_GAP = "   "


def table(header: Sequence[str], rows: Sequence[Sequence[str]], gap: str = _GAP) -> str:
    """Return the lines of a table; of a cell with several lines it has the first."""
    rows = [_first_lines(row) for row in rows]
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return "\n".join(_line(row, widths, gap) for row in (header, *rows))


class StreamingTable:
    """A table whose rows arrive one by one; a column grows with its widest cell so far."""

    def __init__(self, header: Sequence[str], widths: Sequence[int]) -> None:
        self._header: Sequence[str] | None = header
        self._widths = list(widths)

    def add(self, cells: Sequence[str]) -> str:
        """Return the line of the next row, below the header if it is the first."""
        cells = _first_lines(cells)
        rows = [cells] if self._header is None else [self._header, cells]
        self._header = None
        for row in rows:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, row, strict=True)]
        return "\n".join(_line(row, self._widths) for row in rows)


def _first_lines(row: Sequence[str]) -> Sequence[str]:
    return [cell.partition("\n")[0] for cell in row]


def _line(row: Sequence[str], widths: Sequence[int], gap: str = _GAP) -> str:
    return gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
