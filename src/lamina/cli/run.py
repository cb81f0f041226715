"""`lamina run`: the families, against any cluster."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamina.cli import manner
from lamina.cli.admitting import admitting, check_options, webhook_options
from lamina.cli.counting import Counting, probe_options
from lamina.cli.foreground import on, stopping, unless, until
from lamina.cli.reaching import cluster_options, reach

if TYPE_CHECKING:
    from lamina.client.kubeconfig import Access
    from lamina.core.family import Family
    from lamina.runtime.leases import Terms


@click.command(cls=manner.Switches)
@click.argument("hooks", metavar="[HOOKS.PY]...", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--families", metavar="NAMES", default="all", show_default=True, help="Which families run.")
@click.option(
    "--install/--no-install", default=True, show_default=True, help="Have the families' kinds served first."
)
@manner.lease_options
@manner.manner_options
@manner.limit_options
@webhook_options
@probe_options
@manner.log_options
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
    Run the families against a cluster.

    The controllers that HOOKS.PY declare are applied to it, and their hooks run
    here; a file that changes is loaded again, and so are all of them on SIGHUP.
    Stays in the foreground until Ctrl-C or SIGTERM.
    """
    import uvloop

    from lamina.families.every import chosen
    from lamina.logs import log

    access = reach(kubeconfig, context)
    wanted = chosen(families, manner.manner(flags))
    terms = manner.terms(flags, _home(access)) if flags["leader_election"] else None
    check_options(flags, wanted)
    log.configure(manner.log_level(flags), manner.log_format(flags))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(access, wanted, hooks, install, terms, flags))


async def _serve(
    access: Access,
    wanted: Sequence[Family],
    hooks: Sequence[Path],
    install: bool,
    terms: Terms | None,
    flags: manner.Flags,
) -> None:
    """Run families until a signal says otherwise."""
    from lamina import product
    from lamina.client.client import Client
    from lamina.client.http import HttpTransport
    from lamina.clock import WallClock
    from lamina.hooks.files import Hooks
    from lamina.logs import log
    from lamina.runtime.calls import Calls
    from lamina.runtime.leases import Leases

    stop, files = stopping(), Hooks(hooks, log)
    async with AsyncExitStack() as ending:
        await files.start()
        ending.push_async_callback(files.close)
        on(signal.SIGHUP, files.reload)
        counting = Counting(flags, access.server)
        transport = counting.counted(HttpTransport(access))
        ending.push_async_callback(transport.close)
        client = counting.client(counting.limited(transport, manner.requests(flags)))
        calls = Calls(local=files.find, meter=counting.calls)
        ending.push_async_callback(calls.close)
        await ending.enter_async_context(counting.listening())

        async def prepare() -> None:
            await product.reached(client)
            if install:
                await product.install(client, wanted)
            await product.declare(client, files.manifests)
            home = flags["lease_namespace"] or _home(access)
            # Somebody waits for an answer, and not for long: no limit of requests may keep them waiting.
            await ending.enter_async_context(
                admitting(flags, wanted, Client(transport), home, counting.reviews)
            )

        if not await unless(stop, prepare()):
            return
        leases = None
        if terms is not None:
            # Who is kept waiting, by a limit of requests or on a connection, must not lose its Lease over it.
            renewing = counting.counted(HttpTransport(access))
            ending.push_async_callback(renewing.close)
            leases = Leases(Client(renewing), _identity(), terms, log)
            counting.leads(leases)
        manager = product.product(
            client,
            wanted,
            WallClock(),
            calls,
            leases,
            counting.meters,
            events=manner.events(flags),
            discovers=flags["discovery_interval"],
        )
        tasks = [asyncio.create_task(manager.run())]
        await unless(stop, manager.ready())
        counting.is_ready = True
        if hooks:
            tasks.append(asyncio.create_task(product.follow(files, client, calls, manager)))
        if leases is not None:
            leases.gained = manager.look_at_everything
            tasks.append(asyncio.create_task(leases.run()))
        click.echo(f"lamina runs {', '.join(one.name for one in wanted)} on {access.server}", err=True)
        await until(stop, manager, tasks)


def _home(access: Access) -> str:
    """Return the namespace this process is in, where it is in one."""
    from lamina.client.kubeconfig import IN_CLUSTER

    return access.namespace if access.token_file == IN_CLUSTER / "token" else "default"


def _identity() -> str:
    """Return a name that no other replica has."""
    import secrets
    import socket

    return f"{socket.gethostname()}_{secrets.token_hex(4)}"
