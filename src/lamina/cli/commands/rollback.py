"""`lamina rollback`: rolls an owner back to an earlier revision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from lamina.cli.commands.revisions import change_json
from lamina.cli.options.cluster_flags import load_access, object_options, parse_object, with_client
from lamina.cli.output.print_plan import plan_json, plan_text
from lamina.cli.output.rollout_status import readable_owner_status_of
from lamina.client.client import Client
from lamina.control_plane.install import MANAGER
from lamina.core.model.plan import Patch, Plan, Replace
from lamina.errors import PlanFailed
from lamina.merge.patches import merge_patch
from lamina.objects import meta
from lamina.objects.diff import Change, diff
from lamina.objects.types import Obj
from lamina.runtime.controller.executor import Executor


@click.command()
@click.argument("target", metavar="KIND/NAME")
@click.option(
    "--to-revision",
    type=click.IntRange(1),
    metavar="N",
    help="Revision to roll back to. Default: the previous one; where success is recorded, the newest that succeeded.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and what changes, and write nothing.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
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
    Roll back KIND/NAME to an earlier revision.

    The content of that revision becomes the newest revision and is rolled out at
    the usual pace; the history is not rewritten.
    """

    async def work(client: Client) -> tuple[Plan, Obj]:
        ref = parse_object(await client.discover(), target, namespace)
        family, world, owner_status = await readable_owner_status_of(client, ref)
        plan = family.rollback(world, ref, to_revision)
        if not dry_run:
            outcome = await Executor(client, manager=MANAGER).run(plan)
            if outcome.refused:
                raise PlanFailed([one.error for one in outcome.refused])
        return plan, owner_status.owner

    plan, owner = with_client(load_access(kubeconfig, context), work)
    changes = _changes(plan, owner)
    if output == "json":
        click.echo(
            json.dumps({**plan_json(plan), "changes": [change_json(one) for one in changes]}, indent=2)
        )
    elif not plan.actions:
        click.echo("nothing to do: the spec already has the content of that revision", err=True)
    else:
        click.echo("\n".join((plan_text(plan), *map(str, changes))) if dry_run else plan.because)


def _changes(plan: Plan, owner: Obj) -> Sequence[Change]:
    """Return what a plan changes in an owner."""
    after = owner
    for action in plan.actions:
        match action:
            case Replace(obj=obj) if action.ref == meta.ref(owner):
                after = obj
            case Patch(ref=ref, patch=patch) if ref == meta.ref(owner):
                after = merge_patch(after, patch)
    return diff(owner, after)
