"""
The cost of ObjectDeployments and their ObjectSets: `python -m bench.objectset`.

ConfigMaps in two phases with a probe, on the embedded server and on a real one: from
nothing, a new revision of all in which half of the objects change, one object that
another client changes repeatedly without a need to write, and idle. Requests are
counted where they are sent, so that dry runs are told from writes on both servers. The
last columns compare with Package Operator 1.17.1 on a real server and two cores,
without its client rate limits.
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

from bench.counted_run import better, class_of, counted, until
from bench.measured_server import BenchRequest, MeasuredServer, Spent
from bench.report import report, servers
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Which
from tests.bed.trouble import BedError

GROUP = "package-operator.run"
NAMESPACE = f"/apis/{GROUP}/v1alpha1/namespaces/default"
MAPS = "/api/v1/namespaces/default/configmaps"
ABOUT = (
    "objectdeployments", "objectdeployments/status", "objectsets", "objectsets/status", "objectsetphases",
    "objectsetphases/status", "objectslices", "configmaps", "namespaces", "events",
)  # fmt: skip
FLICKERS, FLICKERING = 100, 0.05
IDLE = 10.0
CREATED, CHANGED, EACH_SET = 2.1, 1.1, 5
"""The aims: the most writes for an object that is created, for one that is changed, and besides for a set."""
MOST_GROWTH = 30
"""The most time and processor time of 25 times as many objects."""


@dataclass(frozen=True, slots=True)
class Original:
    """The cost of Package Operator; 0 where it was not measured."""

    seconds: float = 0.0
    requests: int = 0
    processor: float = 0.0


ORIGINAL = {
    "20 x 10, from nothing": Original(4.8, 1_192, 214 / 159),
    "20 x 10, a new revision": Original(8.1, 3_047),
    "20 x 10, one object 100 times": Original(0.0, 1_219),
    "100 x 50, from nothing": Original(212.0, 0, 214.0),
}
"""The cost of Package Operator, by the name of the row."""

CLASSES = ("objects", "sets", "deployments", "status", "dry runs", "reads", "events")


def _written(what: str) -> str:
    """Return the class of a write."""
    return {"objectsets": "sets", "objectdeployments": "deployments"}.get(what, "objects")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: an operation on `objects` objects, and its aims."""

    work: str
    objects: int
    changes: int = 0
    """How often each object is created or changed."""
    each: float = 0.0
    """The most writes for each object that is created or changed, by the aim."""
    sets: int = 0
    """How many sets are created or archived."""
    spent: Spent | None
    """None if it timed out."""

    @property
    def classes(self) -> Counter[str]:
        """Return the number of requests by class."""
        found: Counter[str] = Counter()
        for name, count in self.spent.names.items() if self.spent is not None else ():
            found[class_of(name, _written)] += count
        return found

    @property
    def most(self) -> int:
        """Return the most writes, by the aim: for objects and sets, whatever part of them is written."""
        return round(self.each * self.changes * self.objects) + EACH_SET * self.sets

    @property
    def cells(self) -> tuple[str, ...]:
        if self.spent is None:
            return (self.work, "timed out")
        spent, found = self.spent, self.classes
        writes = sum(found[one] for one in ("objects", "sets", "deployments", "status"))
        requests = sum(found.values()) - found["events"]
        theirs = ORIGINAL.get(self.work, Original())
        changes = self.changes * self.objects
        each = f"{found['objects'] / changes:.2f}" if changes else ""
        return (
            self.work,
            f"{spent.seconds:.1f}",
            f"{requests:,}",
            *(f"{found[one]:,}" for one in CLASSES),
            f"{writes:,}",
            f"{self.most:,}" + (" over" if writes > self.most else ""),
            each,
            f"{spent.calls:,}",
            f"{spent.processor:.2f}",
            f"{spent.resident / 2**20:.0f}",
            f"{spent.served:.1f}",
            better(theirs.requests, requests),
            better(theirs.seconds, spent.seconds),
            better(theirs.processor, spent.processor),
        )


