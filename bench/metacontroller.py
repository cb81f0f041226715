"""
The cost of CompositeControllers and DecoratorControllers: `python -m bench.metacontroller`.

Parents with ConfigMaps as children and a fast hook, on the embedded server and on a
real one: creation, an edit of all, one child that changes repeatedly, idle, and
decorators. The last column has the cost of Metacontroller 4.17.2 on a real server
and two cores, without client rate limits.
"""

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from urllib.request import urlopen

from bench.measured_server import ROOT, BenchRequest, MeasuredServer, Spent, running
from bench.report import report, servers
from tests.bed.either import start_server
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Which
from tests.bed.trouble import BedError

GROUP = "bench.example.com"
PARENTS = f"/apis/{GROUP}/v1/namespaces/default/sets"
MAPS = "/api/v1/namespaces/default/configmaps"
CONTROLLERS = "/apis/metacontroller.k8s.io/v1alpha1"
FLICKERS = 100
IDLE = 10.0
ABOUT = (
    "sets", "sets/status", "configmaps", "compositecontrollers", "compositecontrollers/status",
    "decoratorcontrollers", "decoratorcontrollers/status", "controllerrevisions", "events",
)  # fmt: skip
MOST = 1.1
"""The allowed factor of requests above the least number."""

ORIGINAL = {
    "100 x 10, from nothing": "4.3 s, 1,509 requests, 1.3 s CPU, 56 MiB",
    "1,000 x 10, from nothing": "28.4 s, 14,800 requests, 10.9 s CPU, 190 MiB",
    "an edit of all 1,000": "29.6 s, 12,828 requests, 10.5 s CPU, 189 MiB",
    "one child of 10,000, 100 times": "100 requests, 0.4 s CPU",
}
"""The cost of Metacontroller, by the name of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: `least` is the least number of writes, `size` the number of owners."""

    work: str
    size: int
    least: int
    spent: Spent | None
    """None if it timed out."""

    @property
    def cells(self) -> tuple[str, ...]:
        if self.spent is None:
            return (self.work, "timed out")
        spent = self.spent
        requests = sum(spent.requests.values())
        ratio = f"{requests / self.least:.2f}x" if self.least else ""
        over = " over" if self.least and requests > MOST * self.least else ""
        return (
            self.work,
            f"{spent.seconds:.1f}",
            f"{requests:,}",
            f"{self.least:,}",
            ratio + over,
            f"{spent.events:,}",
            f"{spent.calls:,}",
            f"{spent.processor:.1f}",
            f"{spent.resident / 2**20:.0f}",
            " ".join(f"{verb}:{count}" for verb, count in sorted(spent.requests.items())),
            ORIGINAL.get(self.work, ""),
        )


HEAD = (
    "", "seconds", "requests", "least", "of least", "events", "hook calls", "CPU s", "MiB", "by verb",
    "Metacontroller 4.17.2",
)  # fmt: skip


# The works


def grow(target: MeasuredServer, parents: int, children: int) -> Iterator[Row]:
    """Create parents and wait for their children, edit all of them, change one child repeatedly, and stay idle."""
    total, least = parents * children, parents * (children + 1)
    for work, ask, verb, value in (
        (f"{parents:,} x {children}, from nothing", partial(_made, children), "POST", "one"),
        (f"an edit of all {parents:,}", _edited, "PATCH", "two"),
    ):
        spent = _done(target, ask, parents, verb, total, value)
        yield Row(work=work, size=parents, least=least, spent=spent)
        if spent is None:
            # The next operation would overlap with this one.
            return
    yield from still(target, parents, total)


def still(target: MeasuredServer, parents: int, children: int) -> Iterator[Row]:
    """Change one child repeatedly, then stay idle."""
    target.until_quiet()
    since = target.mark()
    target.send_each(FLICKERS, _flickered)
    ended = time.monotonic()
    target.until_quiet()
    flickered = target.spent(since, until=ended)
    yield Row(work=f"one child of {children:,}, {FLICKERS} times", size=parents, least=0, spent=flickered)
    since = target.mark()
    time.sleep(IDLE)
    yield Row(work=f"{parents:,} parents at rest", size=parents, least=0, spent=target.spent(since))


def decorate(target: MeasuredServer, objects: int) -> Iterator[Row]:
    """Add a label and an attachment to every object."""
    since = target.mark()
    try:
        target.send_each(objects, _target)
        what = Counter({"POST configmaps": objects, "PATCH configmaps": objects})
        ended = target.until_written(since, what, lambda: len(target.values("decorated=yes")) == objects)
    except BedError:
        yield Row(work=f"decorators over {objects:,}", size=objects, least=2 * objects, spent=None)
        return
    target.until_quiet()
    spent = target.spent(since, until=ended)
    yield Row(work=f"decorators over {objects:,}", size=objects, least=2 * objects, spent=spent)


def _done(
    target: MeasuredServer,
    ask: Callable[[int], BenchRequest],
    parents: int,
    verb: str,
    children: int,
    value: str,
) -> Spent | None:
    """Send a request for every parent, wait until all children are updated, and return the cost."""
    since = target.mark()
    try:
        target.send_each(parents, ask)
        what = Counter({f"{verb} configmaps": children})
        ended = target.until_written(since, what, lambda: target.values("of") == [value] * children)
    except BedError:
        return None
    # The status of parents is written last.
    target.until_quiet()
    return target.spent(since, until=ended)


