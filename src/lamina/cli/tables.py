"""Rows and columns, as everybody's terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return lines whose columns are as wide as what is in them."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in (head, *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


class Lines:
    """A table that is never finished: lines come one by one, and a column only ever gets wider."""

    def __init__(self, head: Sequence[str], widths: Sequence[int]) -> None:
        self._head: Sequence[str] | None = head
        self._widths = list(widths)

    def next(self, cells: Sequence[str]) -> str:
        """Return the next line, below the head of the table if it is the first."""
        rows = [cells] if self._head is None else [self._head, cells]
        self._head = None
        for row in rows:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, row, strict=True)]
        lines = [
            "   ".join(cell.ljust(width) for cell, width in zip(row, self._widths, strict=True))
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)