HEAD = (
    "", "seconds", "requests", *CLASSES, "writes", "at most", "a change", "reconciles", "CPU s", "MiB",
    "server CPU s", "fewer requests than PKO", "less time", "less CPU",
)  # fmt: skip


# The operations


@dataclass(frozen=True, slots=True)
class Fleet:
    """Deployments of the same size on one server."""

    target: MeasuredServer
    deployments: int
    each: int

    @property
    def objects(self) -> int:
        return self.deployments * self.each

    @property
    def size(self) -> str:
        return f"{self.deployments:,} x {self.each:,}"

    def is_out(self, revision: int) -> bool:
        """Say whether all deployments have rolled out a revision, and archived those before."""
        deployments = self._list("objectdeployments")
        sets = self._list("objectsets")
        archived = sum(_condition(one, "Archived").get("status") == "True" for one in sets)
        return (
            all(_is_idle(one, revision) for one in deployments)
            and archived == len(sets) - self.deployments
            and len(deployments) == self.deployments
        )

    def _list(self, plural: str) -> Sequence[Mapping[str, Any]]:
        items: Sequence[Mapping[str, Any]] = self.target.get(f"{NAMESPACE}/{plural}", f"LIST {plural}")[
            "items"
        ]
        return items


def _condition(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == name), {})


def _is_idle(deployment: Mapping[str, Any], revision: int) -> bool:
    progressing = _condition(deployment, "Progressing")
    return (
        progressing.get("reason") == "Idle"
        and progressing.get("observedGeneration") == deployment["metadata"]["generation"]
        and deployment["status"].get("revision") == revision
        and _condition(deployment, "Available").get("status") == "True"
    )


def roll(target: MeasuredServer, deployments: int, each: int) -> Iterator[Row]:
    """Measure the first revision of all deployments, the second one, one flickering object, and idle."""
    fleet = Fleet(target, deployments, each)
    for revision, roll_out in ((1, _first), (2, _second)):
        row = roll_out(fleet, revision)
        yield row
        if row.spent is None:
            # The next operation would overlap with this one.
            return
    target.until_quiet()
    since = target.mark()
    target.send_each(FLICKERS, _flickered, apart=FLICKERING)
    ended = time.monotonic()
    target.until_quiet()
    flickered = target.spent(since, until=ended)
    yield Row(work=f"{fleet.size}, one object {FLICKERS} times", objects=fleet.objects, spent=flickered)
    since = target.mark()
    time.sleep(IDLE)
    yield Row(work=f"{fleet.size}, idle", objects=fleet.objects, spent=target.spent(since))


def _first(fleet: Fleet, revision: int) -> Row:
    spent = _rolled(fleet, revision, partial(_created, fleet.each))
    return Row(
        work=f"{fleet.size}, from nothing",
        objects=fleet.objects,
        changes=1,
        each=CREATED,
        sets=fleet.deployments,
        spent=spent,
    )


def _second(fleet: Fleet, revision: int) -> Row:
    spent = _rolled(fleet, revision, partial(_edited, fleet.each))
    return Row(
        work=f"{fleet.size}, a new revision",
        objects=fleet.objects,
        # That its new revision takes it over and its former one releases it later is over the aim.
        changes=1,
        each=CHANGED,
        sets=2 * fleet.deployments,
        spent=spent,
    )


def _rolled(fleet: Fleet, revision: int, ask: Callable[[int], BenchRequest]) -> Spent | None:
    """Send a request for every deployment, wait until its revision is out, and return the cost."""
    target = fleet.target
    since = target.mark()
    try:
        target.send_each(fleet.deployments, ask)
        ended = until(fleet.target, lambda: fleet.is_out(revision))
    except BedError as trouble:
        print(f"error: {trouble}", file=sys.stderr, flush=True)
        return None
    target.until_quiet()
    return target.spent(since, until=ended)


