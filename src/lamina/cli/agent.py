"""`lamina agent`: what makes a cluster one of a hub's."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamina.cli import manner
from lamina.cli.counting import Counting, probe_options
from lamina.cli.foreground import stopping, unless, until
from lamina.cli.reaching import cluster_options, reach
from lamina.client.kubeconfig import read_kubeconfig

if TYPE_CHECKING:
    from lamina.client.kubeconfig import Access

_TIME = manner.TIME
_HUB = "name the hub's with --hub-kubeconfig FILE; `lamina status` says where that of a server of ours is"


@click.command()
@click.option("--cluster", metavar="NAME", required=True, help="What the hub calls this cluster.")
@click.option(
    "--hub-kubeconfig",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="How to reach the hub.",
)
@click.option("--hub-context", metavar="NAME", default="", help="Which context of the hub's kubeconfig.")
@click.option("--join", is_flag=True, help="Have the hub know the cluster and accept it, if it does not yet.")
@click.option(
    "--install/--no-install", default=True, show_default=True, help="Have the agent's own kinds served first."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=10,
    show_default=True,
    help="How many works are worked on side by side.",
)
@click.option(
    "--reapply",
    type=_TIME,
    metavar="TIME",
    default="4m",
    show_default=True,
    help="How long a work is left alone at most; up to half of it more.",
)
@click.option(
    "--status-interval",
    type=_TIME,
    metavar="TIME",
    default="10s",
    show_default=True,
    help="How often objects are looked at that cannot be watched; up to nine tenths of it more.",
)
@click.option(
    "--eviction",
    type=_TIME,
    metavar="TIME",
    default="60m",
    show_default=True,
    help="How long objects stay whose work has vanished from the hub; 100 years mean for ever.",
)
@click.option(
    "--agent-id",
    metavar="NAME",
    default="",
    help="Which of the agents of this cluster it is; what it left behind here it finds again by that, "
    "whichever hub it has then. Default: one for each hub.",
)
@click.option("--raw-feedback", is_flag=True, help="Let feedback be more than one plain value, as JSON.")
@click.option(
    "--hub-qps",
    type=click.FloatRange(0),
    metavar="N",
    default=50,
    show_default=True,
    help="How many requests a second are sent to the hub; 0 for as many as it takes.",
)
@click.option(
    "--hub-burst",
    type=click.IntRange(1),
    metavar="N",
    default=100,
    show_default=True,
    help="How many requests are sent to it at once, where there is such a limit.",
)
@probe_options
@manner.log_options
@cluster_options
def agent(
    cluster: str,
    hub_kubeconfig: Path,
    hub_context: str,
    kubeconfig: Path | None,
    context: str,
    **flags: Any,
) -> None:
    """
    Run the agent of a cluster against its hub.

    It applies the ManifestWorks that the hub has for the cluster, says how they
    do, and keeps the hub informed that the cluster is there. Stays in the
    foreground until Ctrl-C or SIGTERM.
    """
    import uvloop

    from lamina.logs import log

    hub, access = read_kubeconfig(hub_kubeconfig, hub_context, hint=_HUB), reach(kubeconfig, context)
    log.configure(manner.log_level(flags), manner.log_format(flags))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(cluster, hub, access, flags))


async def _serve(name: str, hub_access: Access, access: Access, flags: manner.Flags) -> None:
    """Run an agent until a signal says otherwise."""
    from lamina import agents, product
    from lamina.client.client import Client
    from lamina.client.http import HttpTransport
    from lamina.clock import WallClock
    from lamina.rates import Bucket

    stop = stopping()
    async with AsyncExitStack() as ending:
        counting = Counting(flags, access.server)
        near, far = counting.counted(HttpTransport(access)), HttpTransport(hub_access)
        for transport in (near, far):
            ending.push_async_callback(transport.close)
        limit = Bucket(flags["hub_qps"], flags["hub_burst"]) if flags["hub_qps"] else None
        client, hub = counting.client(near), Client(counting.limited(far, limit))
        await ending.enter_async_context(counting.listening())

        async def prepare() -> None:
            await product.reached(hub)
            if flags["join"]:
                await agents.join(hub, name, access.server)
            await agents.check_known(hub, name, hub_access.server)
            await product.reached(client)
            if flags["install"]:
                await product.install(client, (agents.Kinds(),))

        if not await unless(stop, prepare()):
            return
        manager = agents.agent(
            client,
            hub,
            name,
            address=hub_access.server,
            id=flags["agent_id"],
            clock=WallClock(),
            version=await agents.version(client),
            options=_options(flags),
            meters=counting.meters,
        )
        running = asyncio.create_task(manager.run())
        if await unless(stop, manager.ready()):
            counting.is_ready = True
            click.echo(f"lamina is the agent of {name} on {access.server}, for {hub_access.server}", err=True)
        await until(stop, manager, (running,))


def _options(flags: manner.Flags) -> Any:
    from lamina.families.manifestwork.spoke.names import Options

    return Options(
        workers=flags["workers"],
        reapply=timedelta(seconds=flags["reapply"]),
        poll=timedelta(seconds=flags["status_interval"]),
        eviction=timedelta(seconds=flags["eviction"]),
        raw_feedback=flags["raw_feedback"],
    )
