"""`lamina agent`: runs the agent of a managed cluster against its hub."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.options import run_flags
from lamina.cli.options.cluster_flags import cluster_options, load_access
from lamina.cli.options.metrics_flags import ProcessMetrics, check_secure, probe_options
from lamina.cli.signals import announce_stop, run_unless, run_until, stop_event
from lamina.client.kubeconfig.read import read_kubeconfig

if TYPE_CHECKING:
    from lamina.client.kubeconfig.read import Access
    from lamina.core.model.agents import AgentOptions

_TIME = run_flags.TIME
_BOOTSTRAP = "`lamina clusters token` on the hub prints one"
_HUB = "name the hub's with --hub-kubeconfig FILE; `lamina status` prints those of servers of `lamina up`"


@click.command()
@click.option("--cluster", metavar="NAME", required=True, help="Name of this cluster on the hub.")
@click.option(
    "--hub-kubeconfig",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="Kubeconfig of the hub; with --bootstrap-kubeconfig it is written when the cluster has joined.",
)
@click.option(
    "--bootstrap-kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Join the hub with this kubeconfig, which `lamina clusters token` prints, unless --hub-kubeconfig "
    "exists; the client certificate is renewed while the agent runs.",
)
@click.option("--hub-context", metavar="NAME", default="", help="Context of the hub's kubeconfig.")
@click.option("--join", is_flag=True, help="Register the cluster with the hub and accept it, if necessary.")
@click.option(
    "--install/--no-install", default=True, show_default=True,
    help="Install the agent's CustomResourceDefinitions on its cluster first.",
)  # fmt: skip
@click.option(
    "--workers",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=10,
    show_default=True,
    help="Maximum number of concurrent reconciles.",
)
@click.option(
    "--reapply",
    type=_TIME,
    metavar="TIME",
    default="4m",
    show_default=True,
    help="Resync period of a ManifestWork; jitter adds up to half of it.",
)
@click.option(
    "--status-interval",
    type=_TIME,
    metavar="TIME",
    default="10s",
    show_default=True,
    help="Poll period of objects that cannot be watched; jitter adds up to nine tenths of it.",
)
@click.option(
    "--eviction",
    type=_TIME,
    metavar="TIME",
    default="60m",
    show_default=True,
    help="Time until the objects of a ManifestWork that is gone from the hub are deleted; 100 years mean never.",
)
@click.option(
    "--agent-id",
    metavar="NAME",
    default="",
    help="Agent ID in AppliedManifestWorks; an agent adopts those with its ID when it moves to another hub. "
    "Default: derived from the hub.",
)
@click.option(
    "--raw-feedback", is_flag=True, help="Report feedback values that are objects or lists, as JSON."
)
@click.option(
    "--hub-qps",
    type=click.FloatRange(0),
    metavar="N",
    default=50,
    show_default=True,
    help="Requests per second to the hub; 0 for no limit.",
)
@click.option(
    "--hub-burst",
    type=click.IntRange(1),
    metavar="N",
    default=100,
    show_default=True,
    help="Burst of requests above --hub-qps.",
)
@probe_options
@run_flags.log_options
@cluster_options
def agent(
    cluster: str,
    hub_kubeconfig: Path,
    hub_context: str,
    bootstrap_kubeconfig: Path | None,
    kubeconfig: Path | None,
    context: str,
    **flags: Any,
) -> None:
    """
    Run the agent of a managed cluster against its hub.

    The agent applies the ManifestWorks in the cluster's namespace on the hub,
    reports their status, and renews the cluster's Lease. Runs in the foreground
    until Ctrl-C or SIGTERM.
    """
    import uvloop

    from lamina.logs import log

    if bootstrap_kubeconfig is not None and (flags["join"] or hub_context):
        raise click.UsageError("--bootstrap-kubeconfig is used instead of --join and --hub-context")
    bootstrap = read_kubeconfig(bootstrap_kubeconfig, hint=_BOOTSTRAP) if bootstrap_kubeconfig else None
    hub = None if bootstrap else read_kubeconfig(hub_kubeconfig, hub_context, hint=_HUB)
    access = load_access(kubeconfig, context)
    check_secure(flags)
    log.configure(run_flags.log_level(flags), run_flags.log_format(flags))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if bootstrap is not None:
            hub = runner.run(_joined(cluster, bootstrap, hub_kubeconfig, access))
        if hub is not None:
            renewed = hub_kubeconfig if bootstrap is not None else None
            runner.run(_serve(cluster, hub, access, flags, renewed))


async def _joined(name: str, bootstrap: Access, hub_kubeconfig: Path, access: Access) -> Access | None:
    """Join the hub unless the cluster has joined, and return the access to it; None after SIGINT or SIGTERM."""
    from lamina.client.client import Client
    from lamina.client.transport.http import HttpTransport
    from lamina.control_plane import install, join
    from lamina.families import registry

    store, stop = join.Store(hub_kubeconfig), stop_event()
    if not join.is_joined(store, datetime.now(UTC)):
        hub = Client(HttpTransport(bootstrap))

        async def obtain() -> None:
            await install.wait_reachable(hub)
            await join.obtain(registry.agents(), hub, name, access.server, store)
            store.write(bootstrap)

        try:
            if not await run_unless(stop, obtain()):
                return None
        finally:
            await hub.close()
    return read_kubeconfig(hub_kubeconfig)


async def _serve(
    name: str, hub_access: Access, access: Access, flags: run_flags.Flags, renewed: Path | None
) -> None:
    """Run an agent until SIGINT or SIGTERM; `renewed` is the kubeconfig whose client certificate it renews."""
    from lamina.client.client import Client
    from lamina.client.transport.http import HttpTransport
    from lamina.clock import WallClock
    from lamina.control_plane import hub as control_plane_hub
    from lamina.control_plane import install
    from lamina.control_plane.join import Store, keep_renewed
    from lamina.core.model.agents import AgentSpec
    from lamina.families import registry
    from lamina.logs import log
    from lamina.ratelimit import TokenBucket

    stop, agents = stop_event(), registry.agents()
    control_plane_hub.check_name(agents, name)
    async with AsyncExitStack() as stack:
        metrics = ProcessMetrics(flags, access.server)
        local = metrics.metered(HttpTransport(access))
        remote = metrics.tracked(HttpTransport(hub_access), hub_access.server)
        for transport in (local, remote):
            stack.push_async_callback(transport.close)
        limit = TokenBucket(flags["hub_qps"], flags["hub_burst"]) if flags["hub_qps"] else None
        client, hub = metrics.client(local), Client(metrics.rate_limited(remote, limit))
        await stack.enter_async_context(metrics.serving(Client(local)))

        async def prepare() -> None:
            await install.wait_reachable(hub)
            if flags["join"]:
                await control_plane_hub.join(agents, hub, name, access.server)
            await control_plane_hub.check_known(agents, hub, name, hub_access.server)
            await install.wait_reachable(client)
            if flags["install"]:
                await install.install(client, (agents,))

        if not await run_unless(stop, prepare()):
            announce_stop(0)
            return
        spec = AgentSpec(
            cluster=name,
            address=hub_access.server,
            id=flags["agent_id"],
            version=await control_plane_hub.version(client),
            options=_options(flags),
        )
        manager = control_plane_hub.agent(agents, spec, client, hub, clock=WallClock(), meters=metrics.meters)
        running = asyncio.create_task(manager.run())
        if await run_unless(stop, manager.ready()):
            metrics.is_ready = True
            text = f"lamina is the agent of {name} on {access.server}, for {hub_access.server}"
            log.announce(text, "started", cluster=name, server=access.server, hub=hub_access.server)
        tasks = [running]
        if renewed is not None and Store(renewed).lifetime() is not None:
            tasks.append(asyncio.create_task(keep_renewed(agents, hub, name, Store(renewed))))
        await run_until(stop, manager, tasks)


def _options(flags: run_flags.Flags) -> AgentOptions:
    from lamina.core.model.agents import AgentOptions

    return AgentOptions(
        workers=flags["workers"],
        reapply=timedelta(seconds=flags["reapply"]),
        poll=timedelta(seconds=flags["status_interval"]),
        eviction=timedelta(seconds=flags["eviction"]),
        raw_feedback=flags["raw_feedback"],
    )
