"""
Lamina's hub and the original one, in alternating rounds: `python -m bench.beside`.

Open Cluster Management's hub, built from its public module and without client rate
limits, and `lamina run` send the same works to the same number of clusters, each on
a new real server. Rounds alternate, so that a slow minute of the machine affects
both. A round ends when the last work is written, whatever its status.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median

import orjson

from bench.changes import ALL, TENTH, edit, replica_set
from bench.hub import SETS, WORKS, Hub, Passes, ours, staged
from bench.measured_server import ROOT, TIMEOUT, BenchRequest, Mark, MeasuredServer, Spent
from bench.report import aligned
from bench.run import QUIET
from bench.usage import processor_seconds
from tests.bed.build import OCM_HUB, built
from tests.bed.processes import end_tidily_on_signals, free_ports
from tests.bed.server import Server
from tests.bed.trouble import BedError

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MANIFESTWORKS = f"/apis/{WORKS}/v1/manifestworks"
_WRITTEN = ("POST manifestworks", "PUT manifestworks", "PATCH manifestworks")
_LOOK = 0.1
_STEP = 50
"""Resolution at which the original's processor time is compared, to detect that it is idle."""


@contextmanager
def original(server: Server) -> Iterator[tuple[int, Passes]]:
    """Run Open Cluster Management's hub; it does not export reconciles, so its processor time shows whether it is idle."""
    _define(server)
    [port] = free_ports(1)
    hub = subprocess.Popen(
        [built(OCM_HUB), "manager", "--kubeconfig", server.kubeconfig, "--namespace", "default",
         "--disable-leader-election", "--feature-gates=ManifestWorkReplicaSet=true",
         "--kube-api-qps=100000", "--kube-api-burst=100000", f"--listen=127.0.0.1:{port}"],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield hub.pid, lambda: int(processor_seconds([hub.pid]) * _STEP)
    finally:
        hub.terminate()
        hub.wait()


def _define(server: Server) -> None:
    """Install the definitions; Lamina's are the original's."""
    printed = subprocess.run(
        [sys.executable, "-m", "lamina", "crds", "--families", "manifestwork", "-o", "json"],
        cwd=ROOT, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    api = server.api()
    for definition in orjson.loads(printed.stdout)["items"]:
        made = api.post(_DEFINITIONS, definition)
        if made.code != 201:
            raise BedError(f"a definition was refused: {made.text}")
    started = time.monotonic()
    # A kind can be listed before it can be watched.
    while any(api.get(f"{kind}?watch=true&timeoutSeconds=1").code != 200 for kind in (SETS, _MANIFESTWORKS)):
        if time.monotonic() - started > 60:
            raise BedError("the kinds were not served within 60 s")
        time.sleep(0.1)


HUBS: Mapping[str, Hub] = {"original": original, "ours": ours}


def works(size: int) -> tuple[tuple[str, BenchRequest], ...]:
    """Return the operations, in order."""
    return (
        (f"{size:,} clusters, from nothing", BenchRequest("POST", SETS, replica_set("one"))),
        (f"an edit of all {size:,}", edit("two", ALL)),
        (f"an edit of {size:,}, a tenth at a time", edit("three", TENTH)),
    )


def round_of(hub: Hub, size: int) -> Mapping[str, Spent]:
    """Return the cost of each operation on a new server."""
    taken = {}
    with staged("real", size, hub=hub) as target:
        target.until_quiet()
        for work, ask in works(size):
            since = target.mark()
            target.send(ask)
            ended = _until_written(target, since, size)
            target.until_quiet()
            taken[work] = target.spent(since, until=ended)
    return taken


def _until_written(target: MeasuredServer, since: Mark, size: int) -> float:
    """Wait until the server has counted a write for each cluster, and return the time."""
    while time.monotonic() - since.at < TIMEOUT:
        asked = target.requests() - since.requests
        if sum(asked[name] for name in _WRITTEN) >= size:
            return time.monotonic()
        time.sleep(_LOOK)
    raise BedError(f"not all works were written within {TIMEOUT:.0f} s")


HEAD = ("", "seconds", "requests", "CPU s", "MiB", "server CPU s")


def lines(rounds: Mapping[str, Sequence[Mapping[str, Spent]]], size: int) -> Iterator[Sequence[str]]:
    """Yield the medians of both hubs, and their ratios."""
    for work, _ in works(size):
        middles = {name: _middle([one[work] for one in those]) for name, those in rounds.items()}
        for name, figures in middles.items():
            yield (f"{work}, {name}", *(f"{figure:,.1f}" for figure in figures))
        pairs = zip(middles["original"], middles["ours"], strict=True)
        yield ("    better by", *(f"{theirs / our:.2f}x" if our else "" for theirs, our in pairs))


def _middle(spent: Sequence[Spent]) -> tuple[float, ...]:
    return tuple(
        median(figures)
        for figures in zip(
            *(
                (one.seconds, one.requests.total(), one.processor, one.resident / 2**20, one.served)
                for one in spent
            ),
            strict=True,
        )
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("--size", type=int, default=1000, metavar="N", help="number of clusters")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds for each hub")
    asked = parser.parse_args()
    end_tidily_on_signals()
    busy = os.getloadavg()[0]
    rounds: dict[str, list[Mapping[str, Spent]]] = {name: [] for name in HUBS}
    for number in range(asked.rounds):
        for name, hub in HUBS.items():
            print(f"  round {number + 1}, {name}", file=sys.stderr, flush=True)
            rounds[name].append(round_of(hub, asked.size))
    print(
        f"Open Cluster Management {OCM_HUB.version} and Lamina on a real server, {asked.rounds} rounds each"
    )
    print(aligned(HEAD, *lines(rounds, asked.size)))
    if busy > QUIET:
        print(f"the machine was busy (load {busy:.1f}): these figures are not reliable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
