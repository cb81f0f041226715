"""Runs `lamina` in this process: a test of many commands does not import the program for each of them."""

from __future__ import annotations

import os
import sys
from unittest.mock import patch

import click
from click.testing import CliRunner, Result

from lamina.cli.main import main
from tests.cli.conftest import Lamina


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def whole(arguments: tuple[str, ...]) -> None:
    """Run the whole command line, with its messages of errors and its exit codes."""
    with patch.object(sys, "argv", ["lamina", *arguments]):
        main()


def run_here(lamina: Lamina, *arguments: str, code: int = 0) -> Result:
    """Run a command with the home folder and the environment of a `lamina`."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name not in lamina.environ}
    done = CliRunner(env={**unset, **lamina.environ}).invoke(whole, ["--", *arguments])
    assert done.exit_code == code, f"{done.stdout}{done.stderr}{done.exception!r}"
    return done