def _made(children: int, number: int) -> BenchRequest:
    spec = {
        "selector": {"matchLabels": {"of": f"p{number}"}},
        "children": children,
        "value": "one",
    }
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Set", "metadata": {"name": f"p{number}"}, "spec": spec}
    return BenchRequest("POST", PARENTS, body)


def _edited(number: int) -> BenchRequest:
    return BenchRequest("PATCH", f"{PARENTS}/p{number}", {"spec": {"value": "two"}})


def _flickered(number: int) -> BenchRequest:
    return BenchRequest("PATCH", f"{MAPS}/p0-0", {"metadata": {"labels": {"turn": str(number)}}})


def _target(number: int) -> BenchRequest:
    metadata = {"name": f"t{number}", "labels": {"decorate": "yes"}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "one"}}
    return BenchRequest("POST", MAPS, body)


# What is there before


@contextmanager
def staged(which: Which) -> Iterator[tuple[MeasuredServer, str]]:
    """Start a server with `lamina run`, and a hook; yield both."""
    with start_server(which) as server:
        hook = subprocess.Popen(
            [sys.executable, "-m", "bench.hook"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            assert hook.stdout is not None
            url = f"http://127.0.0.1:{hook.stdout.readline().strip()}"
            with running(server, "metacontroller") as pid:
                yield MeasuredServer(server, pid, ABOUT, partial(_calls, url)), url
        finally:
            hook.terminate()
            hook.wait()


def _calls(hook: str) -> int:
    with urlopen(hook) as answer:
        return int(answer.read())


def composite(target: MeasuredServer, hook: str) -> None:
    """Create the definition of the parents, and their CompositeController."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"sets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "sets", "kind": "Set"},
            "versions": [version],
        },
    }
    target.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    spec = {
        "parentResource": {"apiVersion": f"{GROUP}/v1", "resource": "sets"},
        "childResources": [
            {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}
        ],
    }
    _controller(target, hook, "CompositeController", spec)


def decorator(target: MeasuredServer, hook: str) -> None:
    """Create a DecoratorController."""
    chosen = {"matchLabels": {"decorate": "yes"}}
    spec = {
        "resources": [{"apiVersion": "v1", "resource": "configmaps", "labelSelector": chosen}],
        "attachments": [
            {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}
        ],
    }
    _controller(target, hook, "DecoratorController", spec)


def _controller(target: MeasuredServer, hook: str, kind: str, spec: Mapping[str, object]) -> None:
    hooks = {"sync": {"webhook": {"url": f"{hook}/sync"}}}
    controller = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "bench"},
        "spec": {**spec, "hooks": hooks},
    }
    path = f"{CONTROLLERS}/{kind.lower()}s"
    made = target.api.post(path, controller)
    if made.code != 201:
        raise BedError(f"the controller was refused: {made.text}")
    started = time.monotonic()
    while '"Started"' not in target.api.get(f"{path}/bench").text.replace(" ", ""):
        if time.monotonic() - started > 60:
            raise BedError("the controller did not start within 60 s")
        time.sleep(0.05)


# The table


def measured(which: Which, sizes: Sequence[tuple[int, int]], decorated: int) -> list[Row]:
    """Return the rows of one server; each size uses a new one."""
    rows: list[Row] = []
    for parents, children in sizes:
        with staged(which) as (target, hook):
            composite(target, hook)
            for row in grow(target, parents, children):
                print(f"  {row.work}", file=sys.stderr, flush=True)
                rows.append(row)
    if decorated:
        with staged(which) as (target, hook):
            decorator(target, hook)
            rows += decorate(target, decorated)
    return rows


def growth(rows: Sequence[Row]) -> str:
    """Return the cost per write at each size, which is constant if the cost is linear."""
    lines = []
    for row in rows:
        if row.spent is not None and row.spent.writes and "nothing" in row.work:
            each = row.spent.processor / row.spent.writes * 1e6
            rate = row.spent.writes / row.spent.seconds
            lines.append(f"  {row.work}: {each:,.0f} us of CPU a write, {rate:,.0f} writes a second")
    return "\n".join(lines)


def main() -> int:
    """Print a table for each server."""
    parser = argparse.ArgumentParser(prog="python -m bench.metacontroller", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="measure one server only")
    parser.add_argument(
        "--sizes", nargs="*", default=["100x10", "1000x10", "10000x1"], metavar="NxM",
        help="number of parents, and of children of each",
    )  # fmt: skip
    parser.add_argument(
        "--decorated", type=int, default=5000, metavar="N", help="number of objects to decorate"
    )
    asked = parser.parse_args()
    sizes = [(int(one.split("x")[0]), int(one.split("x")[1])) for one in asked.sizes]
    end_tidily_on_signals()
    return report(
        "Metacontroller",
        servers(asked.only),
        partial(measured, sizes=sizes, decorated=asked.decorated),
        head=HEAD,
        growth=growth,
    )


if __name__ == "__main__":
    sys.exit(main())
