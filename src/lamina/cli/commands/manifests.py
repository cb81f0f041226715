"""`lamina manifests`: prints the objects of the chart as plain manifests."""

from __future__ import annotations

import json
from pathlib import Path

import click
import yaml

from lamina.errors import SettingsError
from lamina.objects.types import Made


@click.command()
@click.option("--image", metavar="IMAGE", help="Image of Lamina, built from the Containerfile; required.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="lamina-system",
    show_default=True,
    help="Namespace to install in.",
)
@click.option("--name", metavar="NAME", default="lamina", show_default=True, help="Name of the installation.")
@click.option(
    "-f", "--values", "files", metavar="FILE", multiple=True, type=click.Path(path_type=Path, dir_okay=False),
    help="Values of the chart, as YAML; repeatable.",
)  # fmt: skip
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="One value, as families.objectset=false; repeatable.",
)
@click.option("-o", "output", type=click.Choice(["yaml", "json"]), default="yaml", help="Output format.")
def manifests(
    image: str | None,
    namespace: str,
    name: str,
    files: tuple[Path, ...],
    settings: tuple[str, ...],
    output: str,
) -> None:
    """
    Print the objects of the Helm chart, for kubectl apply.

    The values are those of charts/lamina. Remove the installation with
    `kubectl delete`, and then what it left with `lamina uninstall`.
    """
    from lamina import __version__
    from lamina.deploy import objects
    from lamina.deploy.installation import Installation
    from lamina.deploy.values import merged, parse_values, setting

    tree: Made = {}
    for file in files:
        tree = merged(tree, _read(file))
    for text in settings:
        tree = merged(tree, setting(text))
    if image:
        tree["image"] = image
    values = parse_values(tree)
    if not values.image:
        raise SettingsError(
            "no image is given",
            hint="build one from the Containerfile, push it, and name it: --image registry.example.com/lamina:VERSION",
        )
    install = Installation(name=name, namespace=namespace, version=__version__, values=values)
    printed = [objects.namespace(install), *objects.objects(install)]
    if output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": printed}, indent=2))
    else:
        click.echo(yaml.dump_all(printed, Dumper=_Dumper, sort_keys=False, width=1_000_000), nl=False)


class _Dumper(yaml.SafeDumper):
    """Writes equal values out: anchors are hard to read in manifests."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _read(file: Path) -> Made:
    try:
        found = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise SettingsError(f"cannot read {file}: {error}") from None
    if not isinstance(found or {}, dict):
        raise SettingsError(f"{file}: expected values by name, got {type(found).__name__}")
    return found or {}
