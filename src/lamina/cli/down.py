"""`lamina down`: stop a control plane."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from lamina.cli.reaching import server_options
from lamina.cli.running import choose, is_alive
from lamina.errors import SettingsError

_PATIENCE = 20.0


@click.command()
@server_options
def down(data: Path | None, port: int) -> None:
    """
    Stop a control plane that runs on this machine.

    Watches are ended, writes that were accepted are finished.
    """
    # A shell that is set to talk to one of several has not said to end it.
    server = choose(data, port, by_kubeconfig=False)
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while is_alive(server.pid):
        if time.monotonic() > deadline:
            raise SettingsError(
                f"process {server.pid} has not stopped yet", hint="look at its log, then try again"
            )
        time.sleep(0.02)
    click.echo(f"stopped {server.url}", err=True)
