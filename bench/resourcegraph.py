"""
The cost of ResourceGraphDefinitions and their instances: `python -m bench.resourcegraph`.

Instances of one graph of five chained ConfigMaps, on the embedded server and on a real one:
from nothing, an edit of all, an edit of the definition, one child that another client changes
repeatedly without a need to write, idle, and a restart of the controllers. Many definitions at
rest come last. Requests are counted where they are sent. The last columns compare with kro 0.9.4
on a real server and two cores; `bench.resourcegraph_beside` runs both in turns.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.counted_run import better, class_of, counted_run, until
from bench.measured_server import BenchRequest, Mark, MeasuredServer, Spent
from bench.report import report, servers
from bench.usage import processor_seconds
from tests.bed.either import start_server
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError

GROUP = "kro.run"
DEFINITIONS = f"/apis/{GROUP}/v1alpha1/resourcegraphdefinitions"
INSTANCES = f"/apis/{GROUP}/v1alpha1/namespaces/default/chains"
MAPS = "/api/v1/namespaces/default/configmaps"
ABOUT = (
    "resourcegraphdefinitions", "resourcegraphdefinitions/status", "resourcegraphdefinitionrevisions",
    "resourcegraphdefinitionrevisions/status", "resourcegraphinputrevisions", "resourcegraphinputrevisions/status",
    "chains", "chains/status", "configmaps", "customresourcedefinitions", "events",
)  # fmt: skip
FLICKERS, FLICKERING = 100, 0.05
IDLE = 10.0
NODES = 5
CREATED, EDITED = 10, NODES + 5
"""The aims: the most writes for an instance from nothing, and for one that is edited or gets a new definition."""


@dataclass(frozen=True, slots=True)
class Original:
    """The cost of kro, limits lifted; 0 where it was not measured."""

    seconds: float = 0.0
    requests: int = 0
    processor: float = 0.0


ORIGINAL = {
    "100 instances, from nothing": Original(10.5, 6_843, 4.0),
    "500 instances, from nothing": Original(51.0, 33_500, 18.5),
    "100 instances, an edit of all": Original(11.2, 9_700, 4.5),
    "100 instances, an edit of the definition": Original(6.7, 3_748, 1.9),
    f"100 instances, one child {FLICKERS} times": Original(0.0, 1_300, 1.0),
}
"""The cost of kro, by the name of the row."""

CLASSES = ("children", "instances", "input revisions", "definitions", "status", "dry runs", "reads", "events")


def _written(what: str) -> str:
    """Return the class of a write."""
    names = {
        "configmaps": "children",
        "chains": "instances",
        "resourcegraphinputrevisions": "input revisions",
    }
    return names.get(what, "definitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: an operation on `instances` instances, and the most writes that it is to need for each."""

    work: str
    instances: int
    each: int = 0
    spent: Spent | None
    """None if it timed out."""

    @property
    def cells(self) -> tuple[str, ...]:
        if self.spent is None:
            return (self.work, "timed out")
        spent, found = self.spent, Counter[str]()
        for name, count in spent.names.items():
            found[class_of(name, _written)] += count
        writes = sum(found[one] for one in CLASSES[:5])
        requests = sum(found.values()) - found["events"]
        theirs = ORIGINAL.get(self.work, Original())
        each = writes / self.instances
        return (
            self.work,
            f"{spent.seconds:.1f}",
            f"{requests:,}",
            *(f"{found[one]:,}" for one in CLASSES),
            f"{writes:,}",
            f"{each:.2f}" + (" over" if self.each and each > self.each else ""),
            str(self.each) if self.each else "",
            f"{spent.calls:,}",
            f"{spent.processor:.2f}",
            f"{spent.resident / 2**20:.0f}",
            f"{spent.served:.1f}",
            better(theirs.requests, requests),
            better(theirs.seconds, spent.seconds),
            better(theirs.processor, spent.processor),
        )


HEAD = (
    "", "seconds", "requests", *CLASSES, "writes", "an instance", "at most", "reconciles", "CPU s", "MiB",
    "server CPU s", "fewer requests than kro", "less time", "less CPU",
)  # fmt: skip


