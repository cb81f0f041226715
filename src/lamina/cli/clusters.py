"""`lamina clusters`: the clusters of the running server."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.reaching import server_options, with_client
from lamina.cli.running import choose
from lamina.client.client import Client
from lamina.client.kubeconfig import read_kubeconfig
from lamina.errors import SettingsError
from lamina.objects import names

_FIRST = "lamina"


@click.group()
def clusters() -> None:
    """
    Add, list and remove the clusters of the running server.

    Each has its own objects, kinds and administrator, and a context of its own
    in the server's kubeconfig.
    """


@clusters.command("list")
@server_options
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def list_(data: Path | None, port: int, output: str) -> None:
    """List the clusters of the server, the first one first."""
    found = json.loads(_ask(data, port, "GET", "/clusters"))["clusters"]
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    width = max(len(one["name"]) for one in found)
    for one in found:
        click.echo(f"{one['name']:<{width}}  {one['server']}")


@clusters.command()
@server_options
@click.argument("wanted", nargs=-1, required=True, metavar="NAME...")
def add(data: Path | None, port: int, wanted: tuple[str, ...]) -> None:
    """Add clusters; those that are there already stay as they are."""
    for page in [_page(name) for name in wanted]:
        made = json.loads(_ask(data, port, "PUT", page))
        click.echo(f"{made['name']} is at {made['server']}; reach it with --context {made['name']}", err=True)


@clusters.command()
@server_options
@click.argument("wanted", nargs=-1, required=True, metavar="NAME...")
@click.option("--yes", is_flag=True, help="Do not ask first.")
def remove(data: Path | None, port: int, wanted: tuple[str, ...], yes: bool) -> None:
    """Remove clusters, with everything that is in them."""
    meant = {name: _page(name) for name in wanted}
    for page in meant.values():
        # One that is not there should not be asked about.
        _ask(data, port, "GET", page)
    if not yes:
        click.confirm(f"Remove {', '.join(meant)} and everything in there?", abort=True, err=True)
    for name, page in meant.items():
        _ask(data, port, "DELETE", page)
        click.echo(f"{name} is removed", err=True)


def _page(name: str) -> str:
    """Return where a cluster is told of: what no cluster can be called would lead to something inside of one."""
    if problems := names.label(name):
        raise SettingsError(f'"{name}" is no name for a cluster: {problems[0]}')
    return f"/clusters/{name}"


def _ask(data: Path | None, port: int, method: str, path: str) -> bytes:
    """Ask the server itself, as its administrator, whatever context its kubeconfig is set to."""
    access = read_kubeconfig(Path(choose(data, port).kubeconfig), _FIRST)

    async def ask(client: Client) -> bytes:
        return await client.request(method, path)

    return with_client(access, ask)
