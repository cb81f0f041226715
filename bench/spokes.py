"""
Clusters with real agents, in a process of their own: `python -m bench.spokes KUBECONFIG N`.

Each is an embedded cluster, and its agent applies there what the hub has for
it. They are called c0 and so on. Says `ready` once all of them are, and stays
until its standard input ends.
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from lamina import agents
from lamina.client.client import Client
from lamina.client.http import HttpTransport
from lamina.client.kubeconfig import Access, read_kubeconfig
from lamina.clock import WallClock
from lamina.embedded import EmbeddedCluster
from lamina.logs import log
from lamina.runtime.manager import Manager
from lamina.settings import Settings

_AT_ONCE = 8


def agent(name: str, hub: Client, address: str, cluster: EmbeddedCluster) -> Manager:
    """Return the agent of a cluster."""
    return agents.agent(cluster.client(), hub, name, address=address, clock=WallClock())


async def attend(access: Access, size: int) -> None:
    """Have so many clusters join a hub, and run them until standard input ends."""
    transport = HttpTransport(access)
    hub, turns = Client(transport), asyncio.Semaphore(_AT_ONCE)
    await hub.discover()

    async def start(name: str, ending: AsyncExitStack) -> None:
        async with turns:
            await agents.join(hub, name)
            run = partial(agent, name, hub, access.server)
            settings = Settings(families="none", simulate="controllers")
            cluster = EmbeddedCluster(settings, name=name, serves=(agents.Kinds(),), also=(run,))
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
    uvloop.run(attend(read_kubeconfig(kubeconfig), size))


if __name__ == "__main__":
    main()