# The operations


def chain(number: int = 1, kind: str = "Chain") -> Mapping[str, Any]:
    """Return a graph of five ConfigMaps, each with the value of the one before; `number` is in all of them."""
    resources = []
    for place in range(NODES):
        value = "${schema.spec.value}" if not place else f"${{n{place - 1}.data.value}}"
        resources.append(
            {
                "id": f"n{place}",
                "template": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": f"${{schema.metadata.name}}-{place}"},
                    "data": {"value": value, "definition": str(number)},
                },
            }
        )
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ResourceGraphDefinition",
        "metadata": {"name": kind.lower()},
        "spec": {
            "schema": {"apiVersion": "v1alpha1", "kind": kind, "spec": {"value": "string"}},
            "resources": resources,
        },
    }


def instance(number: int) -> BenchRequest:
    """Create an instance."""
    body = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "Chain",
        "metadata": {"name": f"c{number}"},
        "spec": {"value": "one"},
    }
    return BenchRequest("POST", INSTANCES, body)


def edited(number: int) -> BenchRequest:
    """Edit an instance."""
    return BenchRequest("PATCH", f"{INSTANCES}/c{number}", {"spec": {"value": "two"}})


def redefined(number: int) -> BenchRequest:
    """Edit the definition."""
    return BenchRequest("PATCH", f"{DEFINITIONS}/chain", {"spec": chain(number + 2)["spec"]})


def flicker(number: int) -> BenchRequest:
    """Change a child without a need to write it."""
    return BenchRequest("PATCH", f"{MAPS}/c0-2", {"metadata": {"labels": {"turn": str(number)}}})


@dataclass(frozen=True, slots=True)
class Population:
    """The instances of the definition on one server."""

    target: MeasuredServer
    instances: int

    def is_settled(self, revision: int, input_revision: int) -> bool:
        """Say whether all instances are active on a revision of the definition and on an input revision."""
        items: Sequence[Mapping[str, Any]] = self.target.get(INSTANCES, "LIST chains")["items"]
        return len(items) == self.instances and all(
            (one.get("status") or {}).get("state") == "ACTIVE"
            and one["status"].get("observedRGDRevision") == revision
            and one["status"].get("observedInputRevision") == input_revision
            for one in items
        )

    def measured(
        self, work: str, ask: Callable[[int], BenchRequest], many: int, settled: tuple[int, int], each: int
    ) -> Row:
        """Send requests, wait until all instances are settled, and return the cost."""
        since, spent = self.target.mark(), None
        try:
            self.target.send_each(many, ask)
            ended = until(self.target, lambda: self.is_settled(*settled))
            self.target.until_quiet()
            spent = self.target.spent(since, until=ended)
        except BedError as trouble:
            print(f"error: {trouble}", file=sys.stderr, flush=True)
        return Row(
            work=f"{self.instances:,} instances, {work}", instances=self.instances, each=each, spent=spent
        )


def operations(target: MeasuredServer, instances: int) -> Iterator[Row]:
    """Measure all operations, one after another, until one times out."""
    population = Population(target, instances)
    target.send_each(1, lambda _: BenchRequest("POST", DEFINITIONS, chain()))
    until(
        population.target,
        lambda: target.get(f"{DEFINITIONS}/chain", "GET chain").get("status", {}).get("state") == "Active",
    )
    target.until_quiet()
    works: Sequence[tuple[str, Callable[[int], BenchRequest], int, tuple[int, int], int]] = (
        ("from nothing", instance, instances, (1, 1), CREATED),
        ("an edit of all", edited, instances, (1, 2), EDITED),
        ("an edit of the definition", redefined, 1, (2, 3), EDITED),
    )
    for work in works:
        made = population.measured(*work)
        yield made
        if made.spent is None:
            # The next operation would overlap with this one.
            return
    since = target.mark()
    target.send_each(FLICKERS, flicker, apart=FLICKERING)
    ended = time.monotonic()
    target.until_quiet()
    flickered = target.spent(since, until=ended)
    yield Row(
        work=f"{instances:,} instances, one child {FLICKERS} times", instances=instances, spent=flickered
    )
    since = target.mark()
    time.sleep(IDLE)
    yield Row(work=f"{instances:,} instances, idle", instances=instances, spent=target.spent(since))


