"""`kro validate` and `kro generate`: compile definitions that are in files, offline or with a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import TypedDict, TypeVar, Unpack

import click
import yaml

from lamina.cli.kro_commands.session import decide
from lamina.cli.manifests import read_manifests
from lamina.cli.options.cluster_flags import cluster_options, load_access, with_client
from lamina.client.client import Client
from lamina.core.crd.kinds import DEFINITION
from lamina.core.model.effects import Ask
from lamina.core.model.queries import Answer, Query
from lamina.core.model.query_rounds import decided
from lamina.core.model.reconcile import drive
from lamina.errors import SettingsError, SpecError
from lamina.families.registry import kro
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made
from lamina.simulation.admission_adapter import builtin
from lamina.simulation.cluster.apiserver import SimulatedCluster

Command = TypeVar("Command", bound=Callable[..., object])
_FILE = click.Path(path_type=Path, allow_dash=True)


class Source(TypedDict):
    """The values of the options that name definitions and the source of schemas."""

    file: Path
    crds: tuple[Path, ...]
    from_cluster: bool
    kubeconfig: Path | None
    context: str


def _from_file(command: Command) -> Command:
    for option in (
        click.option(
            "--from-cluster",
            is_flag=True,
            help="Use the schemas of the cluster. Default: those of Kubernetes 1.35 and of --crds.",
        ),
        click.option(
            "--crds",
            type=_FILE,
            multiple=True,
            metavar="FILE",
            help="File or folder with CustomResourceDefinitions that resources are of; repeatable.",
        ),
        click.option(
            "-f",
            "--file",
            type=_FILE,
            required=True,
            metavar="FILE",
            help="File with a ResourceGraphDefinition.",
        ),
    ):
        command = option(command)
    return cluster_options(command)


@click.group()
def validate() -> None:
    """Validate a ResourceGraphDefinition."""


@validate.command("rgd")
@_from_file
def validate_definition(**source: Unpack[Source]) -> None:
    """Compile a ResourceGraphDefinition, and report what is wrong with it."""
    try:
        _generated("crd", source)
    except SpecError as error:
        raise SpecError(f"validation failed: {error}", error.hint) from None
    click.echo("Validation successful! The ResourceGraphDefinition is valid.")


@click.group()
def generate() -> None:
    """Generate an object or a diagram from a ResourceGraphDefinition."""


_format = click.option(
    "-o",
    "--format",
    "output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Output format.",
)


@generate.command()
@_format
@_from_file
def crd(output: str, **source: Unpack[Source]) -> None:
    """Print the CustomResourceDefinition of the generated kind."""
    _print(_generated("crd", source), output)


@generate.command()
@_format
@_from_file
def instance(output: str, **source: Unpack[Source]) -> None:
    """Print an example of an instance, with every field of its spec."""
    _print(_generated("instance", source), output)


@generate.command()
@_from_file
def diagram(**source: Unpack[Source]) -> None:
    """Print the resources and their dependencies as a Mermaid flowchart."""
    for text in _generated("diagram", source):
        click.echo(text)


def _print(found: list[Made | str], output: str) -> None:
    if output == "json":
        for one in found:
            click.echo(json.dumps(one, indent=2))
    else:
        # A copy, since YAML would have an alias for each value that is shared.
        click.echo(yaml.safe_dump_all(json.loads(json.dumps(found)), sort_keys=False), nl=False)


def _generated(what: str, source: Source) -> list[Made | str]:
    """Return what is generated from each definition in a file."""
    objects = [one.obj for one in read_manifests((source["file"], *source["crds"]))]
    definitions = [one for one in objects if kro().is_definition(one)]
    if not definitions:
        raise SettingsError(f"{source['file']}: the file has no ResourceGraphDefinition")
    make = kro().generate[what]
    if source["from_cluster"]:

        async def work(client: Client) -> list[Made | str]:
            kinds = await client.discover()
            return [await decide(client, partial(make, one, kinds)) for one in definitions]

        return with_client(load_access(source["kubeconfig"], source["context"]), work)
    cluster = SimulatedCluster(kinds=builtin())
    for one in objects:
        ref = meta.ref(one)
        if GroupKind(ref.group, ref.kind) == DEFINITION:
            cluster.create(one)

    def answer(ask: Ask) -> Mapping[Query, Answer]:
        return {query: cluster.answer(query) for query in ask.queries}

    made: list[Made | str] = []
    for one in definitions:
        deciding: Generator[Ask, Mapping[Query, Answer], Made | str]
        deciding = decided(partial(make, one, cluster.kinds), kro().name)
        made.append(drive(deciding, answer))
    return made
