"""`kro rollback`, `kro pin`, `kro unpin`: annotate an object, and wait for the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, Unpack

import click

from lamina.cli.kro_commands.annotation_edit import carry_out
from lamina.cli.kro_commands.session import Access, Session, about_object, run
from lamina.cli.options.param_types import parse_seconds
from lamina.core.model.queries import Answers
from lamina.core.model.revision_commands import AnnotationEdit, Queries, Targets
from lamina.families.registry import kro
from lamina.objects.types import Ref

Command = TypeVar("Command", bound=Callable[..., object])
_NUMBER = click.IntRange(1)
_WAIT = "30s"


def _waits(command: Command) -> Command:
    text = "How long to wait for the result; 0 to return at once."
    return click.option("--wait", metavar="DURATION", default=_WAIT, show_default=True, help=text)(command)


@click.command()
@click.option("--to-revision", type=_NUMBER, metavar="N", help="Revision to roll a definition back to.")
@click.option(
    "--to-input-revision", type=_NUMBER, metavar="N", help="Input revision to roll an instance back to."
)
@_waits
@about_object
def rollback(
    words: tuple[str, ...],
    to_revision: int | None,
    to_input_revision: int | None,
    wait: str,
    **access: Unpack[Access],
) -> None:
    """Roll back rgd/NAME to a revision, or the instance KIND/NAME to an input revision."""
    decision = kro().rollback
    _edit(
        words,
        access,
        wait,
        lambda targets, ref, answers: decision(targets, ref, to_revision, to_input_revision, answers),
    )


@click.command()
@click.option(
    "--rgd-revision", type=_NUMBER, required=True, metavar="N", help="Revision to pin the instance to."
)
@_waits
@about_object
def pin(words: tuple[str, ...], rgd_revision: int, wait: str, **access: Unpack[Access]) -> None:
    """Pin the instance KIND/NAME to a revision of its definition."""
    decision = kro().pin
    _edit(words, access, wait, lambda targets, ref, answers: decision(targets, ref, rgd_revision, answers))


@click.command()
@about_object
def unpin(words: tuple[str, ...], **access: Unpack[Access]) -> None:
    """Remove the pin of the instance KIND/NAME."""
    decision = kro().pin
    _edit(words, access, _WAIT, lambda targets, ref, answers: decision(targets, ref, None, answers))


def _edit(
    words: tuple[str, ...],
    access: Access,
    wait: str,
    decision: Callable[[Targets, Ref, Answers], AnnotationEdit | Queries],
) -> None:
    seconds = parse_seconds(wait, "--wait", allow_zero=True)

    async def work(session: Session) -> None:
        edit = await session.decide(decision)
        if edit.announced:
            click.echo(edit.announced)
        for line in await carry_out(session.client, edit, seconds):
            click.echo(line)

    run(words, access, work)
