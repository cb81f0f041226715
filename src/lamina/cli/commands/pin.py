"""`lamina pin`: pins an owner to a revision, so that it does not follow newer ones."""

from __future__ import annotations

from pathlib import Path

import click

from lamina.cli.options.cluster_flags import load_access, object_options, parse_object, with_client
from lamina.cli.output.rollout_status import readable_owner_status_of
from lamina.client.client import Client
from lamina.control_plane.install import MANAGER
from lamina.core.model.plan import Plan
from lamina.errors import PlanFailed, SettingsError
from lamina.runtime.controller.executor import Executor


@click.command()
@click.argument("target", metavar="KIND/NAME")
@click.option(
    "--to-revision",
    "--rgd-revision",
    "to_revision",
    type=click.IntRange(1),
    required=True,
    metavar="N",
    help="Revision to pin it to.",
)
@object_options
def pin(target: str, to_revision: int, namespace: str, kubeconfig: Path | None, context: str) -> None:
    """Pin KIND/NAME to a revision; it does not follow newer ones until it is unpinned."""
    set_pin(target, to_revision, namespace, kubeconfig, context)


def set_pin(target: str, revision: int | None, namespace: str, kubeconfig: Path | None, context: str) -> None:
    """Pin an owner, or unpin it without a revision, and print what was done."""

    async def work(client: Client) -> Plan:
        ref = parse_object(await client.discover(), target, namespace)
        family, world, _ = await readable_owner_status_of(client, ref)
        if family.pin is None:
            raise SettingsError(f"{ref} has no pins: in the family {family.name}, targets follow their owner")
        plan = family.pin(world, ref, revision)
        outcome = await Executor(client, manager=MANAGER).run(plan)
        if outcome.refused:
            raise PlanFailed([one.error for one in outcome.refused])
        return plan

    plan = with_client(load_access(kubeconfig, context), work)
    done = "it is pinned to that revision already" if revision is not None else "it has no pin"
    click.echo(plan.because if plan.actions else f"nothing to do: {done}", err=not plan.actions)
