"""`lamina rollback`: back to an earlier revision."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.accounts import account_of
from lamina.cli.plans import as_json, show
from lamina.cli.reaching import named, object_options, reach, with_client
from lamina.client.client import Client
from lamina.core.plan import Plan
from lamina.errors import PlanFailed
from lamina.product import MANAGER
from lamina.runtime.executor import Executor


@click.command()
@click.argument("target", metavar="KIND/NAME")
@click.option(
    "--to-revision", type=int, metavar="N", help="Revision to return to. Default: the one before this."
)
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@object_options
def rollback(
    target: str,
    to_revision: int | None,
    dry_run: bool,
    output: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Return KIND/NAME to an earlier revision.

    History is not rewritten: the old content becomes the newest revision, and
    goes out at the usual pace.
    """

    async def work(client: Client) -> Plan:
        ref = named(await client.discover(), target, namespace)
        family, world, _ = await account_of(client, ref)
        plan = family.rollback(world, ref, to_revision)
        if not dry_run:
            outcome = await Executor(client, manager=MANAGER).run(plan)
            if outcome.refused:
                raise PlanFailed([one.error for one in outcome.refused])
        return plan

    plan = with_client(reach(kubeconfig, context), work)
    if output == "json":
        click.echo(json.dumps(as_json(plan), indent=2))
    elif not plan.actions:
        click.echo("nothing to do: it asks for that already", err=True)
    else:
        click.echo(show(plan) if dry_run else plan.because)
