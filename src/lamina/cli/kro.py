"""
`kro`: the command line of resource graphs.

Its commands, options and output are those of upstream, and of the proposal that adds
revisions to it; what they decide and print is the family's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from lamina import __version__
from lamina.cli.kro_commands.definition_files import generate, validate
from lamina.cli.kro_commands.revisions import revisions
from lamina.cli.kro_commands.rollback import pin, rollback, unpin
from lamina.errors import ApiError, LaminaError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="kro (lamina %(version)s)")
def kro() -> None:
    """Manage ResourceGraphDefinitions and their instances."""


for _command in (revisions, rollback, pin, unpin, validate, generate):
    kro.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an error is one line, its hint another one, and the exit code 1."""
    try:
        kro.main(arguments, prog_name="kro", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(130)
    except click.ClickException as error:
        _fail(error.format_message())
    except LaminaError as error:
        _fail(error.message if isinstance(error, ApiError) else str(error), error.hint)


def _fail(message: str, hint: str | None = None) -> None:
    click.echo(f"Error: {message}", err=True)
    if hint:
        click.echo(f"\nhint: {hint}", err=True)
    sys.exit(1)
