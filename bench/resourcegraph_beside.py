"""
kro and ours in alternating rounds: `python -m bench.resourcegraph_beside`.

Both run on a new real server each time, without client rate limits, with the same graph
and the same operations. Requests are counted at the server. An operation ends with the
last request before all children have their values and all instances are active.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, TypeAlias

from bench.counted_run import until
from bench.measured_server import BenchRequest, MeasuredServer, Spent, running
from bench.report import aligned
from bench.resourcegraph import (
    ABOUT,
    DEFINITIONS,
    FLICKERING,
    FLICKERS,
    IDLE,
    INSTANCES,
    MAPS,
    NODES,
    Population,
    chain,
    edited,
    flicker,
    instance,
    redefined,
)
from bench.run import QUIET
from bench.usage import processor_seconds
from tests.bed.build import KRO
from tests.bed.kro import kro
from tests.bed.processes import end_tidily_on_signals
from tests.bed.real import real_server
from tests.bed.server import Server

Side: TypeAlias = Callable[[Server], AbstractContextManager[int]]
_STEP = 20
"""Resolution at which the processor time is compared, to detect that a controller is idle."""
_REVISIONS = ("graphrevisions", "graphrevisions/status")
HEAD = ("", "seconds", "requests", "writes", "CPU s", "MiB", "server CPU s")


@contextmanager
def ours(server: Server) -> Iterator[int]:
    """`lamina run`."""
    with running(server, "resourcegraph") as pid:
        yield pid


SIDES: Mapping[str, Side] = {"kro": kro, "ours": ours}


@contextmanager
def staged(server: Server, side: Side) -> Iterator[MeasuredServer]:
    """Start one of the controllers on a server."""
    with side(server) as pid:
        yield MeasuredServer(server, pid, (*ABOUT, *_REVISIONS), partial(_used, pid))


def _used(pid: int) -> int:
    return int(processor_seconds([pid]) * _STEP)


def round_of(side: Side, size: int) -> dict[str, Spent]:
    """Return the cost of each operation on a new server."""
    with real_server() as server:
        with staged(server, side) as target:
            taken = _operations(target, size)
        taken["a restart"] = _restarted(server, side)
        return taken


def _operations(target: MeasuredServer, size: int) -> dict[str, Spent]:
    population = Population(target, size)
    target.send(BenchRequest("POST", DEFINITIONS, chain()))
    until(target, lambda: _status(target.get(f"{DEFINITIONS}/chain", "GET chain")).get("state") == "Active")
    target.until_quiet()
    taken = {
        "from nothing": _spent(population, instance, size, ("one", "1")),
        "an edit of all": _spent(population, edited, size, ("two", "1")),
        "an edit of the definition": _spent(population, redefined, 1, ("two", "2")),
    }
    since = target.mark()
    target.send_each(FLICKERS, flicker, apart=FLICKERING)
    ended = time.monotonic()
    target.until_quiet()
    taken[f"one child {FLICKERS} times"] = target.spent(since, until=ended)
    since = target.mark()
    time.sleep(IDLE)
    taken["idle"] = target.spent(since)
    return taken


def _restarted(server: Server, side: Side) -> Spent:
    """Start the controllers again where nothing is left to do, until they have no more work."""
    before = MeasuredServer(server, os.getpid(), (*ABOUT, *_REVISIONS), int)
    since = before.mark()
    with staged(server, side) as target:
        # Both list all instances first; without a request they have not started yet.
        until(target, lambda: target.requests() != since.requests)
        target.until_quiet()
        return target.spent(replace(since, processor=0.0))


def _spent(
    population: Population, ask: Callable[[int], BenchRequest], many: int, wanted: tuple[str, str]
) -> Spent:
    target = population.target
    since = target.mark()
    target.send_each(many, ask)
    ended = until(population.target, lambda: _is_settled(population, *wanted))
    target.until_quiet()
    return target.spent(since, until=ended)


def _is_settled(population: Population, value: str, definition: str) -> bool:
    """Say whether all children have their values, and all instances are active."""
    maps = population.target.get(f"{MAPS}?labelSelector=kro.run/node-id", "LIST configmaps")["items"]
    wanted = {"value": value, "definition": definition}
    if len(maps) < population.instances * NODES or any(one["data"] != wanted for one in maps):
        return False
    instances = population.target.get(INSTANCES, "LIST chains")["items"]
    return all(_status(one).get("state") == "ACTIVE" for one in instances)


def _status(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return obj.get("status") or {}


def lines(rounds: Mapping[str, Sequence[Mapping[str, Spent]]]) -> Iterator[Sequence[str]]:
    """Yield the medians of both, and their ratios."""
    for work in rounds["ours"][0]:
        middles = {name: _middle([one[work] for one in those]) for name, those in rounds.items()}
        for name, figures in middles.items():
            yield (f"{work}, {name}", *(f"{figure:,.1f}" for figure in figures))
        pairs = zip(middles["kro"], middles["ours"], strict=True)
        yield ("    better by", *(f"{theirs / our:.2f}x" if our else "" for theirs, our in pairs))


def _middle(spent: Sequence[Spent]) -> tuple[float, ...]:
    figures = (
        (one.seconds, one.requests.total(), one.writes, one.processor, one.resident / 2**20, one.served)
        for one in spent
    )
    return tuple(median(column) for column in zip(*figures, strict=True))


def main() -> int:
    """Print a table for each number of instances."""
    parser = argparse.ArgumentParser(prog="python -m bench.resourcegraph_beside", description=__doc__)
    parser.add_argument(
        "--sizes", nargs="*", type=int, default=[100, 500], metavar="N", help="number of instances"
    )
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="rounds of each")
    asked = parser.parse_args()
    end_tidily_on_signals()
    busy = os.getloadavg()[0]
    for size in asked.sizes:
        taken: dict[str, list[Mapping[str, Spent]]] = {name: [] for name in SIDES}
        for number in range(asked.rounds):
            for name, side in SIDES.items():
                print(f"  {size:,} instances, round {number + 1}, {name}", file=sys.stderr, flush=True)
                taken[name].append(round_of(side, size))
        print(
            f"kro {KRO.version} and Lamina on a real server, {size:,} instances, {asked.rounds} rounds each"
        )
        print(aligned(HEAD, *lines(taken)), flush=True)
    if busy > QUIET:
        print(f"the machine was busy (load {busy:.1f}): these figures are not reliable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
