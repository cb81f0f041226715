"""
The cost of clusters: `python -m bench.clusters`.

Many clusters of one server, each with its actors and its agent: memory, the time to
add and to remove one, and the processor time while idle. And the cluster of the test
fixture, with all modules loaded: the time until it is ready, and until it has
handled a first request and is stopped.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from bench.run import QUIET
from bench.usage import processor_seconds, resident_bytes
from lamina.testing import Cluster
from lamina.testing.builders import config_map
from tests.bed.embedded import embedded_server
from tests.bed.processes import end_tidily_on_signals, until
from tests.bed.server import Server
from tests.bed.trouble import BedError
from tests.bed.wire import Api

COUNT = 100
IDLE = 10.0
TRIES = 30
_KNOWN = "/apis/cluster.open-cluster-management.io/v1/managedclusters"


class Row(NamedTuple):
    """One row; an aim is a maximum."""

    label: str
    value: float
    unit: str
    aim: float | None = None

    @property
    def is_short(self) -> bool:
        return self.aim is not None and self.value > self.aim


def many(count: int) -> list[Row]:
    """Return the cost of a number of clusters of one server."""
    with embedded_server(pods=True) as server:
        api = server.api()
        before = resident_bytes(server.pids)
        used = processor_seconds(server.pids)
        adding = [_timed(api, "PUT", f"/clusters/c{number}", 201) for number in range(count)]
        until(
            "every cluster had its node, its first account and its agent",
            lambda: all(_is_whole(api, f"c{number}") for number in range(count)),
            programs=server.programs,
            timeout=120,
        )
        started = processor_seconds(server.pids) - used
        memory = resident_bytes(server.pids)
        idle = _idle(server)
        removing = [_timed(api, "DELETE", f"/clusters/c{number}", 200) for number in range(min(count, 10))]
    return [
        # With few clusters, most of it is the server's own memory.
        Row(
            f"{count} clusters with their actors: memory", memory / 2**20, "MiB", 500 * max(1, count / COUNT)
        ),
        Row("    each", (memory - before) / count / 2**20, "MiB"),
        Row("    adding one", median(adding) * 1000, "ms"),
        Row("    processor time of its start", started / count * 1000, "ms"),
        Row("    removing one", median(removing) * 1000, "ms"),
        Row("    processor, while nothing happens", idle * 100, "%"),
    ]


def fixture(tries: int) -> list[Row]:
    """Return the time of a test with a cluster and one request, after a first test in the same process."""
    wanted: dict[str, tuple[dict[str, Any], float | None]] = {
        "a cluster for a test": ({}, 20.0),
        "    without machines": ({"simulate": "controllers"}, None),
        "    an API server alone": ({"simulate": "off"}, None),
        "    with every family": ({"families": "all"}, None),
    }
    rows = []
    for label, (settings, aim) in wanted.items():
        spent = asyncio.run(_had(settings, tries))
        rows.append(Row(label, median(one.whole for one in spent) * 1000, "ms", aim))
        if aim is not None:
            rows.append(Row("        until it is there", median(one.had for one in spent) * 1000, "ms"))
            # Not the median: work that happens at every tenth start, such as garbage collection, counts as well.
            rows.append(Row("        processor", mean(one.used for one in spent) * 1000, "ms"))
    return rows


class _Had(NamedTuple):
    """The time until a cluster is ready, the time with a first request and its stop, and the processor time."""

    had: float
    whole: float
    used: float


async def _had(settings: dict[str, Any], tries: int) -> list[_Had]:
    spent = []
    for _ in range(tries + 1):
        started, used = time.perf_counter(), time.process_time()
        async with Cluster(**settings) as cluster:
            had = time.perf_counter() - started
            await cluster.given(config_map("settings"))
        spent.append(_Had(had, time.perf_counter() - started, time.process_time() - used))
    # The first one loads modules.
    return spent[1:]


def _timed(api: Api, method: str, path: str, code: int) -> float:
    started = time.perf_counter()
    answer = api.call(method, path)
    if answer.code != code:
        raise BedError(f"{method} {path}: {answer.text}")
    return time.perf_counter() - started


def _is_whole(api: Api, name: str) -> bool:
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    there = all(api.get(f"/clusters/{name}{path}").code == 200 for path in ("/api/v1/nodes/sim-0", account))
    return there and '"ManagedClusterJoined"' in api.get(f"{_KNOWN}/{name}").text


def _idle(server: Server) -> float:
    """Return the share of a processor that is used without requests."""
    used = processor_seconds(server.pids)
    time.sleep(IDLE)
    return (processor_seconds(server.pids) - used) / IDLE


def table(rows: Sequence[Row]) -> str:
    """Return the rows as they are printed."""
    lines = []
    for row in rows:
        aim = f"  at most {row.aim:g} {row.unit}" if row.aim is not None else ""
        short = "  short" if row.is_short else ""
        lines.append(f"{row.label:44}{row.value:>10,.1f} {row.unit:3}{aim}{short}".rstrip())
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.clusters", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=COUNT, metavar="N", help="number of clusters (default: 100)"
    )
    parser.add_argument(
        "--tries", type=int, default=TRIES, metavar="N", help="number of test clusters (default: 30)"
    )
    asked = parser.parse_args()
    busy_before = os.getloadavg()[0]
    end_tidily_on_signals()
    try:
        print(table([*fixture(asked.tries), *many(asked.count)]))
    except BedError as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        return 2
    if busy_before > QUIET:
        print(f"the machine was busy (load {busy_before:.1f}): these figures are not reliable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
