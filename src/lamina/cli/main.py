"""The command line. Each command is imported when it is asked for, so that `--help` is quick."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from lamina import __version__
from lamina.errors import ApiError, LaminaError

_COMMANDS = {
    "up": "Run a control plane on the embedded API server.",
    "run": "Run the families against any cluster.",
    "agent": "Run the agent of a cluster against its hub.",
    "get": "List what is rolled out, who is where, and what it waits for.",
    "watch": "Follow what is rolled out, a line a change.",
    "revisions": "Show the revisions of an owner, and how they differ.",
    "rollback": "Return an owner to an earlier revision.",
    "explain": "Say what would happen next to an object, and why.",
    "simulate": "Play a change on paper, and say what it would end in.",
    "crds": "Print the CustomResourceDefinitions of the families.",
    "rbac": "Print the least role that the configured controllers need.",
    "down": "Stop a control plane that runs in the background.",
    "status": "Say what runs where.",
    "clusters": "Add, list and remove the clusters of the running server.",
    "chaos": "Break things on request, show what is broken, and mend it.",
    "clock": "Show and wind the clock of the running server.",
    "kubectl": "Run kubectl against the embedded server.",
    "backup": "Save the running server's state to a file.",
    "restore": "Make a data folder out of a backup.",
    "cel": "Evaluate an expression.",
}


class _Lazy(click.Group):
    """A group whose commands live in modules of the same name."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(f"lamina.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            context.fail(f"there is no command {args[0]!r}; the commands are {', '.join(_COMMANDS)}")
        return super().resolve_command(context, args)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="lamina %(version)s")
def cli() -> None:
    """A control plane for change on Kubernetes."""


def main() -> None:
    """Run the command line; an error of ours is a sentence and a hint, not a traceback."""
    try:
        code: Any = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except LaminaError as error:
        click.echo(f"error: {error.message if isinstance(error, ApiError) else error}", err=True)
        if error.hint:
            click.echo(f"\nhint: {error.hint}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
