"""Options that select a cluster, a server of `lamina up`, and an object."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lamina.cli.server_records import find_server_by_environment, running_servers
from lamina.client.client import Client
from lamina.client.kubeconfig.read import IN_CLUSTER, Access, in_cluster, read_kubeconfig
from lamina.client.transport.http import HttpTransport
from lamina.errors import LIST_KINDS, LaminaError, SettingsError, Unreachable
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Ref

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])
_EXAMPLE = "for example catset/nginx"
_UNREACHABLE = "check that {} is running and reachable; `lamina status` lists the servers of `lamina up`"
_FROM_FLAG = "name another file with --kubeconfig FILE, or omit it to use the server of `lamina up`"
_FROM_ENVIRONMENT = (
    "the path comes from $KUBECONFIG; name another file with --kubeconfig FILE, "
    "or unset it to use the server of `lamina up`"
)


class NoCluster(SettingsError):
    """Neither a flag, the environment nor a file of the user names a cluster."""


def cluster_options(command: Command) -> Command:
    """Add the options that select a cluster."""
    for option in (
        click.option("--context", metavar="NAME", default="", help="Context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Kubeconfig of the cluster. Default: that of the server selected by $LAMINA_PORT or "
            "$LAMINA_DATA, then $KUBECONFIG, then that of the server of `lamina up`, then the service "
            "account of the pod, then ~/.kube/config.",
        ),
    ):
        command = option(command)
    return command


def output_options(command: Command) -> Command:
    """Add the options of the output format and of a cluster."""
    output = click.option(
        "-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format."
    )
    return output(cluster_options(command))


def server_options(command: Command) -> Command:
    """Add the options that select a server of `lamina up`."""
    for option in (
        click.option(
            "--port",
            type=int,
            default=0,
            metavar="N",
            help="Port of the server. Default: $LAMINA_PORT.",
        ),
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Data folder of the server. Default: $LAMINA_DATA.",
        ),
    ):
        command = option(command)
    return command


def object_options(command: Command) -> Command:
    """Add the options that select a cluster and a namespace."""
    namespace = click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        default="default",
        show_default=True,
        help="Namespace of the object.",
    )
    return namespace(cluster_options(command))


def load_access(kubeconfig: Path | None, context: str) -> Access:
    """Return the access to the selected cluster: its address and credentials."""
    if kubeconfig is not None:
        return read_kubeconfig(kubeconfig, context, hint=_FROM_FLAG)
    if _is_server_selected():
        # As for `lamina kubectl`: LAMINA_PORT and LAMINA_DATA take precedence over KUBECONFIG.
        return read_kubeconfig(Path(find_server_by_environment().kubeconfig), context)
    if files := os.environ.get("KUBECONFIG"):
        paths = [Path(file) for file in files.split(os.pathsep) if file]
        return read_kubeconfig(paths, context, hint=_FROM_ENVIRONMENT)
    if running_servers():
        return read_kubeconfig(Path(find_server_by_environment().kubeconfig), context)
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if host and port and IN_CLUSTER.exists():
        return in_cluster(host, port)
    usual = Path.home() / ".kube" / "config"
    if usual.exists():
        return read_kubeconfig(usual, context)
    raise NoCluster(
        "no cluster is configured",
        hint="start one with `lamina up`, or name one with --kubeconfig FILE",
    )


def _is_server_selected() -> bool:
    """Say whether the environment selects a server; port 0 stands for any."""
    return bool(os.environ.get("LAMINA_DATA") or os.environ.get("LAMINA_PORT", "").strip("0"))


def with_client(
    access: Access, work: Callable[[Client], Awaitable[Result]], *, timeout: float | None = 60.0
) -> Result:
    """Run a function with a client, and close the client."""

    async def run() -> Result:
        client = Client(HttpTransport(access, timeout=timeout))
        try:
            return await work(client)
        except Unreachable as error:
            error.hint = error.hint or _UNREACHABLE.format(access.server)
            raise
        finally:
            await client.close()

    return asyncio.run(run())


def parse_object(kinds: Kinds, target: str, namespace: str) -> Ref:
    """Return the object that KIND/NAME refers to; the kind is resolved as kubectl does."""
    word, name = split_target(target)
    if not name:
        raise SettingsError(f"expected KIND/NAME, got {target!r}", hint=_EXAMPLE)
    return find_kind(kinds, word).ref(namespace, name)


def split_target(target: str | None) -> tuple[str, str]:
    """Return the two parts of KIND or KIND/NAME; an empty part selects everything."""
    word, slash, name = (target or "").partition("/")
    if target is not None and (not word or bool(slash) != bool(name) or "/" in name):
        raise SettingsError(f"expected KIND or KIND/NAME, got {target!r}", hint=_EXAMPLE)
    return word, name


def not_rolled_out(what: object) -> LaminaError:
    """Return the error for an object that does not exist or that no family rolls out."""
    return SettingsError(
        f"{what} does not exist, or no family rolls it out",
        hint="list the owners with `lamina get`; select a namespace with -n",
    )


def find_kind(kinds: Kinds, word: str) -> Kind:
    """Return a kind by its name, plural or short name, in any case, with or without its group."""
    plain, _, group = word.lower().partition(".")
    in_group = [kind for kind in kinds if not group or kind.group == group]
    found = [kind for kind in in_group if plain in (kind.plural, kind.kind.lower())]
    # A full name takes precedence over a short one, as for kubectl.
    found = found or [kind for kind in in_group if plain in kind.short]
    if not found:
        raise SettingsError(
            f"the server does not serve a kind {word!r}",
            hint=LIST_KINDS,
        )
    if len(found) > 1:
        listed = ", ".join(f"{kind.plural}.{kind.group}" for kind in found)
        raise SettingsError(f"{word!r} is ambiguous: {listed}", hint="add the group to the kind")
    return found[0]
