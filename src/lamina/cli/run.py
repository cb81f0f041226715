"""`lamina run`: the families, against any cluster."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click

from lamina.cli.reaching import cluster_options, reach


@click.command()
@click.option("--families", metavar="NAMES", default="all", show_default=True, help="Which families run.")
@click.option(
    "--install/--no-install", default=True, show_default=True, help="Have the families' kinds served first."
)
@click.option("--log", metavar="LEVEL", default="info", show_default=True, help="Least level of log lines.")
@click.option("--log-format", metavar="FORMAT", default="text", show_default=True, help="text or json.")
@cluster_options
def run(
    families: str, install: bool, log: str, log_format: str, kubeconfig: Path | None, context: str
) -> None:
    """
    Run the families against a cluster.

    Stays in the foreground until Ctrl-C or SIGTERM.
    """
    import uvloop

    from lamina import product
    from lamina.client.client import Client
    from lamina.client.http import HttpTransport
    from lamina.clock import WallClock
    from lamina.families.every import chosen
    from lamina.logs import log as lines
    from lamina.runtime.calls import Calls

    access, wanted = reach(kubeconfig, context), chosen(families)
    lines.configure(log, log_format)

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        client, calls = Client(HttpTransport(access)), Calls()
        try:
            if install:
                await product.install(client, wanted)
            manager = product.product(client, wanted, WallClock(), calls)
            running = asyncio.create_task(manager.run())
            await manager.ready()
            click.echo(f"lamina runs {', '.join(one.name for one in wanted)} on {access.server}", err=True)
            waiting = asyncio.create_task(stop.wait())
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
            running.cancel()
            waiting.cancel()
            await asyncio.gather(running, waiting, return_exceptions=True)
        finally:
            await calls.close()
            await client.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
