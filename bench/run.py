"""The whole benchmark: rounds over one server and the other, and the table at the end."""

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Results, measure
from bench.table import alone, busiest_load, comparison, failures, middle
from tests.bed.server import Which

# A load above this before we start is somebody else's, and hits the two servers unequally.
QUIET = 1.0


def compare(which: Sequence[Which], *, rounds: int, seconds: float, save: Path | None) -> int:
    """
    Measure the servers named in turn, print the medians, and return an exit code.

    Only one server runs at a time, so that each has the machine to itself, and
    the turns alternate, so that a slow minute of the machine hits both.
    """
    started = time.monotonic()
    busy_before = os.getloadavg()[0]
    passes: dict[Which, list[Results]] = {one: [] for one in which}
    for number in range(1, rounds + 1):
        for one in which:
            print(f"round {number} of {rounds}: {one}", flush=True)
            passes[one].append(measure(one, seconds=seconds))
    medians = {one: middle(results) for one, results in passes.items()}
    print()
    if len(medians) == 2:
        print(comparison(medians["real"], medians["embedded"]))
    else:
        for one, results in medians.items():
            print(alone(results, one))
    # Of every round: a median would forgive a round that went wrong.
    trouble = [line for one, turns in passes.items() for results in turns for line in failures(results, one)]
    for line in trouble:
        print(line)
    spent = time.monotonic() - started
    print(f"\n{os.cpu_count()} processors, {rounds} rounds of {seconds:g} s a row, {spent:.0f} s in all")
    share = busiest_load([results for turns in passes.values() for results in turns])
    print(f"the load generator never used more than {share:.0%} of one processor")
    if busy_before > QUIET:
        print(f"the machine was busy with other things (load {busy_before:.1f}): these figures prove nothing")
    if save:
        machine = {
            "processors": os.cpu_count(),
            "system": platform.platform(),
            "load_before": busy_before,
        }
        save.write_text(
            json.dumps({"machine": machine, "medians": medians, "rounds": passes}, indent=2) + "\n"
        )
    return 1 if trouble else 0
