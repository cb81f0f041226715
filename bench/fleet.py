"""
What a rollout over many clusters costs: `python -m bench.fleet`.

One replica set, three ConfigMaps a work, and agents that answer at once, on the
embedded server and on a real one: from nothing to everybody, an edit of all, a
roll of a tenth at a time, passes that change nothing, one work that flickers,
nothing at all, and an abort of all. Beside it stands what Open Cluster
Management 1.3.0 took on a real server and two cores, its client limits lifted.
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
from bench.report import report, servers
from bench.story import PATIENCE, Asked, Spent, Story
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Which
from tests.bed.trouble import BedError

HANDFUL = 12
"""How many writes there may be beside one for each cluster: the revision, and what the status says on the way."""
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
"""What Open Cluster Management took, by the name of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: some work over `size` clusters, and how many requests it may take at most."""

    work: str
    size: int
    most: int
    spent: Spent | None
    """None where it was not done in time."""
    looks: Sequence[float] = ()
    """How long each look at the replica set took meanwhile, in seconds."""

    @property
    def cells(self) -> tuple[str, ...]:
        if self.spent is None:
            return (self.work, "not done in time")
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
    "", "seconds", "requests", "at most", "events", "passes", "CPU s", "MiB", "server CPU s", "GET p99 ms",
    "by verb", "OCM 1.3.0",
)  # fmt: skip


def slowest(looks: Sequence[float]) -> float:
    """Return what one look in a hundred takes at least."""
    return sorted(looks)[(len(looks) * 99 - 1) // 100]


# The works


@dataclass
class Fleet:
    """One replica set over so many clusters, and how it is looked at."""

    story: Story
    size: int
    looks: list[float] = field(default_factory=list)

    def status(self) -> Mapping[str, Any]:
        began = time.monotonic()
        found = self.story.get(f"{SETS}/app", "GET manifestworkreplicasets")
        self.looks.append(time.monotonic() - began)
        return {**(found.get("status") or {}), "generation": found["metadata"]["generation"]}

    def until(self, is_so: Callable[[Mapping[str, Any]], bool]) -> float:
        """Wait until the status says so, and return when that was."""
        started = time.monotonic()
        while time.monotonic() - started < PATIENCE:
            if is_so(self.status()):
                return time.monotonic()
            time.sleep(_LOOK)
        raise BedError(f"it was not done within {PATIENCE:.0f} s")

    def row(self, work: str, ask: Asked, is_so: Callable[[Mapping[str, Any]], bool]) -> Row:
        """Ask for something that concerns every cluster, and say what that took."""
        self.looks = []
        since, most = self.story.mark(), self.size + HANDFUL
        try:
            self.story.ask(ask)
            ended = self.until(is_so)
        except BedError:
            return Row(work=work, size=self.size, most=most, spent=None)
        self.story.until_quiet()
        spent = self.story.spent(since, until=ended)
        return Row(work=work, size=self.size, most=most, spent=spent, looks=tuple(self.looks))

    def is_out(self, status: Mapping[str, Any]) -> bool:
        """Say whether everybody has what is wanted, and that is said of this very spec."""
        said = _condition(status, "PlacementRolledOut")
        return (
            said.get("status") == "True"
            and said.get("observedGeneration") == status["generation"]
            and status["summary"]["updated"] == self.size
        )

    def is_sent(self, status: Mapping[str, Any]) -> bool:
        """Say whether everybody has something that takes for ever."""
        return bool(status["summary"]["progressing"] == self.size)

    def is_back(self, status: Mapping[str, Any]) -> bool:
        """Say whether everybody is well on what they had before."""
        aborted = _condition(status, "Progressing").get("reason") == "RolloutAborted"
        summary = status["summary"]
        return (
            aborted and summary["available"] == self.size == summary["total"] and not summary["progressing"]
        )


def _condition(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((one for one in status.get("conditions") or () if one["type"] == name), {})


def roll(story: Story, size: int) -> Iterator[Row]:
    """Send something out to so many clusters, in every manner, and do nothing in every manner."""
    fleet = Fleet(story, size)
    yield from _sent(
        fleet,
        (f"{size:,} clusters, from nothing", Asked("POST", SETS, replica_set("one"))),
        (f"an edit of all {size:,}", edit("two", ALL)),
        (f"an edit of {size:,}, a tenth at a time", edit("three", TENTH)),
    )
    yield from _still(story, size)
    story.ask(edit("four", ALL, phase="working"))
    fleet.until(fleet.is_sent)
    story.until_quiet()
    yield fleet.row(f"an abort of all {size:,}", edit("four", HURRY, phase="working"), fleet.is_back)


def really_roll(story: Story, size: int) -> Iterator[Row]:
    """Send something out to so many clusters whose agents apply it."""
    yield from _sent(
        Fleet(story, size),
        (f"{size:,} clusters with real agents, from nothing", Asked("POST", SETS, replica_set("one"))),
        (f"an edit of all {size:,} with real agents", edit("two", ALL)),
        (f"an edit of {size:,} with real agents, a tenth at a time", edit("three", TENTH)),
    )


def _sent(fleet: Fleet, *works: tuple[str, Asked]) -> Iterator[Row]:
    for work, ask in works:
        row = fleet.row(work, ask, fleet.is_out)
        yield row
        if row.spent is None:
            # What comes next would be measured in the middle of it.
            raise BedError(f"{work} was not done in time")


def _still(story: Story, size: int) -> Iterator[Row]:
    for work, count, apart, ask, most in (
        (f"{TOUCHES} passes over {size:,} for nothing", TOUCHES, TOUCHING, _touched, 0),
        (f"one work of {size:,}, {FLICKERS} times", FLICKERS, FLICKERING, _flickers(story), FLICKERS),
    ):
        story.until_quiet()
        since = story.mark()
        story.each(count, ask, apart=apart)
        ended = time.monotonic()
        story.until_quiet()
        yield Row(work=work, size=size, most=most, spent=story.spent(since, until=ended))
    since = story.mark()
    time.sleep(IDLE)
    yield Row(work=f"{size:,} clusters at rest", size=size, most=0, spent=story.spent(since))


def _touched(number: int) -> Asked:
    return Asked("PATCH", f"{SETS}/app", {"metadata": {"annotations": {"touched": str(number)}}})


def _flickers(story: Story) -> Callable[[int], Asked]:
    """Return how the work of the first cluster becomes unavailable, and available again."""
    there = f"/apis/{WORKS}/v1/namespaces/c0/manifestworks"
    [work] = story.get(there, "LIST manifestworks")["items"]
    path, said = f"{there}/{work['metadata']['name']}/status", work["status"]["conditions"]

    def flicker(number: int) -> Asked:
        status = "False" if number % 2 == 0 else "True"
        now = [{**one, "status": status} if one["type"] == "Available" else one for one in said]
        return Asked("PATCH", path, {"status": {"conditions": now}})

    return flicker


# The table


def measured(which: Which, sizes: Sequence[int], real_agents: int) -> list[Row]:
    """Return the rows of one server; each size has a fresh one."""
    rows: list[Row] = []
    works = [(size, False) for size in sizes] + [(size, True) for size in (real_agents,) if size]
    for size, really in works:
        with staged(which, size, really=really) as story:
            try:
                for row in really_roll(story, size) if really else roll(story, size):
                    print(f"  {row.work}", file=sys.stderr, flush=True)
                    rows.append(row)
            except BedError as trouble:
                print(f"error: {trouble}", file=sys.stderr, flush=True)
    return rows


def growth(rows: Sequence[Row]) -> str:
    """Return what one cluster costs at each size: the same, where time is linear in the clusters."""
    lines = []
    for row in rows:
        if row.spent is not None and row.most > row.size:
            each, rate = row.spent.processor / row.size * 1e6, row.size / row.spent.seconds
            lines.append(f"  {row.work}: {each:,.0f} us of CPU a cluster, {rate:,.0f} clusters a second")
    return "\n".join(lines)


def main() -> int:
    """Print a table a server."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="one server and not both")
    parser.add_argument(
        "--sizes", nargs="*", type=int, default=[100, 300, 1000], metavar="N", help="how many clusters"
    )
    parser.add_argument(
        "--real-agents", type=int, default=100, metavar="N", help="how many clusters with real agents"
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
