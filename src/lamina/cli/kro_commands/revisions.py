"""`kro revisions`: lists and compares revisions of definitions, and input revisions of instances."""

from __future__ import annotations

import json
from typing import Unpack

import click
import yaml

from lamina.cli.kro_commands.session import Access, Session, about_object, run
from lamina.cli.output.tables import table
from lamina.families.registry import kro

_NUMBER = click.IntRange(1)


@click.group()
def revisions() -> None:
    """List and compare the revisions of a definition, or the input revisions of an instance."""


@revisions.command("list")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", help="Output format."
)
@about_object
def listed(words: tuple[str, ...], output: str, **access: Unpack[Access]) -> None:
    """List the revisions of rgd/NAME, or the input revisions of the instance KIND/NAME, newest first."""

    async def work(session: Session) -> None:
        found = await session.decide(kro().revisions)
        match output:
            case "json":
                click.echo(json.dumps(found.data, indent=2))
            case "yaml":
                click.echo(yaml.safe_dump(list(found.data), sort_keys=False), nl=False)
            case _ if found.rows:
                click.echo(table(found.header, found.rows, gap="  "))
            case _:
                click.echo(found.empty, err=True)

    run(words, access, work)


@revisions.command("diff")
@click.option(
    "--from", "older", type=_NUMBER, metavar="N", help="Older revision. Default: the one before --to."
)
@click.option("--to", "newer", type=_NUMBER, metavar="N", help="Newer revision. Default: the current one.")
@about_object
def differences(
    words: tuple[str, ...], older: int | None, newer: int | None, **access: Unpack[Access]
) -> None:
    """Show the differences between two revisions of rgd/NAME, or two input revisions of KIND/NAME."""

    async def work(session: Session) -> None:
        decision = kro().differences
        click.echo(
            await session.decide(lambda targets, ref, answers: decision(targets, ref, older, newer, answers))
        )

    run(words, access, work)
