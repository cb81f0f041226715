"""`lamina clusters`: adds, lists and removes clusters of the running server."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.options.cluster_flags import server_options, with_client
from lamina.cli.output.tables import table
from lamina.cli.server_records import find_server
from lamina.client.client import Client
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.errors import SettingsError
from lamina.objects import names

_FIRST = "lamina"


@click.group()
def clusters() -> None:
    """
    Add, list and remove clusters of the running server.

    Each cluster has its own objects, kinds and administrator, and a context in
    the server's kubeconfig.
    """


@clusters.command("list")
@server_options
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def list_(data: Path | None, port: int, output: str) -> None:
    """List the clusters of the server, the first cluster on top."""
    found = json.loads(_request(data, port, "GET", "/clusters"))["clusters"]
    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(table(("NAME", "SERVER"), [(one["name"], one["server"]) for one in found]))


@clusters.command()
@server_options
@click.argument("cluster_names", nargs=-1, required=True, metavar="NAME...")
def add(data: Path | None, port: int, cluster_names: tuple[str, ...]) -> None:
    """Add clusters; a cluster that already exists is not changed."""
    for path in [_path(name) for name in cluster_names]:
        cluster = json.loads(_request(data, port, "PUT", path))
        name, server = cluster["name"], cluster["server"]
        click.echo(f"cluster {name} is served at {server}; select it with --context {name}", err=True)


@clusters.command()
@server_options
@click.argument("cluster_names", nargs=-1, required=True, metavar="NAME...")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(data: Path | None, port: int, cluster_names: tuple[str, ...], yes: bool) -> None:
    """Remove clusters with all of their objects."""
    paths = {name: _path(name) for name in cluster_names}
    for path in paths.values():
        # A cluster that does not exist is an error before the confirmation.
        _request(data, port, "GET", path)
    if not yes:
        click.confirm(f"Remove {', '.join(paths)} with all objects?", abort=True, err=True)
    for name, path in paths.items():
        _request(data, port, "DELETE", path)
        click.echo(f"cluster {name} removed", err=True)


def _path(name: str) -> str:
    """Return the path of a cluster; an invalid name could be the path of something else."""
    if problems := names.label(name):
        raise SettingsError(f'"{name}" is not a valid cluster name: {problems[0]}')
    return f"/clusters/{name}"


def _request(data: Path | None, port: int, method: str, path: str) -> bytes:
    """Send a request as the server's administrator, whatever the current context of its kubeconfig."""
    access = read_kubeconfig(Path(find_server(data, port).kubeconfig), _FIRST)

    async def request(client: Client) -> bytes:
        return await client.request(method, path)

    return with_client(access, request)
