"""
What Metacontroller costs: `python -m bench.metacontroller`.

Parents with ConfigMaps as children and a hook that is never the bottleneck, on
the embedded server and on a real one: from nothing to settled, an edit of all,
one child that flickers, nothing at all, and decorators. Beside it stands what
Metacontroller 4.17.2 took on a real server and two cores, its client limits
lifted.
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

from bench.report import report, servers
from bench.story import ROOT, Asked, Spent, Story, running
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
"""How many requests there may be for each that has to be."""

ORIGINAL = {
    "100 x 10, from nothing": "4.3 s, 1,509 requests, 1.3 s CPU, 56 MiB",
    "1,000 x 10, from nothing": "28.4 s, 14,800 requests, 10.9 s CPU, 190 MiB",
    "an edit of all 1,000": "29.6 s, 12,828 requests, 10.5 s CPU, 189 MiB",
    "one child of 10,000, 100 times": "100 requests, 0.4 s CPU",
}
"""What Metacontroller took, by the name of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. `least` is how many writes there have to be; `size` is how many owners there are."""

    work: str
    size: int
    least: int
    spent: Spent | None
    """None where it was not done in time."""

    @property
    def cells(self) -> tuple[str, ...]:
        if self.spent is None:
            return (self.work, "not done in time")
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


def grow(story: Story, parents: int, children: int) -> Iterator[Row]:
    """Make parents and wait for their children, edit all of them, let one child flicker, and do nothing."""
    total, least = parents * children, parents * (children + 1)
    for work, ask, verb, value in (
        (f"{parents:,} x {children}, from nothing", partial(_made, children), "POST", "one"),
        (f"an edit of all {parents:,}", _edited, "PATCH", "two"),
    ):
        spent = _done(story, ask, parents, verb, total, value)
        yield Row(work=work, size=parents, least=least, spent=spent)
        if spent is None:
            # What comes next would be measured in the middle of it.
            return
    yield from still(story, parents, total)


def still(story: Story, parents: int, children: int) -> Iterator[Row]:
    """Let one child flicker, and then nothing happen at all."""
    story.until_quiet()
    since = story.mark()
    story.each(FLICKERS, _flickered)
    ended = time.monotonic()
    story.until_quiet()
    flickered = story.spent(since, until=ended)
    yield Row(work=f"one child of {children:,}, {FLICKERS} times", size=parents, least=0, spent=flickered)
    since = story.mark()
    time.sleep(IDLE)
    yield Row(work=f"{parents:,} parents at rest", size=parents, least=0, spent=story.spent(since))


def decorate(story: Story, objects: int) -> Iterator[Row]:
    """Give every object a label and an attachment."""
    since = story.mark()
    try:
        story.each(objects, _target)
        what = Counter({"POST configmaps": objects, "PATCH configmaps": objects})
        ended = story.until_written(since, what, lambda: len(story.values("decorated=yes")) == objects)
    except BedError:
        yield Row(work=f"decorators over {objects:,}", size=objects, least=2 * objects, spent=None)
        return
    story.until_quiet()
    spent = story.spent(since, until=ended)
    yield Row(work=f"decorators over {objects:,}", size=objects, least=2 * objects, spent=spent)


def _done(
    story: Story, ask: Callable[[int], Asked], parents: int, verb: str, children: int, value: str
) -> Spent | None:
    """Ask for something of every parent, wait until all children are as they should be, and say what that took."""
    since = story.mark()
    try:
        story.each(parents, ask)
        what = Counter({f"{verb} configmaps": children})
        ended = story.until_written(since, what, lambda: story.values("of") == [value] * children)
    except BedError:
        return None
    # Statuses come last.
    story.until_quiet()
    return story.spent(since, until=ended)


def _made(children: int, number: int) -> Asked:
    spec = {
        "selector": {"matchLabels": {"of": f"p{number}"}},
        "children": children,
        "value": "one",
    }
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Set", "metadata": {"name": f"p{number}"}, "spec": spec}
    return Asked("POST", PARENTS, body)


def _edited(number: int) -> Asked:
    return Asked("PATCH", f"{PARENTS}/p{number}", {"spec": {"value": "two"}})


def _flickered(number: int) -> Asked:
    return Asked("PATCH", f"{MAPS}/p0-0", {"metadata": {"labels": {"turn": str(number)}}})


def _target(number: int) -> Asked:
    metadata = {"name": f"t{number}", "labels": {"decorate": "yes"}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "one"}}
    return Asked("POST", MAPS, body)


# What is there before


@contextmanager
def staged(which: Which) -> Iterator[tuple[Story, str]]:
    """A fresh server with `lamina run` on it, and where the hook is."""
    with start_server(which) as server:
        hook = subprocess.Popen(
            [sys.executable, "-m", "bench.hook"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        try:
            assert hook.stdout is not None
            url = f"http://127.0.0.1:{hook.stdout.readline().strip()}"
            with running(server, "metacontroller") as pid:
                yield Story(server, pid, ABOUT, partial(_calls, url)), url
        finally:
            hook.terminate()
            hook.wait()


def _calls(hook: str) -> int:
    with urlopen(hook) as answer:
        return int(answer.read())


def composite(story: Story, hook: str) -> None:
    """Have the kind of the parents there, and their controller."""
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
    story.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    spec = {
        "parentResource": {"apiVersion": f"{GROUP}/v1", "resource": "sets"},
        "childResources": [
            {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}
        ],
    }
    _controller(story, hook, "CompositeController", spec)


def decorator(story: Story, hook: str) -> None:
    """Have a DecoratorController there."""
    chosen = {"matchLabels": {"decorate": "yes"}}
    spec = {
        "resources": [{"apiVersion": "v1", "resource": "configmaps", "labelSelector": chosen}],
        "attachments": [
            {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}
        ],
    }
    _controller(story, hook, "DecoratorController", spec)


def _controller(story: Story, hook: str, kind: str, spec: Mapping[str, object]) -> None:
    hooks = {"sync": {"webhook": {"url": f"{hook}/sync"}}}
    controller = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "bench"},
        "spec": {**spec, "hooks": hooks},
    }
    path = f"{CONTROLLERS}/{kind.lower()}s"
    made = story.api.post(path, controller)
    if made.code != 201:
        raise BedError(f"the controller was refused: {made.text}")
    started = time.monotonic()
    while '"Started"' not in story.api.get(f"{path}/bench").text.replace(" ", ""):
        if time.monotonic() - started > 60:
            raise BedError("the controller did not start within 60 s")
        time.sleep(0.05)


# The table


def measured(which: Which, sizes: Sequence[tuple[int, int]], decorated: int) -> list[Row]:
    """Return the rows of one server; each size has a fresh one."""
    rows: list[Row] = []
    for parents, children in sizes:
        with staged(which) as (story, hook):
            composite(story, hook)
            for row in grow(story, parents, children):
                print(f"  {row.work}", file=sys.stderr, flush=True)
                rows.append(row)
    if decorated:
        with staged(which) as (story, hook):
            decorator(story, hook)
            rows += decorate(story, decorated)
    return rows


def growth(rows: Sequence[Row]) -> str:
    """Return what one write costs at each size: the same, where time is linear in the work."""
    lines = []
    for row in rows:
        if row.spent is not None and row.spent.writes and "nothing" in row.work:
            each = row.spent.processor / row.spent.writes * 1e6
            rate = row.spent.writes / row.spent.seconds
            lines.append(f"  {row.work}: {each:,.0f} us of CPU a write, {rate:,.0f} writes a second")
    return "\n".join(lines)


def main() -> int:
    """Print a table a server."""
    parser = argparse.ArgumentParser(prog="python -m bench.metacontroller", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="one server and not both")
    parser.add_argument(
        "--sizes", nargs="*", default=["100x10", "1000x10", "10000x1"], metavar="NxM",
        help="how many parents, with how many children each",
    )  # fmt: skip
    parser.add_argument(
        "--decorated", type=int, default=5000, metavar="N", help="how many objects to decorate"
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
