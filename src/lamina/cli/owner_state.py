"""Says the state of one owner in one line, at once or when its rollout has ended."""

from __future__ import annotations

import asyncio
import json

import click

from lamina.cli.commands.get import as_json
from lamina.cli.options.cluster_flags import parse_object, with_client
from lamina.cli.output.rollout_status import is_gone, owner_status_of
from lamina.cli.owner_watch import report_owners
from lamina.cli.rollout_wait import TIMED_OUT, at_most, check_ended, sentence, timeout_seconds
from lamina.client.client import Client
from lamina.client.kubeconfig.read import Access
from lamina.core.model.family import Family
from lamina.core.model.state import State
from lamina.core.rollout.owner_status import OwnerStatus
from lamina.errors import LaminaError
from lamina.objects.types import Ref


def show_state(
    access: Access, target: str, namespace: str, *, wait: bool, timeout: str | None, output: str
) -> None:
    """Print the state of an owner; the exit code says whether it is healthy, has ended otherwise, or neither."""
    seconds = timeout_seconds(timeout)
    seen: list[OwnerStatus] = []

    async def run(client: Client) -> None:
        owner = parse_object(await client.discover(), target, namespace)
        family, _, found = await owner_status_of(client, owner)
        seen.append(found)
        if wait:
            await wait_until_healthy(client, owner, family, seen, seconds)

    error: LaminaError | None = None
    try:
        with_client(access, run)
        check_ended(seen[-1], State.HEALTHY)
    except LaminaError as raised:
        error = raised
    if seen:
        last = seen[-1]
        click.echo(json.dumps(as_json(last), indent=2) if output == "json" else sentence(last))
    if error is not None:
        raise error
    if seen[-1].state is not State.HEALTHY:
        raise click.exceptions.Exit(TIMED_OUT)


async def wait_until_healthy(
    client: Client, owner: Ref, family: Family, seen: list[OwnerStatus], seconds: float | None
) -> None:
    """Wait until an owner is healthy in a family, or its rollout has ended; each status is appended to `seen`."""
    done, deleted = asyncio.Event(), asyncio.Event()

    def report(by: Family, ref: Ref, owner_status: OwnerStatus | None) -> None:
        if by.name != family.name or ref._replace(api_version=owner.api_version) != owner or done.is_set():
            return
        if owner_status is None:
            deleted.set()
        else:
            seen.append(owner_status)
        if owner_status is None or owner_status.state is State.HEALTHY or owner_status.has_ended:
            done.set()

    async def synced() -> None:
        # What was deleted before the caches were filled is reported by none of them.
        if await is_gone(client, owner):
            report(family, owner, None)

    async with at_most(seconds, lambda: sentence(seen[-1])):
        await report_owners(client, report, done, owner.namespace, synced=synced)
    if deleted.is_set():
        raise LaminaError(f"{owner} was deleted before it was {State.HEALTHY}")
