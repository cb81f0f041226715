"""`lamina clusters`: adds, lists and removes clusters of the running server, and admits clusters to a hub."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from lamina.cli.options import run_flags
from lamina.cli.options.cluster_flags import cluster_options, load_access, server_options, with_client
from lamina.cli.output.tables import table
from lamina.cli.server_records import find_server
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access, read_kubeconfig
from lamina.client.kubeconfig.write import kubeconfig_text
from lamina.errors import SettingsError
from lamina.objects import names

_FIRST = "lamina"


@click.group()
def clusters() -> None:
    """
    Manage the clusters of the running server, and those that join a hub.

    `list`, `add` and `remove` are for the clusters of a server of `lamina up`: each
    has its own objects, kinds and administrator, and a context in the server's
    kubeconfig. `token`, `accept` and `detach` are for the clusters of any hub.
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


@clusters.command()
@click.option(
    "--ttl",
    type=run_flags.TIME,
    metavar="TIME",
    default="1h",
    show_default=True,
    help="Lifetime of the token.",
)
@click.option(
    "-o",
    "output",
    type=click.Choice(["kubeconfig", "token"]),
    default="kubeconfig",
    show_default=True,
    help="Print a kubeconfig with the token, or the token alone.",
)
@cluster_options
def token(ttl: float, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    Print a bootstrap kubeconfig for clusters that are to join the hub.

    Its token allows a cluster to register itself and to request a client
    certificate. Creates the service account and the role of the token first.
    """
    from lamina.control_plane.membership import bootstrap_token
    from lamina.families import registry

    access = load_access(kubeconfig, context)
    issued = with_client(access, lambda hub: bootstrap_token(registry.agents(), hub, int(ttl)))
    if output == "token":
        click.echo(issued)
        return
    limited = Access(
        server=access.server,
        authority=access.authority,
        insecure=access.insecure,
        tls_name=access.tls_name,
        token=issued,
    )
    click.echo(kubeconfig_text(limited, "bootstrap"), nl=False)
    click.echo(
        "on the cluster: lamina agent --cluster NAME --bootstrap-kubeconfig FILE --hub-kubeconfig hub.kubeconfig\n"
        "then on the hub: lamina clusters accept NAME",
        err=True,
    )


@clusters.command()
@click.argument("cluster_names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--request",
    metavar="NAME",
    default="",
    help="Approve this certificate signing request alone; needed where several of one cluster wait.",
)
@cluster_options
def accept(cluster_names: tuple[str, ...], request: str, kubeconfig: Path | None, context: str) -> None:
    """
    Accept clusters that have asked to join the hub.

    Creates the namespace and the roles of a cluster's agent, sets
    hubAcceptsClient, and approves the agent's certificate signing requests.
    Prints their requesters. Approves nothing if requests with different keys wait
    for one cluster, unless --request names one of them.
    """
    if request and len(cluster_names) > 1:
        raise click.UsageError("--request is for one cluster")
    access = load_access(kubeconfig, context)
    for name in cluster_names:
        _path(name)
        approved = _accept(access, name, request)
        requests = f"approved {'; '.join(approved)}" if approved else "no request is waiting for approval"
        click.echo(f"cluster {name} accepted: {requests}", err=True)


def _accept(access: Access, name: str, request: str) -> Sequence[str]:
    from lamina.control_plane import membership
    from lamina.families import registry

    return with_client(access, lambda hub: membership.accept(registry.agents(), hub, name, request))


@clusters.command()
@click.argument("cluster_names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--force", is_flag=True, help="Do not wait for the agent: objects of works stay on the cluster."
)
@click.option(
    "--timeout",
    "seconds",
    type=run_flags.TIME,
    metavar="TIME",
    default="60s",
    show_default=True,
    help="How long to wait until the agent has removed the objects of its works.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_options
def detach(
    cluster_names: tuple[str, ...],
    force: bool,
    seconds: float,
    yes: bool,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Detach clusters from the hub.

    Deletes a cluster and its works, waits until its agent has removed their
    objects, and deletes its namespace, its roles and its requests.
    """
    if not yes:
        click.confirm(f"Detach {', '.join(cluster_names)} from the hub?", abort=True, err=True)
    access = load_access(kubeconfig, context)
    for name in cluster_names:
        _detach(access, name, force, seconds)
        click.echo(f"cluster {name} detached", err=True)


def _detach(access: Access, name: str, force: bool, seconds: float) -> None:
    from lamina.control_plane import membership
    from lamina.families import registry

    with_client(
        access,
        lambda hub: membership.detach(registry.agents(), hub, name, force=force, seconds=seconds),
    )


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
