"""Prints the measurements of each server as a table with a row for each operation."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from bench.measured_server import Spent
from bench.run import QUIET
from tests.bed.server import Which


class Measured(Protocol):
    """One row; `spent` is None if the operation timed out."""

    @property
    def spent(self) -> Spent | None: ...

    @property
    def cells(self) -> tuple[str, ...]: ...


Row = TypeVar("Row", bound=Measured)


def report(
    what: str,
    servers: Sequence[Which],
    measure: Callable[[Which], Sequence[Row]],
    *,
    head: Sequence[str],
    growth: Callable[[Sequence[Row]], str],
) -> int:
    """Print a table for each server, and return an exit code: 1 if an operation timed out."""
    started, busy = time.monotonic(), os.getloadavg()[0]
    late = False
    for which in servers:
        print(f"{what} on the {which} server", flush=True)
        rows = measure(which)
        print(f"{table(head, rows)}\n{growth(rows)}\n", flush=True)
        late = late or any(row.spent is None for row in rows)
    print(f"{os.cpu_count()} processors, {time.monotonic() - started:.0f} s in all")
    if busy > QUIET:
        print(f"the machine was busy (load {busy:.1f}): these figures are not reliable")
    return 1 if late else 0


def table(head: Sequence[str], rows: Sequence[Measured]) -> str:
    """Return rows as text."""
    return aligned(head, *(row.cells for row in rows))


def aligned(head: Sequence[str], *lines: Sequence[str]) -> str:
    """Return lines of cells as text; a line may be shorter than the header."""
    whole = [head, *lines]
    widths = [max(len(line[place]) for line in whole if place < len(line)) for place in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip()
        for line in whole
    )


def servers(only: Which | None) -> tuple[Which, ...]:
    """Return which servers to measure."""
    return (only,) if only else ("real", "embedded")
