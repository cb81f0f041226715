"""`lamina revisions`: what an owner asked for, over time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from lamina.cli.accounts import account_of
from lamina.cli.reaching import named, object_options, reach, with_client
from lamina.cli.tables import table
from lamina.client.client import Client
from lamina.core.family import Account
from lamina.core.revision import Revision
from lamina.errors import RevisionNotFound
from lamina.objects import meta
from lamina.objects.diff import diff
from lamina.objects.types import Made


@click.group()
def revisions() -> None:
    """Show the revisions of an owner, and how they differ."""


_output = click.option(
    "-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it."
)


@revisions.command("list")
@click.argument("target", metavar="KIND/NAME")
@_output
@object_options
def listed(target: str, output: str, namespace: str, kubeconfig: Path | None, context: str) -> None:
    """List the revisions of KIND/NAME, the newest first."""
    account = with_client(reach(kubeconfig, context), lambda client: _account(client, target, namespace))
    rows = [_row(account, revision) for revision in reversed(account.history.revisions)]
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo(
        table(
            ("REVISION", "STATE", "TARGETS", "NAME"),
            [(str(row["revision"]), row["state"], str(len(row["targets"])), row["name"]) for row in rows],
        )
    )


def _row(account: Account, revision: Revision) -> Made:
    targets = [key for key, number in account.targets.items() if number == revision.number]
    number, wanted = revision.number, account.wanted or account.goal
    # Where a rollout turned round, what is wanted is not where everybody goes.
    state = (
        "wanted"
        if number == wanted
        else "stable"
        if number == account.goal
        else "in use"
        if targets
        else "idle"
    )
    return {
        "revision": revision.number,
        "name": revision.name,
        "state": state,
        "targets": targets,
        "snapshot": revision.snapshot,
    }


@revisions.command("diff")
@click.argument("target", metavar="KIND/NAME")
@click.option("--from", "older", type=int, metavar="N", help="From which revision. Default: the one before.")
@click.option(
    "--to", "newer", type=int, metavar="N", help="To which revision. Default: the one that is wanted."
)
@_output
@object_options
def differences(
    target: str,
    older: int | None,
    newer: int | None,
    output: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Show what changed between two revisions of KIND/NAME."""
    account = with_client(reach(kubeconfig, context), lambda client: _account(client, target, namespace))
    after = _numbered(account, newer or account.wanted or account.goal)
    before = _numbered(account, older) if older else account.history.before(after.number)
    changes = diff(before.snapshot if before is not None else {}, after.snapshot)
    if output == "json":
        click.echo(json.dumps([_change(one) for one in changes], indent=2))
        return
    shown = f"revision {before.number}" if before is not None else "nothing"
    click.echo(f"from {shown} to revision {after.number}", err=True)
    for one in changes:
        click.echo(str(one))
    if not changes:
        click.echo("they hold the same", err=True)


def _numbered(account: Account, number: int) -> Revision:
    found = account.history.numbered(number)
    if found is None:
        kept = [one.number for one in account.history.revisions]
        raise RevisionNotFound(meta.ref(account.owner), number, kept)
    return found


def _change(change: Any) -> Made:
    return {"path": list(change.path), "text": str(change)}


async def _account(client: Client, target: str, namespace: str) -> Account:
    ref = named(await client.discover(), target, namespace)
    return (await account_of(client, ref))[2]
