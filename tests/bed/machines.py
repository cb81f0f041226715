"""
Machines for a control plane that has none: `python -m tests.bed.machines --kubeconfig FILE`.

The nodes, the scheduler, the stages and the volumes of the embedded control
plane, run from outside against any server. On a real one they take the place of
kubelets and of storage.
"""

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

import uvloop

from lamina.actors import machines
from lamina.actors.workloads.provisioning import PROVISIONING, STANDARD
from lamina.client.client import Client
from lamina.client.http import HttpTransport
from lamina.client.kubeconfig import read_kubeconfig
from lamina.clock import WallClock
from lamina.errors import AlreadyExists
from lamina.logs import log
from lamina.runtime.manager import Manager
from lamina.stages import load_stages


def command(kubeconfig: Path, *, nodes: int = 1) -> list[str | Path]:
    """Return how to start them."""
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
    """Run until told to stop."""
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
