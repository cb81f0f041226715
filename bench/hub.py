"""
A hub to be measured: a server with `lamina run` on it, clusters, their agents, and a placement that selects everybody.

Agents are processes of their own, so that what they use is not counted as the
hub's. One stands for those of all clusters and answers at once; or there are
real ones, which apply what they are sent.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import urlopen

from bench.story import PATIENCE, ROOT, Asked, Story, running
from tests.bed.build import LOAD_GENERATOR, built
from tests.bed.either import start_server
from tests.bed.processes import free_ports
from tests.bed.server import Server, Which
from tests.bed.trouble import BedError

WORKS = "work.open-cluster-management.io"
CLUSTERS = "cluster.open-cluster-management.io"
PLACES = f"/apis/{CLUSTERS}/v1beta1/namespaces/default"
SETS = f"/apis/{WORKS}/v1alpha1/namespaces/default/manifestworkreplicasets"
ABOUT = (
    "manifestworkreplicasets", "manifestworkreplicasets/status", "manifestworks", "controllerrevisions",
    "placements", "placements/status", "placementdecisions", "placementdecisions/status", "events",
)  # fmt: skip
"""What the hub asks for; how their works do, agents alone say."""
FINALIZED = ("PATCH manifestworks",)
"""What real agents ask for themselves of the same kinds: that a work stays until they have seen to its end."""
AGENTS = 8
_DECIDED = 100
_PASSES = re.compile(
    r'^controller_runtime_reconcile_total\{controller="manifestworkreplicaset".*?\} (\S+)$', re.MULTILINE
)


Passes: TypeAlias = Callable[[], int]
Hub: TypeAlias = Callable[[Server], AbstractContextManager[tuple[int, Passes]]]
"""Whoever sends works out: runs on a server, and says which process that is and how many passes it has made."""


@contextmanager
def ours(server: Server) -> Iterator[tuple[int, Passes]]:
    """`lamina run`."""
    [port] = free_ports(1)
    metrics = f"127.0.0.1:{port}"
    with running(server, "manifestwork", "--metrics-address", metrics) as pid:
        yield pid, partial(_passes, f"http://{metrics}/metrics")


@contextmanager
def staged(which: Which, size: int, *, hub: Hub = ours, really: bool = False) -> Iterator[Story]:
    """A fresh server with a hub on it, agents, and a placement that selects everybody."""
    with start_server(which) as server, hub(server) as (pid, passes):
        story = Story(server, pid, ABOUT, passes, others=FINALIZED if really else ())
        _given(story, size)
        with _spokes(server, size) if really else _agents(server):
            yield story


def _passes(url: str) -> int:
    with urlopen(url) as answer:
        return sum(int(float(count)) for count in _PASSES.findall(answer.read().decode()))


@contextmanager
def _agents(server: Server) -> Iterator[None]:
    """Agents that answer at once, for all clusters."""
    command: list[str | Path] = [
        built(LOAD_GENERATOR),
        "--op=agents",
        f"--address={urlsplit(server.url).netloc}",
        f"--ca={server.ca_file}",
        f"--clients={AGENTS}",
    ]
    with _beside(command, said=server.token):
        yield


@contextmanager
def _spokes(server: Server, size: int) -> Iterator[None]:
    """Embedded clusters with real agents."""
    with _beside([sys.executable, "-m", "bench.spokes", server.kubeconfig, str(size)], said=""):
        yield


@contextmanager
def _beside(command: Sequence[str | Path], *, said: str) -> Iterator[None]:
    """Run something until the end of the block that says when it is ready, and ends when nobody speaks to it any more."""
    agents = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert agents.stdin is not None and agents.stdout is not None
    try:
        print(said, file=agents.stdin, flush=True)
        if agents.stdout.readline().strip() != "ready":
            raise BedError("the agents did not start")
        yield
        if agents.poll() is not None:
            raise BedError("the agents gave up before the end")
    finally:
        agents.stdin.close()
        agents.wait()


def _given(story: Story, size: int) -> None:
    """Have the clusters' namespaces there, and the decisions of a placement that nobody schedules."""
    story.each(size, lambda number: Asked("POST", "/api/v1/namespaces", _named(f"c{number}")))
    story.ask(Asked("POST", f"{PLACES}/placements", _placement()))
    slices = range(0, size, _DECIDED)
    for number, first in enumerate(slices, 1):
        name = f"all-decision-{number}"
        labels = {f"{CLUSTERS}/placement": "all", f"{CLUSTERS}/decision-group-index": "0"}
        decision = {**_named(name), "apiVersion": f"{CLUSTERS}/v1beta1", "kind": "PlacementDecision"}
        decision["metadata"]["labels"] = labels
        chosen = [
            {"clusterName": f"c{one}", "reason": ""} for one in range(first, min(first + _DECIDED, size))
        ]
        story.ask(Asked("POST", f"{PLACES}/placementdecisions", decision))
        status = {"status": {"decisions": chosen}}
        story.ask(Asked("PATCH", f"{PLACES}/placementdecisions/{name}/status", status))
    if story.server.name == "real":
        _whole(story, size)


def _whole(story: Story, size: int) -> None:
    """Wait until every namespace has what a real control plane makes in it: that is work, and none of ours."""
    started = time.monotonic()
    for plural in ("serviceaccounts", "configmaps"):
        while (
            story.get(f"/api/v1/{plural}?limit=1", f"LIST {plural}")["metadata"].get("remainingItemCount", 0)
            < size
        ):
            if time.monotonic() - started > PATIENCE:
                raise BedError(f"there were no {size} {plural} within {PATIENCE:.0f} s")
            time.sleep(0.5)


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def _placement() -> Mapping[str, Any]:
    unscheduled = {f"{CLUSTERS}/experimental-scheduling-disable": "true"}
    metadata = {"name": "all", "annotations": unscheduled}
    return {"apiVersion": f"{CLUSTERS}/v1beta1", "kind": "Placement", "metadata": metadata, "spec": {}}
