"""
A writer that is killed, and what the log must contain afterwards.

Run as a program it opens a store and writes concurrently, and prints a line per acknowledged
write: version, name, and `put` or `drop`. It never ends by itself.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from lamina.errors import NotFound
from lamina.server.storage.sqlite import SqliteStore
from lamina.server.storage.store import Key

WRITERS = 16


@dataclass
class Ledger:
    """What was acknowledged or read so far, over all runs of the store."""

    acknowledged: dict[int, tuple[str, str]] = field(default_factory=dict)
    compacted: int = 0


async def kill_under_load(data_dir: Path, *, rounds: int) -> None:
    """Repeatedly run a writer, kill it, and check the log."""
    ledger = Ledger()
    for life in range(rounds):
        fresh = await asyncio.to_thread(_live_and_die, data_dir, seed=life, lines=50 + life * 37 % 400)
        for version, name, what in fresh:
            assert version not in ledger.acknowledged, f"version {version} was used twice"
            ledger.acknowledged[version] = (name, what)
        await _look(data_dir, ledger)


def _live_and_die(data_dir: Path, *, seed: int, lines: int) -> list[tuple[int, str, str]]:
    """Return what a writer acknowledged until it was killed, some time after so many lines."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.torture.kill", str(data_dir), str(seed)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(lines)]
        os.kill(writer.pid, signal.SIGKILL)
        said += writer.stdout.readlines()
        assert writer.wait() == -signal.SIGKILL
    fresh = []
    for line in said:
        if line.endswith("\n"):  # the last one may be half a line
            version, name, what = line.split()
            fresh.append((int(version), name, what))
    assert len(fresh) >= lines - 1
    return fresh


async def _look(data_dir: Path, ledger: Ledger) -> None:
    """Check what is in the log when it is opened, and compact it now and then."""
    store = SqliteStore.open(data_dir)
    try:
        newest = max(ledger.acknowledged)
        assert store.version >= newest
        last: dict[str, int] = {}
        for version in sorted(ledger.acknowledged):
            last[ledger.acknowledged[version][0]] = version
        for name, version in last.items():
            row = store.get(Key("things", "", name))
            if row is None or row.version < version:
                # A later write may have been committed but not acknowledged; an earlier one may not.
                later = [
                    event.row
                    for event in store.since(store.compacted, "things")
                    if event.row.key.name == name
                ]
                gone = ledger.acknowledged[version][1] == "drop" and version <= store.compacted
                assert gone or (later and later[-1].version >= version), f"{name} lost version {version}"
        # Every acknowledged change since the compaction is in the history: a watch resumes.
        seen = {event.row.version: event.row for event in store.since(store.compacted, "things")}
        for version, (name, what) in ledger.acknowledged.items():
            if version > store.compacted:
                assert (seen[version].key.name, seen[version].deleted) == (name, what == "drop")
        assert store.compacted >= ledger.compacted
        if len(ledger.acknowledged) % 3 == 0:
            store.compact(newest - 20)
        ledger.compacted = store.compacted
        # What was written without acknowledgment is known from now on, and must not change either.
        for version, row in seen.items():
            ledger.acknowledged.setdefault(version, (row.key.name, "drop" if row.deleted else "put"))
    finally:
        await store.close()


async def _write_for_ever(data_dir: Path, seed: int) -> None:
    store = SqliteStore.open(data_dir)
    out = sys.stdout

    async def write(side: int) -> None:
        chance = random.Random(f"{seed}-{side}")
        count = 0
        while True:
            count += 1
            key = Key("things", "", f"{side}-{chance.randrange(20)}")
            obj = {"metadata": {"name": key.name}, "text": "x" * chance.choice((10, 1_000, 9_000))}
            what = "drop" if chance.random() < 0.2 else "put"
            try:
                row = await store.append(key, obj, deleted=what == "drop")
            except NotFound:
                continue
            out.write(f"{row.version} {key.name} {what}\n")
            out.flush()
            if side == 0 and count % 50 == 0:
                store.compact(row.version - 100)

    async with asyncio.TaskGroup() as writers:
        for side in range(WRITERS):
            writers.create_task(write(side))


if __name__ == "__main__":
    asyncio.run(_write_for_ever(Path(sys.argv[1]), int(sys.argv[2])))
