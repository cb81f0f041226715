"""
Embedded clusters with agents, in one process: `python -m bench.spokes KUBECONFIG N`.

The clusters are c0 to cN-1, and their agents apply the works of the hub. Prints
`ready` when all agents are, and runs until its standard input ends.
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.clock import WallClock
from lamina.control_plane import hub as control_plane_hub
from lamina.control_plane.cluster import EmbeddedCluster
from lamina.core.model.agents import AgentSpec
from lamina.families.registry import agents
from lamina.logs import log
from lamina.runtime.controller.manager import Manager
from lamina.settings import Settings

_AT_ONCE = 8


def agent(name: str, hub: Client, address: str, cluster: EmbeddedCluster) -> Manager:
    """Return the agent of a cluster."""
    spec = AgentSpec(cluster=name, address=address)
    return control_plane_hub.agent(agents(), spec, cluster.client(), hub, clock=WallClock())


async def run_clusters(access: Access, size: int) -> None:
    """Join N clusters to a hub, and run them until standard input ends."""
    transport = HttpTransport(access)
    hub, turns = Client(transport), asyncio.Semaphore(_AT_ONCE)
    await hub.discover()

    async def start(name: str, ending: AsyncExitStack) -> None:
        async with turns:
            await control_plane_hub.join(agents(), hub, name)
            run = partial(agent, name, hub, access.server)
            settings = Settings(families="none", simulate="controllers")
            cluster = EmbeddedCluster(settings, name=name, crd_providers=(agents(),), extra_managers=(run,))
            await ending.enter_async_context(cluster)
            for manager in cluster.managers:
                await manager.ready()

    async with AsyncExitStack() as ending:
        ending.push_async_callback(transport.close)
        await asyncio.gather(*(start(f"c{number}", ending) for number in range(size)))
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    log.configure("error", "text")
    kubeconfig, size = Path(sys.argv[1]), int(sys.argv[2])
    uvloop.run(run_clusters(read_kubeconfig(kubeconfig), size))


if __name__ == "__main__":
    main()
