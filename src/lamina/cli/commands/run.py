"""`lamina run`: runs the controllers of the families against any cluster."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamina.cli.options import run_flags
from lamina.cli.options.cluster_flags import cluster_options, load_access
from lamina.cli.options.conflicts import check_conflicts
from lamina.cli.options.metrics_flags import ProcessMetrics, check_secure, probe_options
from lamina.cli.options.phase_class_flags import (
    ServedClass,
    phase_class_options,
    served_class,
    wait_target_reachable,
)
from lamina.cli.options.upstream_flags import check_namespaces, upstream_leases, upstream_options
from lamina.cli.options.webhook_flags import check_options, serving_webhook, webhook_options
from lamina.cli.signals import announce_stop, handle_signal, run_unless, run_until, stop_event

if TYPE_CHECKING:
    from lamina.client.kubeconfig.read import Access
    from lamina.core.model.family import Family
    from lamina.core.model.upstream_lease import UpstreamLease
    from lamina.runtime.controller.leader_election_lock import LeaseConfig


@click.command(cls=run_flags.GoFlagsCommand)
@click.argument("hooks", metavar="[HOOKS.PY]...", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--families", metavar="NAMES", default="all", show_default=True, help="Families to run, comma-separated."
)
@click.option(
    "--install/--no-install", default=True, show_default=True,
    help="Install the CustomResourceDefinitions of the families first.",
)  # fmt: skip
@phase_class_options
@run_flags.lease_options
@upstream_options
@run_flags.family_options
@run_flags.limit_options
@webhook_options
@probe_options
@run_flags.log_options
@cluster_options
def run(
    hooks: tuple[Path, ...],
    families: str,
    install: bool,
    kubeconfig: Path | None,
    context: str,
    **flags: Any,
) -> None:
    """
    Run the controllers of the families against a cluster.

    The controllers that HOOKS.PY declare are applied to the cluster, and their
    hooks run in this process. A file is reloaded when it changes; SIGHUP reloads
    all files. Runs in the foreground until Ctrl-C or SIGTERM.

    With --phase-class, this process runs only the controller of the ObjectSetPhases
    of that class. They are on the cluster of --kubeconfig, and their objects on the
    cluster of --target-kubeconfig.
    """
    import uvloop

    from lamina.families.registry import chosen
    from lamina.logs import log

    selected = chosen(families, run_flags.family_settings(flags))
    served = served_class(flags, selected, hooks)
    if served is not None:
        selected = served.families
    check_conflicts(click.get_current_context(), selected)
    access = load_access(kubeconfig, context)
    lease_config = run_flags.lease_config(flags, _own_namespace(access))
    upstream = upstream_leases(flags, selected) if served is None else {}
    check_options(flags, selected)
    check_secure(flags)
    log.configure(run_flags.log_level(flags), run_flags.log_format(flags))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(access, selected, served, hooks, install, lease_config, upstream, flags))


async def _serve(
    access: Access,
    selected: Sequence[Family],
    served: ServedClass | None,
    hooks: Sequence[Path],
    install: bool,
    lease_config: LeaseConfig,
    upstream: Mapping[str, Sequence[UpstreamLease]],
    flags: run_flags.Flags,
) -> None:
    """Run families, or the controller of a phase class, until SIGINT or SIGTERM."""
    from lamina.client.client import Client
    from lamina.client.transport.http import HttpTransport
    from lamina.clock import WallClock
    from lamina.control_plane import install as control_plane_install
    from lamina.hooks.supervisor import Hooks
    from lamina.logs import log
    from lamina.runtime.controller.leader_election import LeaderElection
    from lamina.runtime.controller.leader_election_upstream import UpstreamLeases
    from lamina.runtime.hooks.client import HookClient

    stop, files, families = stop_event(), Hooks(hooks, log), selected
    async with AsyncExitStack() as stack:
        await files.start()
        stack.push_async_callback(files.close)
        handle_signal(signal.SIGHUP, files.reload)
        metrics = ProcessMetrics(flags, access.server)
        transport = metrics.metered(HttpTransport(access))
        stack.push_async_callback(transport.close)
        client = metrics.client(metrics.rate_limited(transport, run_flags.request_limit(flags)))
        calls = HookClient(local=files.find, meter=metrics.hook_recorder)
        stack.push_async_callback(calls.close)
        await stack.enter_async_context(metrics.serving(Client(transport)))
        target = None
        if served is not None:
            there = metrics.tracked(HttpTransport(served.target), served.target.server)
            stack.push_async_callback(there.close)
            target = Client(metrics.rate_limited(there, run_flags.request_limit(flags)))

        async def prepare() -> None:
            await control_plane_install.wait_reachable(client)
            if served is not None and target is not None:
                await wait_target_reachable(target, served.target)
            await check_namespaces(client, flags)
            if install:
                await control_plane_install.install(client, selected)
            nonlocal families
            families = await control_plane_install.without_lost_status(client, selected)
            await control_plane_install.apply_controllers(client, files.manifests)
            namespace = flags["lease_namespace"] or _own_namespace(access)
            # A review has a deadline of seconds, so its requests bypass the rate limit.
            await stack.enter_async_context(
                serving_webhook(flags, families, Client(transport), namespace, metrics.reviews)
            )

        if not await run_unless(stop, prepare()):
            announce_stop(0)
            return
        # A client of its own: neither the rate limit nor a busy connection may delay a renewal.
        renewing = metrics.metered(HttpTransport(access))
        stack.push_async_callback(renewing.close)
        leases = None
        if flags["leader_election"]:
            leases = LeaderElection(Client(renewing), _identity(), lease_config, log)
            metrics.watch_leases(leases)
        originals = UpstreamLeases(
            Client(renewing), lease_config.deployment, upstream, lease_config, log, leases
        )
        events, discovery_period = run_flags.event_limit(flags), flags["discovery_interval"]
        if served is not None and target is not None:
            manager = served.manager(
                target, client, leases, metrics.meters, events=events, discovery_period=discovery_period
            )
        else:
            manager = control_plane_install.build_manager(
                client,
                families,
                WallClock(),
                calls,
                leases,
                metrics.meters,
                leads={family: originals.leadership(family) for family in upstream},
                events=events,
                discovery_period=discovery_period,
            )
        tasks = [asyncio.create_task(manager.run())]
        await run_unless(stop, manager.ready())
        metrics.is_ready = True
        if hooks:
            tasks.append(
                asyncio.create_task(control_plane_install.watch_hooks(files, client, calls, manager))
            )
        if leases is not None:
            leases.on_started_leading = manager.resync
            tasks.append(asyncio.create_task(leases.run()))
        originals.on_started_leading = manager.resync
        tasks.append(asyncio.create_task(originals.run()))
        log.announce(
            _started(access, selected, served), "started", server=access.server, families=_names(selected)
        )
        await run_until(stop, manager, tasks)


def _started(access: Access, selected: Sequence[Family], served: ServedClass | None) -> str:
    if served is not None:
        return f"lamina serves the phases of class {served.name} of {access.server} on {served.target.server}"
    return f"lamina runs {_names(selected)} on {access.server}"


def _names(selected: Sequence[Family]) -> str:
    return ", ".join(one.name for one in selected)


def _own_namespace(access: Access) -> str:
    """Return the namespace of this process's pod, or `default` outside a cluster."""
    from lamina.client.kubeconfig.read import IN_CLUSTER

    return access.namespace if access.token_file == IN_CLUSTER / "token" else "default"


def _identity() -> str:
    """Return a name that is unique among replicas."""
    import secrets
    import socket

    return f"{socket.gethostname()}_{secrets.token_hex(4)}"
