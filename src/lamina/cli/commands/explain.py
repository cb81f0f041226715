"""`lamina explain`: shows the plans that the controllers would make for an object now."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.commands.clock import now_at
from lamina.cli.options.cluster_flags import load_access, object_options, parse_object, with_client
from lamina.cli.output.print_plan import plan_json, plan_text
from lamina.cli.output.rollout_status import (
    ASK_FOR_RIGHTS,
    exists,
    not_readable,
    planning_snapshot,
    warn_each,
)
from lamina.client.client import Client
from lamina.core.model.refused_reads import Refusals
from lamina.errors import SettingsError
from lamina.families.registry import chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.runtime.controller.snapshot import PlannedStep
from lamina.runtime.hooks.client import HookClient


@click.command()
@click.argument("target", metavar="KIND/NAME")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.option(
    "--hooks",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Python file with the hooks to call; repeatable.",
)
@object_options
def explain(
    target: str, output: str, hooks: tuple[Path, ...], namespace: str, kubeconfig: Path | None, context: str
) -> None:
    """
    Show what the controllers would do next to KIND/NAME, and why.

    The plans come from the planning functions of the controllers, hooks included,
    and the current state of the cluster. Nothing is written.
    """
    steps = with_client(
        load_access(kubeconfig, context), lambda client: _planned_steps(client, target, namespace, hooks)
    )
    planned = [one for one in steps if not one.refused]
    if output == "json":
        plans = [{"controller": one.controller.name, **plan_json(one.plan)} for one in planned]
        click.echo(json.dumps(plans, indent=2))
    else:
        for one in planned:
            click.echo(f"{one.controller.name}: {plan_text(one.plan)}")
    warn_each(reason for one in steps for reason in one.limits)
    if unplanned := [one for one in steps if one.refused]:
        reasons = dict.fromkeys(error.message for one in unplanned for error in one.refused)
        names = ", ".join(one.controller.name for one in unplanned)
        raise SettingsError(f"what {names} would do is not known: {'; '.join(reasons)}", hint=ASK_FOR_RIGHTS)


async def _planned_steps(
    client: Client, target: str, namespace: str, hooks: tuple[Path, ...]
) -> list[PlannedStep]:
    ref = parse_object(await client.discover(), target, namespace)
    snapshot, refused = await planning_snapshot(client, ref.namespace), Refusals()
    files = Hooks(hooks, log)
    await files.start()
    now = await now_at(client)
    calls, found = HookClient(local=files.find if hooks else lambda url: None), []
    try:
        for family in chosen("all"):
            for controller in await snapshot.controllers(family.controllers, family.sources, refused):
                step = await snapshot.plan_for(controller, ref, now, calls, refused)
                if step is not None:
                    found.append(step)
    finally:
        await files.close()
        await calls.close()
    if not found and refused and await exists(client, ref):
        raise not_readable(f"which controllers reconcile {ref} is not known", refused)
    if not found:
        raise SettingsError(
            f"{ref} does not exist, or no controller reconciles it",
            hint="list the owners with `lamina get`; select a namespace with -n",
        )
    return found
