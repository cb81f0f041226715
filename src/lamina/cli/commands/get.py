"""`lamina get`: lists owners and their targets, with revision, progress and status."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from lamina.cli.options.cluster_flags import (
    find_kind,
    load_access,
    not_rolled_out,
    output_options,
    split_target,
    with_client,
)
from lamina.cli.output.rollout_status import OwnerStatuses, not_readable, owner_statuses, warn_unread
from lamina.cli.output.tables import table
from lamina.client.client import Client
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made

COLUMNS = ("NAMESPACE", "NAME", "REVISION", "UPDATED", "AVAILABLE", "STATUS", "MESSAGE")
UNKNOWN = "?"
TARGET_COLUMNS = ("TARGET", "REVISION", "AVAILABLE", "STATUS", "SINCE", "MESSAGE")


@click.command()
@click.argument("kind", metavar="[KIND[/NAME]]", required=False)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="Namespace of the owners, the only one that is asked. Default: all namespaces.",
)
@output_options
def get(kind: str | None, namespace: str | None, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    List owners: the goal revision, how many targets are updated and available, and the status.

    With a NAME, list the targets of that owner, too. What may not be read is
    shown as ?, with the reason on standard error.
    """
    word, name = split_target(kind)
    found = with_client(
        load_access(kubeconfig, context), lambda client: _statuses(client, word, name, namespace)
    )
    statuses = found.found
    if found.refused and not statuses:
        what = f"the status of {kind}" if name else f"which {kind or 'owners'} there are"
        raise not_readable(f"{what} is not known", found.refused, namespace=namespace)
    warn_unread(statuses)
    if output == "json":
        click.echo(json.dumps([as_json(owner_status) for owner_status in statuses], indent=2))
    if name and not statuses:
        raise not_rolled_out(kind)
    if output != "json":
        _print(statuses, with_targets=bool(name))
    if found.refused:
        raise not_readable("there may be more owners", found.refused, namespace=namespace)


def _print(statuses: Sequence[OwnerStatus], *, with_targets: bool) -> None:
    if not statuses:
        click.echo("No owners found.", err=True)
        return
    click.echo(table(COLUMNS, [row(owner_status) for owner_status in statuses]))
    for owner_status in statuses if with_targets else ():
        if owner_status.targets:
            click.echo()
            click.echo(table(TARGET_COLUMNS, target_rows(owner_status)))


def row(owner_status: OwnerStatus) -> tuple[str, ...]:
    """Return the row of an owner; `-` where it has no revisions or no targets, `?` where they may not be read."""
    ref = meta.ref(owner_status.owner)
    updated, available = counts(owner_status)
    return (
        ref.namespace or "-",
        f"{ref.kind.lower()}/{ref.name}",
        str(owner_status.goal or "-") if owner_status.is_goal_read else UNKNOWN,
        updated or "-",
        available or "-",
        owner_status.state,
        owner_status.message,
    )


def counts(owner_status: OwnerStatus) -> tuple[str, str]:
    """Return how many targets are updated and available; empty where there are none to count."""
    if owner_status.unread:
        return UNKNOWN, UNKNOWN
    total = len(owner_status.targets)
    return (
        f"{owner_status.updated}/{total}" if owner_status.goal else "",
        f"{owner_status.available}/{total}" if owner_status.goal or total else "",
    )


def target_rows(owner_status: OwnerStatus) -> list[tuple[str, ...]]:
    """Return a row for each target of an owner."""
    return [
        (
            name,
            str(target.revision or "-") if target.is_read else UNKNOWN,
            ("yes" if target.available else "no") if target.is_read else UNKNOWN,
            target.state,
            stamp(target.since) if target.since is not None else "-",
            target.message,
        )
        for name, target in owner_status.targets.items()
    ]


def as_json(owner_status: OwnerStatus) -> Made:
    """Return the status of an owner and its targets as JSON; null is what may not be read."""
    ref = meta.ref(owner_status.owner)
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "revision": owner_status.goal if owner_status.is_goal_read else None,
        "updated": owner_status.updated if not owner_status.unread else None,
        "available": owner_status.available if not owner_status.unread else None,
        "state": owner_status.state,
        "message": owner_status.message,
        "ended": owner_status.has_ended,
        "unread": list(owner_status.unread),
        "targets": {
            name: {
                "revision": target.revision if target.is_read else None,
                "available": target.available if target.is_read else None,
                "state": target.state,
                "since": stamp(target.since) if target.since is not None else None,
                "message": target.message,
            }
            for name, target in owner_status.targets.items()
        },
    }


async def _statuses(client: Client, word: str, name: str, namespace: str | None) -> OwnerStatuses:
    kind = find_kind(await client.discover(), word).group_kind if word else None
    return await owner_statuses(client, kind, namespace or "", lambda ref: name in ("", ref.name))
