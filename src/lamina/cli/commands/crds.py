"""`lamina crds`: prints the CustomResourceDefinitions of the families."""

from __future__ import annotations

import json

import click
import yaml

from lamina.families.registry import chosen


@click.command()
@click.option(
    "--families", metavar="NAMES", default="all", show_default=True, help="Families, comma-separated."
)
@click.option("-o", "output", type=click.Choice(["yaml", "json"]), default="yaml", help="Output format.")
def crds(families: str, output: str) -> None:
    """Print the CustomResourceDefinitions of the families, for kubectl apply."""
    definitions = [definition for family in chosen(families) for definition in family.definitions()]
    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions}, indent=2))
    else:
        click.echo(yaml.safe_dump_all(definitions, sort_keys=False), nl=False)
