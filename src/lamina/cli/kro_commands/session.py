"""Finds the object that a command names, and answers the queries of the family."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypedDict, TypeVar

import click

from lamina.cli.options.cluster_flags import find_kind, load_access, object_options, split_target, with_client
from lamina.client.client import Client
from lamina.core.model.effects import Ask
from lamina.core.model.queries import Answer, Answers, Query
from lamina.core.model.query_rounds import decided
from lamina.core.model.revision_commands import Queries, Targets
from lamina.errors import SettingsError
from lamina.families.registry import kro
from lamina.objects.kinds import Kind
from lamina.objects.types import Ref
from lamina.runtime.controller.driver import drive
from lamina.runtime.controller.live_queries import LiveQueries

Decision = TypeVar("Decision")
Command = TypeVar("Command", bound=Callable[..., object])
_FORM = "expected rgd/NAME or KIND/NAME, got {!r}"


class Access(TypedDict):
    """The values of the options that every command about an object has."""

    namespace: str
    kubeconfig: Path | None
    context: str


def about_object(command: Command) -> Command:
    """Add the argument that names an object, and the options that select its cluster and namespace."""
    words = click.argument("words", metavar="KIND/NAME", nargs=-1, required=True)
    return words(object_options(command))


class Session:
    """A cluster, and the object of it that a command is about."""

    def __init__(self, client: Client, targets: Targets, ref: Ref) -> None:
        self.client, self.targets, self.ref = client, targets, ref

    async def decide(self, decision: Callable[[Targets, Ref, Answers], Decision | Queries]) -> Decision:
        return await decide(self.client, partial(decision, self.targets, self.ref))


async def decide(client: Client, decision: Callable[[Answers], Decision | Queries]) -> Decision:
    """Return what a function decides; its queries are answered by a cluster."""
    live = LiveQueries(client)

    async def answer(ask: Ask) -> Mapping[Query, Answer]:
        return await live.ask(ask.queries)

    return await drive(decided(decision, kro().name), answer)


def run(words: tuple[str, ...], access: Access, work: Callable[[Session], Awaitable[None]]) -> None:
    """Run a command about an object."""

    async def found(client: Client) -> None:
        targets = await decide(client, partial(kro().targets, await client.discover()))
        word, name = parse_words(words)
        await work(Session(client, targets, _kind(targets, word).ref(access["namespace"], name)))

    with_client(load_access(access["kubeconfig"], access["context"]), found)


def parse_words(words: tuple[str, ...]) -> tuple[str, str]:
    """Return the kind and the name of `KIND/NAME`, `KIND NAME` or `instance KIND/NAME`."""
    match words:
        case ("instance", target) if "/" in target:
            return split_target(target)
        case (kind, name) if "/" not in kind + name:
            return kind, name
        case (target,) if "/" in target:
            return split_target(target)
        case _:
            raise SettingsError(_FORM.format(" ".join(words)), hint="for example rgd/application")


def _kind(targets: Targets, word: str) -> Kind:
    try:
        return find_kind(targets.kinds, word)
    except SettingsError:
        # Where it is ambiguous, or not served at all, that is the error.
        kind = find_kind(targets.served, word)
        if kind.group_kind in {one.group_kind for one in targets.kinds}:
            raise
        raise SettingsError(f"no ResourceGraphDefinition generates the kind {kind.kind}") from None
