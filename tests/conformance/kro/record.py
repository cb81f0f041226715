"""Records what kro's controller makes of its examples, on a real server for each round."""

import asyncio
import sys

from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from tests.bed.kro import kro
from tests.bed.processes import end_tidily_on_signals
from tests.bed.real import real_server
from tests.bed.server import Server
from tests.conformance.kro.corpus import FIRST, ROUNDS, Examples, Manifest, write_examples, write_recorded
from tests.conformance.kro.play import Round
from tests.conformance.kro.upstream import examples

QUIET, TIMEOUT = 12.0, 300.0
"""kro looks again after three seconds, and later after each failure."""


def record() -> None:
    """Read the examples of kro's module, apply them to real servers with kro's controller, and write both down."""
    end_tidily_on_signals()
    found = examples()
    write_examples(found)
    write_recorded({name: asyncio.run(_round(name, found.of(name))) for name in (FIRST, *ROUNDS)})


async def _round(name: str, chosen: Examples) -> Manifest:
    print(f"the {name} round: {len(chosen.definitions)} definitions", file=sys.stderr, flush=True)
    with real_server() as server:
        without_workloads(server)
        with kro(server):
            client = Client(HttpTransport(read_kubeconfig(server.kubeconfig)))
            try:
                played = Round(client, chosen, timeout=TIMEOUT)
                await played.define()
                await played.instantiate()
                return await played.settled(quiet=QUIET)
            finally:
                await client.close()


def without_workloads(server: Server) -> None:
    """Stop the controllers of built-in kinds: the statuses that they would write are in the examples."""
    for program in server.programs:
        if program.name == "kube-controller-manager":
            program.stop()
