"""`lamina get`: lists owners and their targets, with revision, progress and status."""

from __future__ import annotations

import json
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
from lamina.cli.output.rollout_status import family_world, live_owner_status
from lamina.cli.output.tables import table
from lamina.client.client import Client
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.families.registry import chosen
from lamina.objects import meta
from lamina.objects.times import stamp
from lamina.objects.types import Made
from lamina.runtime.controller.snapshot import Snapshot

COLUMNS = ("NAMESPACE", "NAME", "REVISION", "UPDATED", "AVAILABLE", "STATUS", "MESSAGE")
TARGET_COLUMNS = ("TARGET", "REVISION", "AVAILABLE", "STATUS", "SINCE", "MESSAGE")


@click.command()
@click.argument("kind", metavar="[KIND[/NAME]]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the owners. Default: all namespaces.")
@output_options
def get(kind: str | None, namespace: str | None, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    List owners: the goal revision, how many targets are updated and available, and the status.

    With a NAME, list the targets of that owner, too.
    """
    word, name = split_target(kind)
    statuses = with_client(
        load_access(kubeconfig, context), lambda client: _statuses(client, word, name, namespace)
    )
    if output == "json":
        click.echo(json.dumps([as_json(owner_status) for owner_status in statuses], indent=2))
    if name and not statuses:
        raise not_rolled_out(kind)
    if output == "json":
        return
    if not statuses:
        click.echo("No owners found.", err=True)
        return
    click.echo(table(COLUMNS, [row(owner_status) for owner_status in statuses]))
    if name:
        for owner_status in statuses:
            if owner_status.targets:
                click.echo()
                click.echo(table(TARGET_COLUMNS, target_rows(owner_status)))


def row(owner_status: OwnerStatus) -> tuple[str, ...]:
    """Return the row of an owner; `-` where it has no revisions or no targets."""
    ref, total = meta.ref(owner_status.owner), len(owner_status.targets)
    return (
        ref.namespace or "-",
        f"{ref.kind.lower()}/{ref.name}",
        str(owner_status.goal) if owner_status.goal else "-",
        f"{owner_status.updated}/{total}" if owner_status.goal else "-",
        f"{owner_status.available}/{total}" if owner_status.goal or total else "-",
        owner_status.state,
        owner_status.message,
    )


def target_rows(owner_status: OwnerStatus) -> list[tuple[str, ...]]:
    """Return a row for each target of an owner."""
    return [
        (
            name,
            str(target.revision) if target.revision else "-",
            "yes" if target.available else "no",
            target.state,
            stamp(target.since) if target.since is not None else "-",
            target.message,
        )
        for name, target in owner_status.targets.items()
    ]


def as_json(owner_status: OwnerStatus) -> Made:
    """Return the status of an owner and its targets as JSON."""
    ref = meta.ref(owner_status.owner)
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "revision": owner_status.goal,
        "updated": owner_status.updated,
        "available": owner_status.available,
        "state": owner_status.state,
        "message": owner_status.message,
        "ended": owner_status.has_ended,
        "targets": {
            name: {
                "revision": target.revision,
                "available": target.available,
                "state": target.state,
                "since": stamp(target.since) if target.since is not None else None,
                "message": target.message,
            }
            for name, target in owner_status.targets.items()
        },
    }


async def _statuses(client: Client, word: str, name: str, namespace: str | None) -> list[OwnerStatus]:
    wanted = find_kind(await client.discover(), word).group_kind if word else None
    found: list[OwnerStatus] = []
    snapshot = await Snapshot.of(client)
    for family in chosen("all"):
        world = await family_world(client, family, snapshot)
        for owner in family.owners(world):
            ref = meta.ref(owner)
            if wanted is not None and (ref.group, ref.kind) != tuple(wanted):
                continue
            if (namespace and ref.namespace != namespace) or (name and ref.name != name):
                continue
            owner_status = await live_owner_status(snapshot, family, world, ref)
            if owner_status is not None:
                found.append(owner_status)
    return found
