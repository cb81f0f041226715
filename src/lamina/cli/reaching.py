"""Which cluster a command is about, and which object on it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lamina.cli.running import choose_by_environment, servers
from lamina.client.client import Client
from lamina.client.http import HttpTransport
from lamina.client.kubeconfig import IN_CLUSTER, Access, in_cluster, read_kubeconfig
from lamina.errors import LaminaError, SettingsError, Unreachable
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Ref

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])
_EXAMPLE = "for example catset/nginx"
_SILENT = "is {} running, and can it be reached from here? `lamina status` says what runs of `lamina up`"
_NAMED = "name another with --kubeconfig FILE, or leave it out for the server that `lamina up` runs"
_SAID = "$KUBECONFIG says so; name another with --kubeconfig FILE, or unset it for the server of `lamina up`"


def cluster_options(command: Command) -> Command:
    """Give a command the options that say which cluster it is about."""
    for option in (
        click.option("--context", metavar="NAME", default="", help="Which context of the kubeconfig."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Which cluster. Default: the server that $LAMINA_PORT or $LAMINA_DATA names, $KUBECONFIG, "
            "the server that `lamina up` runs, or the cluster it runs in.",
        ),
    ):
        command = option(command)
    return command


def server_options(command: Command) -> Command:
    """Give a command the options that say which server of `lamina up` it is about."""
    for option in (
        click.option(
            "--port",
            type=int,
            default=0,
            metavar="N",
            help="The one that listens there. Default: $LAMINA_PORT.",
        ),
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="The server that keeps its state there. Default: $LAMINA_DATA.",
        ),
    ):
        command = option(command)
    return command


def object_options(command: Command) -> Command:
    """Give a command the options that say which object it is about, and on which cluster."""
    namespace = click.option(
        "-n", "--namespace", metavar="NAME", default="default", show_default=True, help="In which namespace."
    )
    return namespace(cluster_options(command))


def reach(kubeconfig: Path | None, context: str) -> Access:
    """Return how to reach the cluster that is meant."""
    if kubeconfig is not None:
        return read_kubeconfig(kubeconfig, context, hint=_NAMED)
    if _names_a_server():
        # Whoever says which server is meant means it, as `lamina kubectl` does.
        return read_kubeconfig(Path(choose_by_environment().kubeconfig), context)
    if files := os.environ.get("KUBECONFIG"):
        named = [Path(file) for file in files.split(os.pathsep) if file]
        return read_kubeconfig(named, context, hint=_SAID)
    if servers():
        return read_kubeconfig(Path(choose_by_environment().kubeconfig), context)
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if host and port and IN_CLUSTER.exists():
        return in_cluster(host, port)
    usual = Path.home() / ".kube" / "config"
    if usual.exists():
        return read_kubeconfig(usual, context)
    raise SettingsError(
        "there is no cluster to talk to",
        hint="start one with `lamina up`, or name one with --kubeconfig FILE",
    )


def _names_a_server() -> bool:
    """Say whether the environment says which server is meant; port 0 is any."""
    return bool(os.environ.get("LAMINA_DATA") or os.environ.get("LAMINA_PORT", "").strip("0"))


def with_client(
    access: Access, work: Callable[[Client], Awaitable[Result]], *, timeout: float | None = 60.0
) -> Result:
    """Do something with a client, and close it."""

    async def run() -> Result:
        client = Client(HttpTransport(access, timeout=timeout))
        try:
            return await work(client)
        except Unreachable as silent:
            silent.hint = silent.hint or _SILENT.format(access.server)
            raise
        finally:
            await client.close()

    return asyncio.run(run())


def named(kinds: Kinds, target: str, namespace: str) -> Ref:
    """Return the object that KIND/NAME means; the kind may be said in any of the ways kubectl takes."""
    word, name = word_and_name(target)
    if not name:
        raise SettingsError(f"expected KIND/NAME, got {target!r}", hint=_EXAMPLE)
    return kind_named(kinds, word).ref(namespace, name)


def word_and_name(target: str | None) -> tuple[str, str]:
    """Return the two parts of KIND/NAME; without a name all of that kind are meant, and without either everybody."""
    word, slash, name = (target or "").partition("/")
    if target is not None and (not word or bool(slash) != bool(name) or "/" in name):
        raise SettingsError(f"expected KIND or KIND/NAME, got {target!r}", hint=_EXAMPLE)
    return word, name


def nobodys(what: object) -> LaminaError:
    """Return the error that says of an object that there is nothing to say about it."""
    return SettingsError(
        f"{what} is not there, or nobody rolls anything out for it",
        hint="see who is rolled out with `lamina get`; -n says in which namespace to look",
    )


def kind_named(kinds: Kinds, word: str) -> Kind:
    """Return the kind that a word means: its name, plural or short name, in any case, with its group or without."""
    plain, _, group = word.lower().partition(".")
    meant = [kind for kind in kinds if not group or kind.group == group]
    found = [kind for kind in meant if plain in (kind.plural, kind.kind.lower())]
    # A whole name goes before a short one, as for kubectl.
    found = found or [kind for kind in meant if plain in kind.short]
    if not found:
        raise SettingsError(
            f"the server serves no kind {word!r}",
            hint="see what is served with `lamina kubectl api-resources`",
        )
    if len(found) > 1:
        listed = ", ".join(f"{kind.plural}.{kind.group}" for kind in found)
        raise SettingsError(f"{word!r} may be {listed}", hint="say which, with its group")
    return found[0]
