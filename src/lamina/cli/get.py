"""`lamina get`: who is where on the way."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.accounts import pictured
from lamina.cli.reaching import cluster_options, kind_named, nobodys, reach, with_client, word_and_name
from lamina.cli.tables import table
from lamina.client.client import Client
from lamina.core.family import Account
from lamina.families.every import chosen
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made

COLUMNS = ("NAMESPACE", "OWNER", "REVISION", "TARGETS", "STATE", "BECAUSE")
PLACES = ("TARGET", "REVISION", "STATE", "SINCE", "BECAUSE")


@click.command()
@click.argument("kind", metavar="[KIND[/NAME]]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Only in this namespace.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@cluster_options
def get(kind: str | None, namespace: str | None, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    List what is rolled out: which revision each owner asks for, who is there, and what it waits for.

    With a NAME, and where that is known, each of its targets has a line of its own.
    """
    word, name = word_and_name(kind)
    told = with_client(reach(kubeconfig, context), lambda client: _accounts(client, word, name, namespace))
    is_named = bool(name)
    if output == "json":
        click.echo(json.dumps([as_json(account) for account in told], indent=2))
    if is_named and not told:
        raise nobodys(kind)
    if output == "json":
        return
    if not told:
        click.echo("nothing is rolled out here", err=True)
        return
    click.echo(table(COLUMNS, [row(account) for account in told]))
    if is_named:
        for account in told:
            if account.places:
                click.echo()
                click.echo(table(PLACES, places(account)))


def places(account: Account) -> list[tuple[str, ...]]:
    """Return where each target of an owner is, a row a target."""
    return [
        (
            name,
            str(place.revision) if place.revision else "-",
            place.state,
            stamp(place.since) if place.since is not None else "-",
            place.because,
        )
        for name, place in account.places.items()
    ]


def row(account: Account) -> tuple[str, ...]:
    """Return how an owner stands, a cell a column."""
    ref = meta.ref(account.owner)
    targets = f"{account.arrived}/{len(account.targets)}" if account.goal else "-"
    number = str(account.goal) if account.goal else "-"
    owner = f"{ref.kind.lower()}/{ref.name}"
    return ref.namespace or "-", owner, number, targets, account.state, account.because


def as_json(account: Account) -> Made:
    """Return how an owner stands, for a program to read."""
    ref = meta.ref(account.owner)
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "revision": account.goal,
        "targets": dict(account.targets),
        "state": account.state,
        "because": account.because,
        "places": {
            name: {
                "revision": place.revision,
                "state": place.state,
                "since": stamp(place.since) if place.since is not None else None,
                "because": place.because,
            }
            for name, place in account.places.items()
        },
    }


async def _accounts(client: Client, word: str, name: str, namespace: str | None) -> list[Account]:
    wanted = kind_named(await client.discover(), word).group_kind if word else None
    found: list[Account] = []
    for family in chosen("all"):
        world = await pictured(client, family)
        for owner in family.owners(world):
            ref = meta.ref(owner)
            if wanted is not None and (ref.group, ref.kind) != tuple(wanted):
                continue
            if (namespace and ref.namespace != namespace) or (name and ref.name != name):
                continue
            account = family.account(world, ref)
            if account is not None:
                found.append(account)
    return found