def restarted(server: Server, instances: int) -> Row:
    """Start the controllers again on a server where nothing is left to do."""
    at, served = time.monotonic(), processor_seconds(server.pids)
    with staged(server) as target:
        target.until_quiet()
        since = Mark(at, Counter(), 0.0, served, 0)
        return Row(work=f"{instances:,} instances, a restart", instances=instances, spent=target.spent(since))


def at_rest(target: MeasuredServer, definitions: int) -> Row:
    """Measure definitions without instances for a while, once all are active."""
    work, spent = f"{definitions:,} definitions, idle", None
    kinds = [f"Chain{number}" for number in range(definitions)]
    try:
        target.send_each(
            definitions, lambda number: BenchRequest("POST", DEFINITIONS, chain(kind=kinds[number]))
        )
        until(target, lambda: _are_active(target))
        target.until_quiet()
        since = target.mark()
        time.sleep(IDLE)
        spent = target.spent(since)
    except BedError as trouble:
        print(f"error: {trouble}", file=sys.stderr, flush=True)
    return Row(work=work, instances=definitions, spent=spent)


def _are_active(target: MeasuredServer) -> bool:
    items = target.get(DEFINITIONS, "LIST resourcegraphdefinitions")["items"]
    return all((one.get("status") or {}).get("state") == "Active" for one in items)


# What is measured


def staged(server: Server) -> AbstractContextManager[MeasuredServer]:
    """Start `lamina run` on a server; its requests are counted."""
    return counted_run(server, "resourcegraph", ABOUT, "resourcegraph")


def rows_of(which: Which, sizes: Sequence[int], definitions: int) -> Iterator[Row]:
    """Yield the rows of one server; each size uses a new one."""
    for size in sizes:
        with start_server(which) as server:
            with staged(server) as target:
                yield from operations(target, size)
            yield restarted(server, size)
    if definitions:
        with start_server(which) as server, staged(server) as target:
            yield at_rest(target, definitions)


def measured(which: Which, sizes: Sequence[int], definitions: int) -> list[Row]:
    """Return the rows of one server, and print the name of each when it is measured."""
    rows: list[Row] = []
    for row in rows_of(which, sizes, definitions):
        print(f"  {row.work}", file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def growth(rows: Sequence[Row]) -> str:
    """Return the cost of the largest size relative to that of the smallest, for each operation."""
    by_work: dict[str, list[Row]] = {}
    for row in rows:
        if row.each and row.spent is not None:
            by_work.setdefault(row.work.partition(", ")[2], []).append(row)
    lines = []
    for work, those in by_work.items():
        least, most = those[0], those[-1]
        if least.instances < most.instances and least.spent is not None and most.spent is not None:
            longer = most.spent.seconds / least.spent.seconds
            times = most.spent.processor / least.spent.processor
            lines.append(
                f"  {work}: {most.instances / least.instances:.0f} times the instances take {longer:.1f} times the "
                f"time and {times:.1f} times the CPU, {most.spent.processor / most.instances * 1e3:.1f} ms of CPU each"
            )
    return "\n".join(lines)


def main() -> int:
    """Print a table for each server."""
    parser = argparse.ArgumentParser(prog="python -m bench.resourcegraph", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="measure one server only")
    parser.add_argument(
        "--sizes", nargs="*", type=int, default=[100, 500], metavar="N", help="number of instances"
    )
    parser.add_argument(
        "--definitions", type=int, default=1000, metavar="N", help="number of definitions at rest; 0 for none"
    )
    asked = parser.parse_args()
    end_tidily_on_signals()
    return report(
        "ResourceGraphDefinitions",
        servers(asked.only),
        partial(measured, sizes=asked.sizes, definitions=asked.definitions),
        head=HEAD,
        growth=growth,
    )


if __name__ == "__main__":
    sys.exit(main())
