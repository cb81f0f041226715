"""
The cost of a rollout over many clusters: `python -m bench.fleet`.

One replica set with three ConfigMaps per work, and agents that report status at
once, on the embedded server and on a real one: first rollout, an edit of all, an
edit of a tenth at a time, reconciles without changes, one work whose status changes
repeatedly, idle, and an abort of all. The last column has the cost of Open Cluster
Management 1.3.0 on a real server and two cores, without client rate limits.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.changes import ALL, HURRY, TENTH, edit, replica_set
from bench.hub import SETS, WORKS, staged
from bench.measured_server import TIMEOUT, BenchRequest, MeasuredServer, Spent
from bench.report import report, servers
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Which
from tests.bed.trouble import BedError

HANDFUL = 12
"""The allowed writes besides one for each cluster: the revision, and status updates."""
FLICKERS, FLICKERING = 100, 0.1
TOUCHES, TOUCHING = 20, 0.25
IDLE = 10.0
_LOOK = 0.05
ORIGINAL = {
    "100 clusters, from nothing": "1.0 s, 104 requests, 0.3 s CPU, 5 passes",
    "300 clusters, from nothing": "2.4 s, 304 requests, 0.7 s CPU, 5 passes",
    "1,000 clusters, from nothing": "8.0 s, 1,003 requests, 2.1 s CPU, 4 passes",
    "an edit of all 100": "1.2 s, 102 requests, 0.3 s CPU, 3 passes",
    "an edit of all 300": "3.2 s, 302 requests, 0.8 s CPU, 3 passes",
    "an edit of all 1,000": "11.2 s, 1,003 requests, 3.2 s CPU, 5 passes",
    "an edit of 100, a tenth at a time": "1.3 s, 114 requests, 0.5 s CPU, 16 passes",
    "an edit of 300, a tenth at a time": "4.6 s, 311 requests, 1.6 s CPU, 12 passes",
    "an edit of 1,000, a tenth at a time": "12.9 s, 1,011 requests, 4.4 s CPU, 12 passes",
    "one work of 100, 100 times": "100 requests, 4.6 s CPU, 200 passes",
    "one work of 300, 100 times": "58 requests, 6.8 s CPU, 102 passes",
    "one work of 1,000, 100 times": "25 requests, 7.6 s CPU, 37 passes",
}
"""The cost of Open Cluster Management, by the name of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: an operation over `size` clusters, and its maximum number of requests."""

    work: str
    size: int
    most: int
    spent: Spent | None
    """None if it timed out."""
    looks: Sequence[float] = ()
    """The latencies of GETs of the replica set meanwhile, in seconds."""

    @property
    def cells(self) -> tuple[str, ...]:
        if self.spent is None:
            return (self.work, "timed out")
        spent = self.spent
        requests = sum(spent.requests.values())
        return (
            self.work,
            f"{spent.seconds:.1f}",
            f"{requests:,}",
            f"{self.most:,}" + (" over" if requests > self.most else ""),
            f"{spent.events:,}",
            f"{spent.calls:,}",
            f"{spent.processor:.2f}",
            f"{spent.resident / 2**20:.0f}",
            f"{spent.served:.1f}",
            f"{slowest(self.looks) * 1000:.0f}" if self.looks else "",
            " ".join(f"{verb}:{count}" for verb, count in sorted(spent.requests.items())),
            ORIGINAL.get(self.work, ""),
        )


HEAD = (
    "", "seconds", "requests", "at most", "events", "reconciles", "CPU s", "MiB", "server CPU s", "GET p99 ms",
    "by verb", "OCM 1.3.0",
)  # fmt: skip


def slowest(looks: Sequence[float]) -> float:
    """Return the 99th percentile."""
    return sorted(looks)[(len(looks) * 99 - 1) // 100]


# The works


@dataclass
class Fleet:
    """One replica set over a number of clusters, and the latencies of its GETs."""

    target: MeasuredServer
    size: int
    looks: list[float] = field(default_factory=list)

    def status(self) -> Mapping[str, Any]:
        began = time.monotonic()
        found = self.target.get(f"{SETS}/app", "GET manifestworkreplicasets")
        self.looks.append(time.monotonic() - began)
        return {**(found.get("status") or {}), "generation": found["metadata"]["generation"]}

    def until(self, is_so: Callable[[Mapping[str, Any]], bool]) -> float:
        """Wait until the status meets a condition, and return the time."""
        started = time.monotonic()
        while time.monotonic() - started < TIMEOUT:
            if is_so(self.status()):
                return time.monotonic()
            time.sleep(_LOOK)
        raise BedError(f"the operation was not done within {TIMEOUT:.0f} s")

    def row(self, work: str, ask: BenchRequest, is_so: Callable[[Mapping[str, Any]], bool]) -> Row:
        """Send a request that changes every cluster, and return its cost."""
        self.looks = []
        since, most = self.target.mark(), self.size + HANDFUL
        try:
            self.target.send(ask)
            ended = self.until(is_so)
        except BedError:
            return Row(work=work, size=self.size, most=most, spent=None)
        self.target.until_quiet()
        spent = self.target.spent(since, until=ended)
        return Row(work=work, size=self.size, most=most, spent=spent, looks=tuple(self.looks))

    def is_out(self, status: Mapping[str, Any]) -> bool:
        """Say whether all clusters are updated, by a condition for the current generation."""
        said = _condition(status, "PlacementRolledOut")
        return (
            said.get("status") == "True"
            and said.get("observedGeneration") == status["generation"]
            and status["summary"]["updated"] == self.size
        )

    def is_sent(self, status: Mapping[str, Any]) -> bool:
        """Say whether all clusters are progressing."""
        return bool(status["summary"]["progressing"] == self.size)

    def is_back(self, status: Mapping[str, Any]) -> bool:
        """Say whether the rollout is aborted, and all clusters are available on the former revision."""
        aborted = _condition(status, "Progressing").get("reason") == "RolloutAborted"
        summary = status["summary"]
        return (
            aborted and summary["available"] == self.size == summary["total"] and not summary["progressing"]
        )


def _condition(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((one for one in status.get("conditions") or () if one["type"] == name), {})


def roll(target: MeasuredServer, size: int) -> Iterator[Row]:
    """Measure rollouts with every strategy, idle reconciles, and an abort."""
    fleet = Fleet(target, size)
    yield from _sent(
        fleet,
        (f"{size:,} clusters, from nothing", BenchRequest("POST", SETS, replica_set("one"))),
        (f"an edit of all {size:,}", edit("two", ALL)),
        (f"an edit of {size:,}, a tenth at a time", edit("three", TENTH)),
    )
    yield from _still(target, size)
    target.send(edit("four", ALL, phase="working"))
    fleet.until(fleet.is_sent)
    target.until_quiet()
    yield fleet.row(f"an abort of all {size:,}", edit("four", HURRY, phase="working"), fleet.is_back)


def really_roll(target: MeasuredServer, size: int) -> Iterator[Row]:
    """Measure rollouts to clusters with real agents."""
    yield from _sent(
        Fleet(target, size),
        (f"{size:,} clusters with real agents, from nothing", BenchRequest("POST", SETS, replica_set("one"))),
        (f"an edit of all {size:,} with real agents", edit("two", ALL)),
        (f"an edit of {size:,} with real agents, a tenth at a time", edit("three", TENTH)),
    )


def _sent(fleet: Fleet, *works: tuple[str, BenchRequest]) -> Iterator[Row]:
    for work, ask in works:
        row = fleet.row(work, ask, fleet.is_out)
        yield row
        if row.spent is None:
            # The next operation would overlap with this one.
            raise BedError(f"{work} was not done in time")


def _still(target: MeasuredServer, size: int) -> Iterator[Row]:
    for work, count, apart, ask, most in (
        (f"{TOUCHES} passes over {size:,} for nothing", TOUCHES, TOUCHING, _touched, 0),
        (f"one work of {size:,}, {FLICKERS} times", FLICKERS, FLICKERING, _flickers(target), FLICKERS),
    ):
        target.until_quiet()
        since = target.mark()
        target.send_each(count, ask, apart=apart)
        ended = time.monotonic()
        target.until_quiet()
        yield Row(work=work, size=size, most=most, spent=target.spent(since, until=ended))
    since = target.mark()
    time.sleep(IDLE)
    yield Row(work=f"{size:,} clusters at rest", size=size, most=0, spent=target.spent(since))


def _touched(number: int) -> BenchRequest:
    return BenchRequest("PATCH", f"{SETS}/app", {"metadata": {"annotations": {"touched": str(number)}}})


def _flickers(target: MeasuredServer) -> Callable[[int], BenchRequest]:
    """Return requests that make the work of the first cluster unavailable and available again."""
    there = f"/apis/{WORKS}/v1/namespaces/c0/manifestworks"
    [work] = target.get(there, "LIST manifestworks")["items"]
    path, said = f"{there}/{work['metadata']['name']}/status", work["status"]["conditions"]

    def flicker(number: int) -> BenchRequest:
        status = "False" if number % 2 == 0 else "True"
        now = [{**one, "status": status} if one["type"] == "Available" else one for one in said]
        return BenchRequest("PATCH", path, {"status": {"conditions": now}})

    return flicker


# The table


def measured(which: Which, sizes: Sequence[int], real_agents: int) -> list[Row]:
    """Return the rows of one server; each size uses a new one."""
    rows: list[Row] = []
    works = [(size, False) for size in sizes] + [(size, True) for size in (real_agents,) if size]
    for size, really in works:
        with staged(which, size, really=really) as target:
            try:
                for row in really_roll(target, size) if really else roll(target, size):
                    print(f"  {row.work}", file=sys.stderr, flush=True)
                    rows.append(row)
            except BedError as trouble:
                print(f"error: {trouble}", file=sys.stderr, flush=True)
    return rows


def growth(rows: Sequence[Row]) -> str:
    """Return the cost per cluster at each size, which is constant if the cost is linear."""
    lines = []
    for row in rows:
        if row.spent is not None and row.most > row.size:
            each, rate = row.spent.processor / row.size * 1e6, row.size / row.spent.seconds
            lines.append(f"  {row.work}: {each:,.0f} us of CPU a cluster, {rate:,.0f} clusters a second")
    return "\n".join(lines)


def main() -> int:
    """Print a table for each server."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="measure one server only")
    parser.add_argument(
        "--sizes", nargs="*", type=int, default=[100, 300, 1000], metavar="N", help="number of clusters"
    )
    parser.add_argument(
        "--real-agents", type=int, default=100, metavar="N", help="number of clusters with real agents"
    )
    asked = parser.parse_args()
    end_tidily_on_signals()
    return report(
        "A fleet",
        servers(asked.only),
        partial(measured, sizes=asked.sizes, real_agents=asked.real_agents),
        head=HEAD,
        growth=growth,
    )


if __name__ == "__main__":
    sys.exit(main())
