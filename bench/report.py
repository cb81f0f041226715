"""What was measured on each server, as tables: one row for each piece of work."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from bench.run import QUIET
from bench.story import Spent
from tests.bed.server import Which


class Measured(Protocol):
    """One row. `spent` is None where the work was not done in time."""

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
    """Print a table a server, and return an exit code: whether everything was done in time."""
    started, busy = time.monotonic(), os.getloadavg()[0]
    late = False
    for which in servers:
        print(f"{what} on the {which} server", flush=True)
        rows = measure(which)
        print(f"{table(head, rows)}\n{growth(rows)}\n", flush=True)
        late = late or any(row.spent is None for row in rows)
    print(f"{os.cpu_count()} processors, {time.monotonic() - started:.0f} s in all")
    if busy > QUIET:
        print(f"the machine was busy with other things (load {busy:.1f}): these figures prove nothing")
    return 1 if late else 0


def table(head: Sequence[str], rows: Sequence[Measured]) -> str:
    """Return rows as text."""
    return aligned(head, *(row.cells for row in rows))


def aligned(head: Sequence[str], *lines: Sequence[str]) -> str:
    """Return lines of cells as text; a line may be shorter than the head."""
    whole = [head, *lines]
    widths = [max(len(line[place]) for line in whole if place < len(line)) for place in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip()
        for line in whole
    )


def servers(only: Which | None) -> tuple[Which, ...]:
    """Return which servers to measure."""
    return (only,) if only else ("real", "embedded")
