"""`lamina revisions`: what an owner asked for, over time."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.accounts import account_of
from lamina.cli.reaching import named, object_options, reach, with_client
from lamina.cli.tables import table
from lamina.client.client import Client
from lamina.core.family import Account
from lamina.core.revision import Revision
from lamina.errors import RevisionNotFound, SettingsError
from lamina.objects import meta
from lamina.objects.diff import ABSENT, Change, diff
from lamina.objects.types import Made


@click.group()
def revisions() -> None:
    """Show the revisions of an owner, and how they differ."""


_NUMBER = click.IntRange(1)
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
    if not rows:
        click.echo(f"{meta.ref(account.owner)} has no revisions: {account.because}", err=True)
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
@click.option(
    "--from", "older", type=_NUMBER, metavar="N", help="From which revision. Default: the one before."
)
@click.option(
    "--to", "newer", type=_NUMBER, metavar="N", help="To which revision. Default: the one that is wanted."
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
    if not account.history.revisions:
        raise SettingsError(f"{meta.ref(account.owner)} has no revisions: {account.because}")
    after = _numbered(account, newer if newer is not None else account.wanted or account.goal)
    before = _numbered(account, older) if older is not None else account.history.before(after.number)
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


def _change(change: Change) -> Made:
    """Return one change; a side on which there is nothing is left out."""
    sides = {"before": change.before, "after": change.after}
    there = {side: value for side, value in sides.items() if value is not ABSENT}
    return {"path": list(change.path), **there, "text": str(change)}


async def _account(client: Client, target: str, namespace: str) -> Account:
    ref = named(await client.discover(), target, namespace)
    return (await account_of(client, ref))[2]
