"""`lamina restore`: make a data folder out of a backup."""

from __future__ import annotations

from pathlib import Path

import click

from lamina.server.sqlite import restore as restore_log
from lamina.settings import home


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    envvar="LAMINA_DATA",
    help="The folder to make. Default: $LAMINA_DATA, or the usual one.",
)
def restore(file: Path, data: Path | None) -> None:
    """
    Make a data folder out of the backup in FILE.

    A folder that holds state already is left alone.
    """
    folder = (data or home() / "default").expanduser().absolute()
    restore_log(file, folder)
    click.echo(f"restored {file} to {folder}; start it with `lamina up --data {folder}`", err=True)
