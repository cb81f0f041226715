"""
A hub to measure: a server with `lamina run`, clusters, their agents, and a placement that selects all clusters.

Agents are other processes, so that their cost is not counted as the hub's. One
process simulates the agents of all clusters and reports status at once; or real
agents apply the works.
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

from bench.measured_server import ROOT, TIMEOUT, BenchRequest, MeasuredServer, running
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
"""The resources of the hub's requests; only agents write the status of works."""
FINALIZED = ("PATCH manifestworks",)
"""Requests of real agents for the same resources: they add a finalizer to each work."""
AGENTS = 8
_DECIDED = 100
_PASSES = re.compile(
    r'^controller_runtime_reconcile_total\{controller="manifestworkreplicaset".*?\} (\S+)$', re.MULTILINE
)


Passes: TypeAlias = Callable[[], int]
Hub: TypeAlias = Callable[[Server], AbstractContextManager[tuple[int, Passes]]]
"""Runs a hub on a server, and yields its process ID and its number of reconciles."""


@contextmanager
def ours(server: Server) -> Iterator[tuple[int, Passes]]:
    """`lamina run`."""
    [port] = free_ports(1)
    metrics = f"127.0.0.1:{port}"
    with running(server, "manifestwork", "--metrics-address", metrics) as pid:
        yield pid, partial(_passes, f"http://{metrics}/metrics")


@contextmanager
def staged(which: Which, size: int, *, hub: Hub = ours, really: bool = False) -> Iterator[MeasuredServer]:
    """Start a server with a hub, agents, and a placement that selects all clusters."""
    with start_server(which) as server, hub(server) as (pid, passes):
        target = MeasuredServer(server, pid, ABOUT, passes, others=FINALIZED if really else ())
        _given(target, size)
        with _spokes(server, size) if really else _agents(server):
            yield target


def _passes(url: str) -> int:
    with urlopen(url) as answer:
        return sum(int(float(count)) for count in _PASSES.findall(answer.read().decode()))


@contextmanager
def _agents(server: Server) -> Iterator[None]:
    """Run simulated agents of all clusters, which report status at once."""
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
    """Run embedded clusters with real agents."""
    with _beside([sys.executable, "-m", "bench.spokes", server.kubeconfig, str(size)], said=""):
        yield


@contextmanager
def _beside(command: Sequence[str | Path], *, said: str) -> Iterator[None]:
    """Run a command until the end of the block: it prints `ready`, and ends when its standard input is closed."""
    agents = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert agents.stdin is not None and agents.stdout is not None
    try:
        print(said, file=agents.stdin, flush=True)
        if agents.stdout.readline().strip() != "ready":
            raise BedError("the agents did not start")
        yield
        if agents.poll() is not None:
            raise BedError("the agents ended before the measurement")
    finally:
        agents.stdin.close()
        agents.wait()


def _given(target: MeasuredServer, size: int) -> None:
    """Create the clusters' namespaces, and a placement with decisions that no scheduler changes."""
    target.send_each(size, lambda number: BenchRequest("POST", "/api/v1/namespaces", _named(f"c{number}")))
    target.send(BenchRequest("POST", f"{PLACES}/placements", _placement()))
    slices = range(0, size, _DECIDED)
    for number, first in enumerate(slices, 1):
        name = f"all-decision-{number}"
        labels = {f"{CLUSTERS}/placement": "all", f"{CLUSTERS}/decision-group-index": "0"}
        decision = {**_named(name), "apiVersion": f"{CLUSTERS}/v1beta1", "kind": "PlacementDecision"}
        decision["metadata"]["labels"] = labels
        chosen = [
            {"clusterName": f"c{one}", "reason": ""} for one in range(first, min(first + _DECIDED, size))
        ]
        target.send(BenchRequest("POST", f"{PLACES}/placementdecisions", decision))
        status = {"status": {"decisions": chosen}}
        target.send(BenchRequest("PATCH", f"{PLACES}/placementdecisions/{name}/status", status))
    if target.server.name == "real":
        _whole(target, size)


def _whole(target: MeasuredServer, size: int) -> None:
    """Wait until the controllers of a real control plane have filled every namespace; that load is not measured."""
    started = time.monotonic()
    for plural in ("serviceaccounts", "configmaps"):
        while (
            target.get(f"/api/v1/{plural}?limit=1", f"LIST {plural}")["metadata"].get("remainingItemCount", 0)
            < size
        ):
            if time.monotonic() - started > TIMEOUT:
                raise BedError(f"there were no {size} {plural} within {TIMEOUT:.0f} s")
            time.sleep(0.5)


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def _placement() -> Mapping[str, Any]:
    unscheduled = {f"{CLUSTERS}/experimental-scheduling-disable": "true"}
    metadata = {"name": "all", "annotations": unscheduled}
    return {"apiVersion": f"{CLUSTERS}/v1beta1", "kind": "Placement", "metadata": metadata, "spec": {}}
