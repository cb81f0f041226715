"""`lamina explain`: what happens next, and why."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lamina.cli.clock import now_at
from lamina.cli.plans import as_json, show
from lamina.cli.reaching import named, object_options, reach, with_client
from lamina.client.client import Client
from lamina.errors import SettingsError
from lamina.families.every import chosen
from lamina.hooks.files import Hooks
from lamina.logs import log
from lamina.runtime.calls import Calls
from lamina.runtime.picture import Outlook, Picture


@click.command()
@click.argument("target", metavar="KIND/NAME")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
@click.option(
    "--hooks",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File with the hooks to ask.",
)
@object_options
def explain(
    target: str, output: str, hooks: tuple[Path, ...], namespace: str, kubeconfig: Path | None, context: str
) -> None:
    """
    Say what would happen next to KIND/NAME, and why.

    The plan is made with the functions the controllers run with, hooks
    included, on what the cluster holds now. Nothing is written.
    """
    outlooks = with_client(
        reach(kubeconfig, context), lambda client: _outlooks(client, target, namespace, hooks)
    )
    if output == "json":
        told = [{"controller": one.controller.name, **as_json(one.plan)} for one in outlooks]
        click.echo(json.dumps(told, indent=2))
        return
    for one in outlooks:
        click.echo(f"{one.controller.name}: {show(one.plan)}")


async def _outlooks(client: Client, target: str, namespace: str, hooks: tuple[Path, ...]) -> list[Outlook]:
    picture = await Picture.of(client)
    ref = named(picture.kinds, target, namespace)
    files = Hooks(hooks, log)
    await files.start()
    now = await now_at(client)
    calls, found = Calls(local=files.find if hooks else lambda url: None), []
    try:
        for family in chosen("all"):
            for controller in await picture.controllers(family.controllers, family.sources):
                outlook = await picture.outlook(controller, ref, now, calls)
                if outlook is not None:
                    found.append(outlook)
    finally:
        await files.close()
        await calls.close()
    if not found:
        raise SettingsError(
            f"{ref} is not there, or no controller cares about it",
            hint="see who is rolled out with `lamina get`; -n says in which namespace to look",
        )
    return found
