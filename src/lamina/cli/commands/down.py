"""`lamina down`: stops a control plane."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from lamina.cli.options.cluster_flags import server_options
from lamina.cli.server_records import find_server, is_alive
from lamina.errors import SettingsError

_STOP_SECONDS = 20.0


@click.command()
@server_options
def down(data: Path | None, port: int) -> None:
    """
    Stop a control plane that runs on this machine.

    The server ends watches and commits the writes it has accepted.
    """
    # KUBECONFIG in a shell selects a server for reads and writes, not for its end.
    server = find_server(data, port, by_kubeconfig=False)
    os.kill(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while is_alive(server.pid):
        if time.monotonic() > deadline:
            raise SettingsError(
                f"process {server.pid} has not stopped yet", hint="check its log, then try again"
            )
        time.sleep(0.02)
    click.echo(f"stopped {server.url}", err=True)
