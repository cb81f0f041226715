"""`lamina restore`: creates a data folder from a backup."""

from __future__ import annotations

from pathlib import Path

import click

from lamina.server.storage.sqlite import restore as restore_log
from lamina.settings import data_home


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    envvar="LAMINA_DATA",
    help="Data folder to create. Default: $LAMINA_DATA, or ~/.local/share/lamina/default.",
)
def restore(file: Path, data: Path | None) -> None:
    """
    Create a data folder from the backup in FILE.

    A folder that already holds state is not overwritten.
    """
    folder = (data or data_home() / "default").expanduser().absolute()
    restore_log(file, folder)
    click.echo(f"restored {file} to {folder}; start it with `lamina up --data {folder}`", err=True)
