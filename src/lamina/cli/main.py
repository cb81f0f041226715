"""The command line. A command's module is imported when the command is used, so that `--help` is fast."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from lamina import __version__
from lamina.errors import ApiError, LaminaError

_COMMANDS = {
    "up": "Run a control plane on the embedded API server.",
    "run": "Run the controllers of the families against any cluster.",
    "agent": "Run the agent of a managed cluster against its hub.",
    "get": "List owners: revision, updated and available targets, status.",
    "watch": "Watch owners: one line per change of status.",
    "revisions": "List the revisions of an owner, or compare two.",
    "rollback": "Roll back an owner to an earlier revision.",
    "pin": "Pin an owner to a revision.",
    "unpin": "Let an owner follow new revisions again.",
    "explain": "Show what the controllers would do next to an object, and why.",
    "plan": "Preview what an apply of manifests would create, update and delete, step by step.",
    "simulate": "Simulate a change on a copy of the cluster and report the result.",
    "crds": "Print the CustomResourceDefinitions of the families.",
    "manifests": "Print the objects of the Helm chart as plain manifests.",
    "uninstall": "Remove what Lamina left on a cluster: webhook, finalizers, Secret and Leases.",
    "rbac": "Print the minimal RBAC roles for the configured controllers.",
    "down": "Stop a control plane that runs on this machine.",
    "status": "Say the state of an owner, or list the control planes on this machine.",
    "clusters": "Manage the clusters of the running server, and those that join a hub.",
    "chaos": "Inject faults, list them, and remove them.",
    "clock": "Show, advance and speed up the clock of the running server.",
    "kubectl": "Run kubectl against the embedded server.",
    "backup": "Back up the running server's state to a file.",
    "restore": "Create a data folder from a backup.",
    "cel": "Evaluate a CEL expression.",
}


class _LazyGroup(click.Group):
    """A group whose commands are in modules of the same name."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(f"lamina.cli.commands.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            context.fail(f"unknown command {args[0]!r}; the commands are {', '.join(_COMMANDS)}")
        return super().resolve_command(context, args)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="lamina %(version)s")
def cli() -> None:
    """A control plane for change on Kubernetes."""


def _report(error: LaminaError) -> None:
    from lamina.logs import log

    message, hint = str(error.message if isinstance(error, ApiError) else error), error.hint
    if log.is_json:
        log.error(message, **({"hint": hint} if hint else {}))
        return
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"\nhint: {hint}", err=True)


def main() -> None:
    """Run the command line; print a LaminaError as a message and a hint, without a traceback."""
    try:
        code: Any = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except LaminaError as error:
        _report(error)
        sys.exit(getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
