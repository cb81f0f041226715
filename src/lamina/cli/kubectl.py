"""`lamina kubectl`: kubectl, pointed at the server that runs here."""

from __future__ import annotations

import os
import shutil

import click

from lamina.cli.running import choose_by_environment
from lamina.errors import SettingsError


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: tuple[str, ...]) -> None:
    """
    Run kubectl with the kubeconfig of the running server; what follows is kubectl's.

    Where several run, LAMINA_PORT, LAMINA_DATA or KUBECONFIG says which is meant.
    Where one runs, it is that one, whatever KUBECONFIG says.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise SettingsError(
            "there is no kubectl on the PATH", hint="install kubectl 1.32 or newer, then try again"
        )
    server = choose_by_environment()
    os.execve(program, [program, *arguments], {**os.environ, "KUBECONFIG": server.kubeconfig})
