"""
Our hub beside the original one, in turns: `python -m bench.beside`.

Open Cluster Management's own hub, built from its public module, its client
limits lifted, and `lamina run`: each sends the same works to as many clusters,
on a fresh real server each, again and again, one after the other. A machine
that is slow for a while is slow for both. Each is done when the last work is
written, whatever its status says by then.
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
from bench.report import aligned
from bench.run import QUIET
from bench.story import PATIENCE, ROOT, Asked, Mark, Spent, Story
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
"""How finely the original's processor time is looked at, to tell whether it does anything."""


@contextmanager
def original(server: Server) -> Iterator[tuple[int, Passes]]:
    """Open Cluster Management's hub. It does not say how many passes it makes; that it rests is seen from outside."""
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
    """Have the kinds there: ours are the original's."""
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
    # A kind is listed before it can be watched.
    while any(api.get(f"{kind}?watch=true&timeoutSeconds=1").code != 200 for kind in (SETS, _MANIFESTWORKS)):
        if time.monotonic() - started > 60:
            raise BedError("the kinds were not served within 60 s")
        time.sleep(0.1)


HUBS: Mapping[str, Hub] = {"original": original, "ours": ours}


def works(size: int) -> tuple[tuple[str, Asked], ...]:
    """Return what is asked for, one after another."""
    return (
        (f"{size:,} clusters, from nothing", Asked("POST", SETS, replica_set("one"))),
        (f"an edit of all {size:,}", edit("two", ALL)),
        (f"an edit of {size:,}, a tenth at a time", edit("three", TENTH)),
    )


def round_of(hub: Hub, size: int) -> Mapping[str, Spent]:
    """Return what each of the works took on a fresh server."""
    taken = {}
    with staged("real", size, hub=hub) as story:
        story.until_quiet()
        for work, ask in works(size):
            since = story.mark()
            story.ask(ask)
            ended = _until_written(story, since, size)
            story.until_quiet()
            taken[work] = story.spent(since, until=ended)
    return taken


def _until_written(story: Story, since: Mark, size: int) -> float:
    """Wait until as many works have been written as there are clusters, and return when that was."""
    while time.monotonic() - since.at < PATIENCE:
        asked = story.requests() - since.requests
        if sum(asked[name] for name in _WRITTEN) >= size:
            return time.monotonic()
        time.sleep(_LOOK)
    raise BedError(f"not all works were written within {PATIENCE:.0f} s")


HEAD = ("", "seconds", "requests", "CPU s", "MiB", "server CPU s")


def lines(rounds: Mapping[str, Sequence[Mapping[str, Spent]]], size: int) -> Iterator[Sequence[str]]:
    """Yield the middle of what each took, and by how much ours is better."""
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
    parser.add_argument("--size", type=int, default=1000, metavar="N", help="how many clusters")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how many turns each has")
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
        print(f"the machine was busy with other things (load {busy:.1f}): these figures prove nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
