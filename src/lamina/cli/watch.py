"""`lamina watch`: who is where on the way, as it happens."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import click
from msgspec.structs import replace

from lamina.cli.accounts import account_of
from lamina.cli.get import COLUMNS, as_json, row
from lamina.cli.reaching import cluster_options, kind_named, reach, with_client, word_and_name
from lamina.cli.tables import Lines
from lamina.client.client import Client
from lamina.clock import WallClock
from lamina.core.controller import AnyController, Controller, Source, Watch, nobody
from lamina.core.family import Account, Family
from lamina.core.plan import NOTHING
from lamina.core.rollout import Standing
from lamina.core.world import World
from lamina.errors import LaminaError, NotFound
from lamina.families.every import chosen
from lamina.objects.types import GroupKind, Made, Ref
from lamina.runtime.manager import Manager

Tell = Callable[[Ref, Account | None], None]
_GONE = "gone"
_STATES = (*map(str, Standing), "turning", "aborted", "unnumbered", "unknown", _GONE)
"""Every word that an account has for how its owner stands, and the one for those who are no more."""


@click.command()
@click.argument("kind", metavar="[KIND[/NAME]]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Only in this namespace.")
@click.option(
    "--until",
    type=click.Choice(_STATES),
    metavar="STATE",
    help="End once an owner is in this state: settled, aborted, failed, gone.",
)
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@cluster_options
def watch(
    kind: str | None,
    namespace: str | None,
    until: str | None,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Follow what is rolled out: a line whenever an owner's account of itself changes.

    The columns are those of `lamina get`; with -o json each line is an object.
    Goes on until Ctrl-C, or until an owner is in the state of --until. One that is
    named is in the namespace `default` unless -n says otherwise; with --until, it
    has to be there.
    """
    word, name = word_and_name(kind)
    with suppress(KeyboardInterrupt):
        with_client(
            reach(kubeconfig, context), lambda client: _follow(client, word, name, namespace, until, output)
        )


async def _follow(
    client: Client, word: str, name: str, namespace: str | None, until: str | None, output: str
) -> None:
    kind = kind_named(await client.discover(), word) if word else None
    wanted = kind.group_kind if kind is not None else None
    meant = kind.ref(namespace or "default", name) if kind is not None and name else None
    if meant is not None:
        namespace = meant.namespace
    if meant is not None and until and not await _is_there(client, meant, until):
        return
    said: dict[Ref, Made | tuple[str, ...]] = {}
    enough = asyncio.Event()
    lines = Lines(COLUMNS, widths=(12, 24, 8, 7, 8, 0))

    def tell(ref: Ref, account: Account | None) -> None:
        """Print what is new about an owner, once."""
        if wanted is not None and GroupKind(ref.group, ref.kind) != wanted:
            return
        if (namespace and ref.namespace != namespace) or (name and ref.name != name):
            return
        if account is None:
            if ref in said:
                del said[ref]
                show(_gone(ref), _gone_row(ref))
                if meant is not None and until:
                    # What it is waited for will not come any more.
                    enough.set()
            return
        told, cells = as_json(account), row(account)
        # What a line does not show is no news where lines are shown.
        news: Made | tuple[str, ...] = told if output == "json" else cells
        if said.get(ref) != news:
            said[ref] = news
            show(told, cells)

    def show(told: Made, cells: tuple[str, ...]) -> None:
        if not enough.is_set():
            _print(lines, output, told, cells)
        if told["state"] == until:
            enough.set()

    families = chosen("all")
    sources = [_observed(family, source, tell) for family in families for source in family.sources]
    fixed = [one for family in families for one in _watching(family, family.controllers, (), tell)]
    following = asyncio.create_task(Manager(client, fixed, clock=WallClock(), sources=sources).run())
    ending = asyncio.create_task(enough.wait())
    try:
        await asyncio.wait((following, ending), return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            await following
        if meant is not None and not said and until != _GONE:
            raise LaminaError(f"{meant} was deleted before it was {until}")
    finally:
        for task in (following, ending):
            task.cancel()
        await asyncio.gather(following, ending, return_exceptions=True)


async def _is_there(client: Client, owner: Ref, until: str) -> bool:
    """Say whether there is anything to wait for; raises where it can never be."""
    if until != _GONE:
        await account_of(client, owner)
        return True
    try:
        await client.get(owner)
    except NotFound:
        return False
    return True


def _print(lines: Lines, output: str, told: Made, cells: tuple[str, ...]) -> None:
    try:
        click.echo(json.dumps(told) if output == "json" else lines.next(cells))
    except BrokenPipeError:
        # Whoever read along has had enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise KeyboardInterrupt from None


def _gone(ref: Ref) -> Made:
    return {
        "apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name,
        "revision": 0, "targets": {}, "state": _GONE, "because": "it was deleted",
        "places": {},
    }  # fmt: skip


def _gone_row(ref: Ref) -> tuple[str, ...]:
    return ref.namespace or "-", f"{ref.kind.lower()}/{ref.name}", "-", "-", _GONE, "it was deleted"


def _observed(family: Family, source: Source, tell: Tell) -> Source:
    """Return where onlookers come from: one for each controller that would run."""
    return replace(source, controllers=lambda world: _onlookers(family, source, world, tell))


def _onlookers(family: Family, source: Source, world: World, tell: Tell) -> tuple[AnyController, ...]:
    return _watching(family, source.controllers(world), source.watches, tell)


def _watching(
    family: Family, running: Sequence[AnyController], more: Sequence[Watch], tell: Tell
) -> tuple[AnyController, ...]:
    """Return controllers that are told of the same changes, see what all of them see, and only tell."""
    watches = [*more, *(watch for controller in running for watch in controller.watches)]
    seen = tuple(replace(watch, concerns=nobody) for watch in watches)

    def gather(world: World, ref: Ref) -> None:
        tell(ref, family.account(world, ref))

    return tuple(
        Controller(
            name=controller.name,
            watches=(*controller.watches, *seen),
            gather=gather,
            plan=lambda view, answers, now: NOTHING,
            edition=" ".join(one.edition for one in running),
        )
        for controller in running
    )
