"""`lamina down`: stop a control plane."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from lamina.cli.running import choose, is_alive
from lamina.errors import SettingsError

_PATIENCE = 20.0


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="The one that keeps its state there."
)
@click.option("--port", type=int, default=0, metavar="N", help="The one that listens there.")
def down(data: Path | None, port: int) -> None:
    """
    Stop a control plane that runs on this machine.

    Watches are ended, writes that were accepted are finished.
    """
    server = choose(data, port)
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while is_alive(server.pid):
        if time.monotonic() > deadline:
            raise SettingsError(
                f"process {server.pid} has not stopped yet", hint="look at its log, then try again"
            )
        time.sleep(0.02)
    click.echo(f"stopped {server.url}", err=True)
