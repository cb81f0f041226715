"""`lamina run`: the families, against any cluster."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import click

from lamina.cli.counting import Counting, probe_options
from lamina.cli.reaching import cluster_options, reach


def _seconds(context: click.Context, option: click.Parameter, text: str) -> float:
    """Return how long a text says, in seconds."""
    from lamina.objects.durations import parse_duration

    try:
        seconds = parse_duration(text).total_seconds()
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None
    if seconds <= 0:
        raise click.BadParameter(f'expected a while, got "{text}"')
    return seconds


@click.command()
@click.argument("hooks", metavar="[HOOKS.PY]...", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--families", metavar="NAMES", default="all", show_default=True, help="Which families run.")
@click.option(
    "--install/--no-install", default=True, show_default=True, help="Have the families' kinds served first."
)
@click.option(
    "--leader-election/--no-leader-election",
    "elect",
    default=True,
    show_default=True,
    help="Work only for the shards whose Lease this replica holds.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=1,
    show_default=True,
    help="Into how many parts owners are dealt out; the same number for every replica.",
)
@click.option(
    "--lease-namespace", metavar="NAME", default="default", show_default=True, help="Where the Leases are."
)
@click.option(
    "--lease-duration",
    metavar="TIME",
    default="15s",
    show_default=True,
    callback=_seconds,
    help="How long a Lease lasts.",
)
@click.option(
    "--renew-deadline",
    metavar="TIME",
    default="10s",
    show_default=True,
    callback=_seconds,
    help="How long after its last renewal a replica goes on; less than a Lease lasts.",
)
@click.option(
    "--retry-period",
    metavar="TIME",
    default="2s",
    show_default=True,
    callback=_seconds,
    help="How often a Lease is asked for, or renewed.",
)
@click.option(
    "--target-label-selector",
    metavar="SELECTOR",
    default="",
    help="Which CompositeControllers and DecoratorControllers run here. Default: all.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=5,
    show_default=True,
    help="How many owners a controller works on side by side.",
)
@click.option(
    "--apply-strategy",
    type=click.Choice(("dynamic-apply", "server-side-apply")),
    default="dynamic-apply",
    show_default=True,
    help="How CompositeControllers and DecoratorControllers make children: by a record on each, or by the server.",
)
@click.option(
    "--apply-strategy-ssa-field-manager",
    "field_manager",
    metavar="NAME",
    default="metacontroller",
    show_default=True,
    help="Under which name the server applies them.",
)
@click.option(
    "--cache-flush-interval",
    "flush",
    metavar="TIME",
    default="30m",
    show_default=True,
    callback=_seconds,
    help="How long an owner is left alone at most.",
)
@probe_options
@click.option("--log", metavar="LEVEL", default="info", show_default=True, help="Least level of log lines.")
@click.option("--log-format", metavar="FORMAT", default="text", show_default=True, help="text or json.")
@cluster_options
def run(
    hooks: tuple[Path, ...],
    families: str,
    install: bool,
    elect: bool,
    shards: int,
    lease_namespace: str,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    target_label_selector: str,
    workers: int,
    apply_strategy: str,
    field_manager: str,
    flush: float,
    metrics_address: str,
    health_probe_bind_address: str,
    log: str,
    log_format: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Run the families against a cluster.

    The controllers that HOOKS.PY declare are applied to it, and their hooks run
    here; a file that changes is loaded again, and so are all of them on SIGHUP.
    Stays in the foreground until Ctrl-C or SIGTERM.
    """
    import uvloop

    from lamina import product
    from lamina.client.client import Client
    from lamina.client.http import HttpTransport
    from lamina.clock import WallClock
    from lamina.families.every import Manner, chosen
    from lamina.hooks.files import Hooks
    from lamina.logs import log as lines
    from lamina.objects.selectors import parse_label_selector
    from lamina.runtime.calls import Calls
    from lamina.runtime.leases import Leases, Terms

    access = reach(kubeconfig, context)
    manner = Manner(
        selector=parse_label_selector(target_label_selector),
        workers=workers,
        applies_as=field_manager if apply_strategy == "server-side-apply" else "",
        flush=timedelta(seconds=flush),
    )
    wanted = chosen(families, manner)
    lines.configure(log, log_format)

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        files = Hooks(hooks, lines)
        await files.start()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, files.reload)
        counting = Counting(metrics_address, health_probe_bind_address, access.server)
        client = Client(counting.counted(HttpTransport(access)))
        calls, serving = Calls(local=files.find, meter=counting.calls), AsyncExitStack()
        try:
            await serving.enter_async_context(counting.listening())
            if install:
                await product.install(client, wanted)
            await product.declare(client, files.manifests)
            terms = Terms(
                namespace=lease_namespace,
                shards=shards,
                lasts=lease_duration,
                deadline=min(renew_deadline, lease_duration),
                retry=retry_period,
            )
            leases = Leases(client, _identity(), terms, lines) if elect else None
            manager = product.product(client, wanted, WallClock(), calls, leases, counting.meters)
            tasks = [asyncio.create_task(manager.run()), asyncio.create_task(stop.wait())]
            await manager.ready()
            counting.is_ready = True
            if hooks:
                tasks.append(asyncio.create_task(product.follow(files, client, calls, manager)))
            if leases is not None:
                leases.gained = manager.look_at_everything
                tasks.append(asyncio.create_task(leases.run()))
            click.echo(f"lamina runs {', '.join(one.name for one in wanted)} on {access.server}", err=True)
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in done:
                await task
        finally:
            await serving.aclose()
            await files.close()
            await calls.close()
            await client.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


def _identity() -> str:
    """Return a name that no other replica has."""
    import secrets
    import socket

    return f"{socket.gethostname()}_{secrets.token_hex(4)}"
