"""`lamina unpin`: removes the pin of an owner."""

from __future__ import annotations

from pathlib import Path

import click

from lamina.cli.commands.pin import set_pin
from lamina.cli.options.cluster_flags import object_options


@click.command()
@click.argument("target", metavar="KIND/NAME")
@object_options
def unpin(target: str, namespace: str, kubeconfig: Path | None, context: str) -> None:
    """Remove the pin of KIND/NAME; it follows new revisions again."""
    set_pin(target, None, namespace, kubeconfig, context)
