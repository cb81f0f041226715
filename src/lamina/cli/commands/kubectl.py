"""`lamina kubectl`: runs kubectl with the kubeconfig of the running server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import click

from lamina.cli.server_records import find_server_by_environment
from lamina.errors import SettingsError

_IMPERSONATION = ("--as", "--as-group", "--as-uid", "--as-user-extra")


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
    _check(arguments)
    environment = dict(os.environ)
    if not _is_help(arguments):
        environment["KUBECONFIG"] = find_server_by_environment().kubeconfig
    os.execve(program, [program, *arguments], environment)


def _is_help(arguments: Sequence[str]) -> bool:
    """Say whether kubectl only prints its help, which needs no server."""
    own = _own(arguments)
    return not own or own[0] == "help" or any(one in ("-h", "--help") for one in own)


def _check(arguments: Sequence[str]) -> None:
    """Raise an error for options that the server would ignore."""
    for one in _own(arguments):
        name = one.partition("=")[0]
        if name in _IMPERSONATION:
            raise SettingsError(
                f"{name} is not served: the embedded server ignores it, and would answer as its own user",
                hint=f"omit {name}, or use kubectl with a kubeconfig of another cluster",
            )


def _own(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments of kubectl itself: those before `--`, after which a program of a container has its own."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments
