"""Options that name manifests, and say how these are applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from lamina.cli.options.cluster_flags import Command
from lamina.merge.last_applied import KUBECTL

FILE = click.Path(path_type=Path, allow_dash=True)


def manifest_options(purpose: str) -> Callable[[Command], Command]:
    """Return what adds the files with manifests, which are read for a purpose, and the options of an apply."""
    options = (
        click.argument("files", metavar="[FILE]...", nargs=-1, type=FILE),
        click.option("-f", "--filename", "more", metavar="FILE", multiple=True, type=FILE, help=f"File, folder or - {purpose}; repeatable."),
        click.option("--server-side", is_flag=True, help="Use server-side apply."),
        click.option("--field-manager", metavar="NAME", default=KUBECTL, show_default=True, help="Field manager name."),
        click.option("--force-conflicts", is_flag=True, help="Take over fields that other managers own (as kubectl apply --force-conflicts)."),
    )  # fmt: skip

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add
