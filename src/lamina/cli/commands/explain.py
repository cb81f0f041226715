"""`lamina explain`: shows the plans that the controllers would make for an object now."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.commands.clock import now_at
from lamina.cli.options.cluster_flags import load_access, object_options, parse_object, with_client
from lamina.cli.output.print_plan import plan_json, plan_text
from lamina.client.client import Client
from lamina.errors import SettingsError
from lamina.families.registry import chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.runtime.controller.snapshot import PlannedStep, Snapshot
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
    if output == "json":
        plans = [{"controller": one.controller.name, **plan_json(one.plan)} for one in steps]
        click.echo(json.dumps(plans, indent=2))
        return
    for one in steps:
        click.echo(f"{one.controller.name}: {plan_text(one.plan)}")


async def _planned_steps(
    client: Client, target: str, namespace: str, hooks: tuple[Path, ...]
) -> list[PlannedStep]:
    snapshot = await Snapshot.of(client)
    ref = parse_object(snapshot.kinds, target, namespace)
    files = Hooks(hooks, log)
    await files.start()
    now = await now_at(client)
    calls, found = HookClient(local=files.find if hooks else lambda url: None), []
    try:
        for family in chosen("all"):
            for controller in await snapshot.controllers(family.controllers, family.sources):
                step = await snapshot.plan_for(controller, ref, now, calls)
                if step is not None:
                    found.append(step)
    finally:
        await files.close()
        await calls.close()
    if not found:
        raise SettingsError(
            f"{ref} does not exist, or no controller reconciles it",
            hint="list the owners with `lamina get`; select a namespace with -n",
        )
    return found