def template(number: int, each: int, *, edited: bool) -> Mapping[str, Any]:
    """Return the template of a deployment; edited, every second object has another value."""
    objects = [
        {
            "object": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"d{number}-{place}", "labels": {"of": f"d{number}"}},
                "data": {"value": "two" if edited and place % 2 else "one", "is": "there", "was": "there"},
            }
        }
        for place in range(each)
    ]
    probe = {"fieldsEqual": {"fieldA": ".data.is", "fieldB": ".data.was"}}
    spec = {
        "phases": [
            {"name": "first", "objects": objects[: each // 2]},
            {"name": "second", "objects": objects[each // 2 :]},
        ],
        "availabilityProbes": [
            {"selector": {"kind": {"group": "", "kind": "ConfigMap"}}, "probes": [probe]},
        ],
    }
    return {"metadata": {"labels": {"app": f"d{number}"}}, "spec": spec}


def _created(each: int, number: int) -> BenchRequest:
    body = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ObjectDeployment",
        "metadata": {"name": f"d{number}"},
        "spec": {
            "selector": {"matchLabels": {"app": f"d{number}"}},
            "template": template(number, each, edited=False),
        },
    }
    return BenchRequest("POST", f"{NAMESPACE}/objectdeployments", body)


def _edited(each: int, number: int) -> BenchRequest:
    changed = {"spec": {"template": template(number, each, edited=True)}}
    return BenchRequest("PATCH", f"{NAMESPACE}/objectdeployments/d{number}", changed)


def _flickered(number: int) -> BenchRequest:
    return BenchRequest("PATCH", f"{MAPS}/d0-0", {"metadata": {"labels": {"turn": str(number)}}})


# What is measured


def staged(which: Which) -> AbstractContextManager[MeasuredServer]:
    """Start a server with `lamina run`, whose requests are counted."""
    return counted(which, "objectset", ABOUT, "objec")


def measured(which: Which, sizes: Sequence[tuple[int, int]]) -> list[Row]:
    """Return the rows of one server; each size uses a new one."""
    rows: list[Row] = []
    for deployments, each in sizes:
        with staged(which) as target:
            for row in roll(target, deployments, each):
                print(f"  {row.work}", file=sys.stderr, flush=True)
                rows.append(row)
    return rows


def growth(rows: Sequence[Row]) -> str:
    """Return the cost of the largest size relative to that of the smallest, for each operation."""
    by_work: dict[str, list[Row]] = {}
    for row in rows:
        if row.changes:
            by_work.setdefault(row.work.partition(", ")[2], []).append(row)
    lines = []
    for work, those in by_work.items():
        least, most = those[0].spent, those[-1].spent
        if least is None or most is None or len(those) < 2 or not least.processor or not least.seconds:
            continue
        longer, times = most.seconds / least.seconds, most.processor / least.processor
        over = " (over)" if max(longer, times) > MOST_GROWTH else ""
        lines.append(
            f"  {work}: {those[-1].objects / those[0].objects:.0f} times the objects take {longer:.1f} times the time "
            f"and {times:.1f} times the CPU{over}, {most.processor / those[-1].objects * 1e3:.1f} ms of CPU an object"
        )
    return "\n".join(lines)


def main() -> int:
    """Print a table for each server."""
    parser = argparse.ArgumentParser(prog="python -m bench.objectset", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="measure one server only")
    parser.add_argument(
        "--sizes", nargs="*", default=["20x10", "100x50"], metavar="NxM",
        help="number of deployments, and of objects of each",
    )  # fmt: skip
    asked = parser.parse_args()
    sizes = [(int(one.split("x")[0]), int(one.split("x")[1])) for one in asked.sizes]
    end_tidily_on_signals()
    return report("ObjectSets", servers(asked.only), partial(measured, sizes=sizes), head=HEAD, growth=growth)


if __name__ == "__main__":
    sys.exit(main())
