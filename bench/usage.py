"""Processor time and memory of processes, read from /proc."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def process_tree(pids: Iterable[int]) -> list[int]:
    """Return processes with all of their running descendants."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            waiting += map(int, children.read_text().split())
    return found


def processor_seconds(pids: Sequence[int]) -> float:
    """Return the processor time that the processes and their children have used."""
    return sum(_ticks(pid) for pid in process_tree(pids)) / TICKS


def resident_bytes(pids: Sequence[int]) -> int:
    """Return the memory that the processes and their children hold."""
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in process_tree(pids)) * PAGE


def _ticks(pid: int) -> int:
    # The name of the program comes in brackets and may hold anything, brackets and spaces included.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])
