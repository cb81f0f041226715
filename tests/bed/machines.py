"""
Nodes for a control plane that has none: `python -m tests.bed.machines --kubeconfig FILE`.

Runs the nodes, scheduler, stages and volumes of the embedded control plane against any
server. On a real one they replace kubelets and storage.
"""

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

import uvloop

from lamina.actors import machines
from lamina.actors.workloads.pv_provisioner import PROVISIONING, STANDARD
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane.load_stages import load_stages
from lamina.errors import AlreadyExists
from lamina.logs import log
from lamina.runtime.controller.manager import Manager


def command(kubeconfig: Path, *, nodes: int = 1) -> list[str | Path]:
    """Return the command line."""
    return [sys.executable, "-m", __name__, "--kubeconfig", kubeconfig, "--nodes", str(nodes)]


async def _run(kubeconfig: Path, stages: Path | None, nodes: int) -> None:
    transport = HttpTransport(read_kubeconfig(kubeconfig))
    client = Client(transport)
    with suppress(AlreadyExists):
        await client.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **STANDARD})
    actors = (*machines(load_stages(stages), nodes), PROVISIONING)
    manager = Manager(client, actors, clock=WallClock(), log=log)
    running = asyncio.create_task(manager.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        pass
    finally:
        await transport.close()


def main() -> None:
    """Run until terminated."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, metavar="FILE")
    parser.add_argument("--stages", type=Path, metavar="FILE", help="stages instead of the usual ones")
    parser.add_argument("--nodes", type=int, default=1, metavar="N")
    asked = parser.parse_args()
    log.configure("warning", "text")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(asked.kubeconfig, asked.stages, asked.nodes))


if __name__ == "__main__":
    main()
