"""`lamina revisions`: lists the revisions of an owner, and compares two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from lamina.cli.commands.clock import now_at
from lamina.cli.commands.get import UNKNOWN
from lamina.cli.options.cluster_flags import load_access, object_options, parse_object, with_client
from lamina.cli.output.rollout_status import readable_owner_status_of, warn_unread
from lamina.cli.output.tables import table
from lamina.client.client import Client
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.core.rollout.revision import Revision
from lamina.errors import RevisionNotFound, SettingsError
from lamina.objects import conditions, meta
from lamina.objects.diff import ABSENT, Change, diff
from lamina.objects.times import moment
from lamina.objects.types import Made
from lamina.server.kinds.columns import human_duration


@click.group()
def revisions() -> None:
    """List the revisions of an owner, or compare two."""


_NUMBER = click.IntRange(1)
_output = click.option(
    "-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format."
)


@revisions.command("list")
@click.argument("target", metavar="KIND/NAME")
@_output
@object_options
def listed(target: str, output: str, namespace: str, kubeconfig: Path | None, context: str) -> None:
    """
    List the revisions of KIND/NAME, newest first.

    The spec asks for the one that is wanted. An abort returns to the one that is
    stable. Targets are on those that are in use, and none on those that are idle.
    """

    async def read(client: Client) -> tuple[OwnerStatus, datetime]:
        return await _owner_status(client, target, namespace), await now_at(client)

    owner_status, now = with_client(load_access(kubeconfig, context), read)
    warn_unread([owner_status])
    rows = [described(owner_status, revision) for revision in reversed(owner_status.history.revisions)]
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo(f"{meta.ref(owner_status.owner)} has no revisions: {owner_status.unrevised}", err=True)
        return
    click.echo(shown(rows, now))


def shown(rows: Sequence[Made], now: datetime) -> str:
    """Return revisions as a table: with the cause where users note one, and with success where revisions report it."""
    columns = {
        "REVISION": [str(row["revision"]) for row in rows],
        "ROLE": [row["role"] for row in rows],
        "TARGETS": [str(len(row["targets"])) if row["targets"] is not None else UNKNOWN for row in rows],
    }
    if any(row["succeeded"] for row in rows):
        columns["SUCCEEDED"] = ["yes" if row["succeeded"] else "no" for row in rows]
    columns["AGE"] = [_age(row["created"], now) for row in rows]
    columns["NAME"] = [row["name"] for row in rows]
    if any(row["changeCause"] for row in rows):
        columns["CHANGE-CAUSE"] = [row["changeCause"] or "<none>" for row in rows]
    return table(tuple(columns), list(zip(*columns.values(), strict=True)))


def created(revision: Revision) -> str:
    """Return when a revision was stored; empty where it is not stored yet."""
    stored = meta.metadata(revision.obj).get("creationTimestamp") if revision.obj is not None else ""
    return revision.created or stored or ""


def _age(created: str, now: datetime) -> str:
    since = moment(created)
    return human_duration((now - since).total_seconds()) if since is not None else "-"


def described(owner_status: OwnerStatus, revision: Revision) -> Made:
    """Return one revision as JSON, null for targets that may not be read; one has succeeded where its object has a condition that says so."""
    are_read = all(one.is_read for one in owner_status.targets.values()) and not owner_status.unread
    targets = [key for key, one in owner_status.targets.items() if one.revision == revision.number]
    number, wanted = revision.number, owner_status.wanted or owner_status.goal
    # An abort returns to the stable revision; the revision of the spec is still wanted then.
    role = (
        "wanted"
        if number == wanted
        else "stable"
        if number in (owner_status.goal, owner_status.stable)
        else "in use"
        if targets
        else "idle"
        if are_read
        else UNKNOWN
    )
    return {
        "revision": revision.number,
        "name": revision.name,
        "role": role,
        "targets": targets if are_read else None,
        "succeeded": conditions.is_true(conditions.of(revision.obj or {}), "Succeeded"),
        "created": created(revision),
        "changeCause": revision.change_cause,
        "snapshot": revision.snapshot,
    }


@revisions.command("diff")
@click.argument("target", metavar="KIND/NAME")
@click.option(
    "--from", "older", type=_NUMBER, metavar="N", help="Older revision. Default: the one before --to."
)
@click.option(
    "--to",
    "newer",
    type=_NUMBER,
    metavar="N",
    help="Newer revision. Default: the one that the spec asks for.",
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
    """Show the differences between two revisions of KIND/NAME."""
    owner_status = with_client(
        load_access(kubeconfig, context), lambda client: _owner_status(client, target, namespace)
    )
    if not owner_status.history.revisions:
        raise SettingsError(f"{meta.ref(owner_status.owner)} has no revisions: {owner_status.unrevised}")
    after = _numbered(owner_status, newer if newer is not None else owner_status.wanted or owner_status.goal)
    before = (
        _numbered(owner_status, older) if older is not None else owner_status.history.before(after.number)
    )
    changes = diff(before.snapshot if before is not None else {}, after.snapshot)
    if output == "json":
        click.echo(json.dumps([change_json(one) for one in changes], indent=2))
        return
    shown = f"revision {before.number}" if before is not None else "nothing"
    click.echo(f"from {shown} to revision {after.number}", err=True)
    for one in changes:
        click.echo(str(one))
    if not changes:
        click.echo("no differences", err=True)


def _numbered(owner_status: OwnerStatus, number: int) -> Revision:
    found = owner_status.history.numbered(number)
    if found is None:
        kept = [one.number for one in owner_status.history.revisions]
        raise RevisionNotFound(meta.ref(owner_status.owner), number, kept)
    return found


def change_json(change: Change) -> Made:
    """Return one change as JSON, without `before` or `after` where the field is absent."""
    sides = {"before": change.before, "after": change.after}
    present = {side: value for side, value in sides.items() if value is not ABSENT}
    return {"path": list(change.path), **present, "text": str(change)}


async def _owner_status(client: Client, target: str, namespace: str) -> OwnerStatus:
    ref = parse_object(await client.discover(), target, namespace)
    return (await readable_owner_status_of(client, ref))[2]
