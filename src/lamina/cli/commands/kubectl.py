"""`lamina kubectl`: runs kubectl with the kubeconfig of the running server."""

from __future__ import annotations

import os
import shutil

import click

from lamina.cli.server_records import find_server_by_environment
from lamina.errors import SettingsError


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """
    Run kubectl with the kubeconfig of the running server; all arguments are kubectl's.

    If several servers run, LAMINA_PORT, LAMINA_DATA or KUBECONFIG selects one. If
    one server runs, KUBECONFIG is ignored.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise SettingsError(
            "kubectl is not on the PATH", hint="install kubectl 1.32 or newer, then try again"
        )
    server = find_server_by_environment()
    os.execve(program, [program, *arguments], {**os.environ, "KUBECONFIG": server.kubeconfig})
