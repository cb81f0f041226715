"""
What Metacontroller costs: `python -m bench.metacontroller`.

`lamina run` is a process of its own, against the embedded server or a real one,
with ConfigMaps as children and a hook that is never the bottleneck. Requests are
those the server counted, less what making the parents took.
"""

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bench.usage import processor_seconds, resident_bytes
from tests.bed.either import start_server
from tests.bed.processes import end_tidily_on_signals
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError

ROOT = Path(__file__).parents[1]
GROUP = "bench.example.com"
PARENTS = f"/apis/{GROUP}/v1/namespaces/default/sets"
CONTROLLERS = "/apis/metacontroller.k8s.io/v1alpha1"
PATIENCE = 900.0
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*?)\} (\S+)$", re.MULTILINE)
_COLUMNS = ("work", "seconds", "requests", "writes", "least", "its CPU s", "MiB", "by verb")


class Story:
    """One server with Metacontroller on it."""

    def __init__(self, server: Server, pid: int) -> None:
        self.server, self.pid, self.api = server, pid, server.api()

    def requests(self) -> Counter[str]:
        """Return how many requests the server has counted, by verb, without watches and health."""
        found: Counter[str] = Counter()
        for labels, count in _REQUESTS.findall(self.api.get("/metrics").text):
            named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            if named.get("resource") and named.get("verb") not in ("WATCH", "CONNECT"):
                found[f"{named['verb']} {named['resource']}"] += int(float(count))
        return found

    def measured(
        self, work: str, least: int, own: Counter[str], start: float, before: Counter[str], cpu: float
    ) -> list[str]:
        """Return a row of the table: what came of some work since it began."""
        spent = self.requests() - before - own
        spent = Counter(
            {name: count for name, count in spent.items() if "events" not in name and "leases" not in name}
        )
        verbs: Counter[str] = Counter()
        for name, count in spent.items():
            verbs[name.split()[0]] += count
        writes = sum(count for verb, count in verbs.items() if verb not in ("GET", "LIST"))
        return [
            work,
            f"{time.monotonic() - start:.1f}",
            str(sum(verbs.values())),
            str(writes),
            str(least),
            f"{processor_seconds([self.pid]) - cpu:.1f}",
            f"{resident_bytes([self.pid]) / 2**20:.0f}",
            " ".join(f"{verb}:{count}" for verb, count in sorted(verbs.items())),
        ]

    def settled(self, count: int, value: str, verb: str, before: Counter[str]) -> None:
        """
        Wait until there are so many children, all with that value.

        Writes are counted first: a list of everything, again and again, would be most of the work.
        """
        started = time.monotonic()
        while time.monotonic() - started < PATIENCE:
            written = self.requests() - before
            if written[f"{verb} configmaps"] >= count:
                listed = self.api.get("/api/v1/namespaces/default/configmaps?labelSelector=of").json["items"]
                if len(listed) == count and all(one["data"]["value"] == value for one in listed):
                    return
            time.sleep(0.25)
        raise BedError(f"{count} children were not {value} within {PATIENCE:.0f} s")


def grow(story: Story, parents: int, children: int) -> Iterator[list[str]]:
    """Make parents, wait for their children, and edit all of them."""
    spec = {"children": children, "value": "one"}
    begun = time.monotonic(), story.requests(), processor_seconds([story.pid])
    _each(parents, lambda number: story.api.post(PARENTS, _parent(number, spec)))
    story.settled(parents * children, "one", "POST", begun[1])
    own = Counter({"POST sets": parents})
    yield story.measured(
        f"{parents} x {children}, from nothing", parents * (children + 1), own, begun[0], begun[1], begun[2]
    )
    begun = time.monotonic(), story.requests(), processor_seconds([story.pid])
    _each(parents, lambda number: story.api.patch(f"{PARENTS}/p{number}", {"spec": {"value": "two"}}))
    story.settled(parents * children, "two", "PATCH", begun[1])
    own = Counter({"PATCH sets": parents})
    yield story.measured(
        f"an edit of all {parents}", parents * (children + 1), own, begun[0], begun[1], begun[2]
    )
    begun = time.monotonic(), story.requests(), processor_seconds([story.pid])
    for turn in range(100):
        story.api.patch(
            "/api/v1/namespaces/default/configmaps/p0-0", {"metadata": {"labels": {"turn": str(turn)}}}
        )
    time.sleep(1.0)
    own = Counter({"PATCH configmaps": 100})
    yield story.measured(
        f"one of {parents * children} flickering 100 times", 0, own, begun[0], begun[1], begun[2]
    )


def _each(count: int, make: object) -> None:
    assert callable(make)
    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(make, range(count)):
            if answer.code not in (200, 201):
                raise BedError(f"a parent was refused: {answer.text}")


def _parent(number: int, spec: dict[str, object]) -> dict[str, object]:
    selector = {"matchLabels": {"of": f"p{number}"}}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Set",
        "metadata": {"name": f"p{number}"},
        "spec": {"selector": selector, **spec},
    }


@contextmanager
def staged(which: Which) -> Iterator[Story]:
    """A fresh server with the kind, the hook and the controller on it."""
    with start_server(which) as server:
        hook = subprocess.Popen(
            [sys.executable, "-m", "bench.hook"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert hook.stdout is not None
        port = hook.stdout.readline().strip()
        run = subprocess.Popen(
            [sys.executable, "-m", "lamina", "run", "--no-leader-election", "--kubeconfig", str(server.kubeconfig),
             "--log", "error"],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert run.stderr is not None
            run.stderr.readline()
            story = Story(server, run.pid)
            _define(story, port)
            yield story
        finally:
            for process in (run, hook):
                process.terminate()
                process.wait()


def _define(story: Story, port: str) -> None:
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
    controller = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "bench"},
        "spec": {
            "parentResource": {"apiVersion": f"{GROUP}/v1", "resource": "sets"},
            "childResources": [
                {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}
            ],
            "hooks": {"sync": {"webhook": {"url": f"http://127.0.0.1:{port}/sync"}}},
        },
    }
    made = story.api.post(f"{CONTROLLERS}/compositecontrollers", controller)
    if made.code != 201:
        raise BedError(f"the controller was refused: {made.text}")
    while "Ready" not in story.api.get(f"{CONTROLLERS}/compositecontrollers/bench").text:
        time.sleep(0.05)


def main() -> int:
    """Print a table a server."""
    parser = argparse.ArgumentParser(prog="python -m bench.metacontroller", description=__doc__)
    parser.add_argument("--only", choices=["embedded", "real"], help="one server and not both")
    parser.add_argument(
        "--parents", type=int, nargs="+", default=[100, 1000], metavar="N", help="how many parents"
    )
    parser.add_argument("--children", type=int, default=10, metavar="N", help="how many children each")
    asked = parser.parse_args()
    end_tidily_on_signals()
    servers: list[Which] = [asked.only] if asked.only else ["real", "embedded"]
    for which in servers:
        rows: list[list[str]] = []
        for parents in asked.parents:
            with staged(which) as story:
                rows += list(grow(story, parents, asked.children))
        widths = [max(len(row[place]) for row in [list(_COLUMNS), *rows]) for place in range(len(_COLUMNS))]
        print(f"\n{which}")
        for row in [list(_COLUMNS), *rows]:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
