"""The benchmark of the two servers: alternating rounds, and a table of the medians."""

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Results, measure
from bench.table import alone, busiest_load, comparison, failures, middle
from tests.bed.server import Which

# A higher load before the start comes from other processes and distorts the comparison.
QUIET = 1.0


def compare(which: Sequence[Which], *, rounds: int, seconds: float, save: Path | None) -> int:
    """
    Measure the servers in alternating rounds, print the medians, and return an exit code.

    One server runs at a time. Rounds alternate, so that a slow minute of the machine
    affects both servers.
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
    # Of every round: a median hides a single failed round.
    trouble = [line for one, turns in passes.items() for results in turns for line in failures(results, one)]
    for line in trouble:
        print(line)
    spent = time.monotonic() - started
    print(f"\n{os.cpu_count()} processors, {rounds} rounds of {seconds:g} s a row, {spent:.0f} s in all")
    share = busiest_load([results for turns in passes.values() for results in turns])
    print(f"the load generator used at most {share:.0%} of one processor")
    if busy_before > QUIET:
        print(f"the machine was busy (load {busy_before:.1f}): these figures are not reliable")
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
