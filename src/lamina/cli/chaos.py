"""`lamina chaos`: break things on request, show what is broken, and mend it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lamina.actors.stages.failures import How
from lamina.cli.amounts import length, share
from lamina.cli.reaching import cluster_options, reach
from lamina.cli.tables import table
from lamina.cli.troubles import Trouble, Troubles, mending
from lamina.errors import SettingsError, SpecError
from lamina.faults import LONGEST, Fault, read_fault
from lamina.objects.types import Made

Command = TypeVar("Command", bound=Callable[..., Any])

_COLUMNS = ("ID", "WHAT", "MET")


@click.group()
def chaos() -> None:
    """
    Break things on request, show what is broken, and mend it.

    Everything stays broken until `lamina chaos stop` takes it back, or the
    server ends. What pods and nodes do is written on objects, and lasts.
    """


def _common(command: Command) -> Command:
    output = click.option(
        "-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it."
    )
    return output(cluster_options(command))


def _aimed(command: Command) -> Command:
    """Give a command the options that say which requests it is about."""
    for option in reversed(
        (
            click.option("--verbs", metavar="VERBS", help="Only these, comma-separated: get, list, watch, create…"),
            click.option("--resources", metavar="NAMES", help="Only for these, comma-separated: pods, pods/status."),
            click.option("--path", metavar="PATTERN", help="Only for paths like this, with * for anything."),
            click.option("--users", metavar="NAMES", help="Only of these users, comma-separated, with * for anything."),
            click.option("--rate", metavar="SHARE", help="Only this share of them: 20% or 0.2."),
            click.option("--times", metavar="N", type=click.IntRange(min=1), help="Only so many of them in all."),
            click.option("--seed", metavar="N", type=int, help="Another share of the same size for another number."),
        )
    ):  # fmt: skip
        command = option(command)
    return _common(command)


@chaos.command()
@click.option("--after", is_flag=True, help="Carry requests out, and lose the answers.")
@_aimed
def silence(after: bool, **options: Any) -> None:
    """Answer nothing: requests hang until their clients give up."""
    _break({"fault": "silence", "after": after}, **options)


@chaos.command()
@click.argument("time", metavar="TIME")
@_aimed
def slow(time: str, **options: Any) -> None:
    """Answer everything TIME (200ms, 2s) later."""
    _break({"fault": "slow", "seconds": _seconds(time)}, **options)


@chaos.command()
@click.argument("code", metavar="CODE", type=click.IntRange(400, 599))
@click.option("--retry-after", metavar="SECONDS", type=click.IntRange(min=0), help="When to come back. Default: 1 for a 429.")  # fmt: skip
@click.option("--after", is_flag=True, help="Carry requests out, and refuse them all the same.")
@_aimed
def refuse(code: int, retry_after: int | None, after: bool, **options: Any) -> None:
    """Answer with CODE: 429, 500, 503 or any other refusal."""
    _break({"fault": "refuse", "code": code, "retryAfter": retry_after, "after": after}, **options)


@chaos.command("cut-watches")
@click.option("--after-events", metavar="N", type=click.IntRange(min=1), help="From now on, each after N events. Default: those that are open, once.")  # fmt: skip
@_aimed
def cut_watches(after_events: int | None, **options: Any) -> None:
    """End the watches that are open; clients come back."""
    _break({"fault": "cut", "events": after_events or 0}, **options)


@chaos.command()
@_aimed
def expire(**options: Any) -> None:
    """Answer 410 to watches and paged lists that go on where they were."""
    _break({"fault": "expire"}, **options)


@chaos.command()
@click.argument("time", metavar="[TIME]", required=False)
@click.option("--versions", metavar="N", type=click.IntRange(min=1), help="So many versions behind, instead.")
@_aimed
def stale(time: str | None, versions: int | None, **options: Any) -> None:
    """Show the past: of TIME ago (30s), or of this moment from now on."""
    if time and versions:
        raise SettingsError("stale takes TIME or --versions", hint="give one of the two")
    _break({"fault": "stale", "seconds": _seconds(time) if time else None, "versions": versions}, **options)


@chaos.command()
@click.argument("image", metavar="IMAGE")
@click.option("--share", "part", metavar="SHARE", default="100%", show_default=True, help="What share of its pods fails.")  # fmt: skip
@click.option("--how", type=click.Choice([str(how) for how in How]), default="crash", show_default=True, help="How they fail.")  # fmt: skip
@_common
def fail(image: str, part: str, how: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """Have pods of IMAGE fail, those that run and those to come: `web:2`, `web`, `*/web:*`."""
    chosen = share(part, "--share")
    if not image.strip():
        raise SettingsError("IMAGE names nothing", hint="`*` is every image")
    _do(lambda troubles: troubles.fail_pods(image, chosen, How(how)), output, kubeconfig, context)


@chaos.command("node-down")
@click.argument("node", metavar="NODE")
@_common
def node_down(node: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """Have NODE fall silent: it is not ready, and its pods go elsewhere after five minutes."""
    _do(lambda troubles: troubles.take_down(node), output, kubeconfig, context)


@chaos.command()
@_common
def show(output: str, kubeconfig: Path | None, context: str) -> None:
    """Show what is broken, and how often that was met with."""
    found = mending(reach(kubeconfig, context), lambda troubles: troubles.every())
    if output == "json":
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
    elif not found:
        click.echo("nothing is broken", err=True)
    else:
        rows = [(one.id, one.what, "-" if one.met is None else str(one.met)) for one in found]
        click.echo(table(_COLUMNS, rows))


@chaos.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@_common
def stop(ids: tuple[str, ...], output: str, kubeconfig: Path | None, context: str) -> None:
    """Mend what is broken: everything, or what has one of these IDs."""

    async def mend(troubles: Troubles) -> list[Trouble]:
        broken = await troubles.every()
        known = {one.id: one for one in broken}
        for name in ids:
            if name not in known:
                raise SettingsError(
                    f"nothing that is broken is called {name!r}",
                    hint=f"what is broken is called {', '.join(known)}" if known else "nothing is broken",
                )
        chosen = [known[name] for name in ids] if ids else broken
        for one in chosen:
            await troubles.mend(one)
        return chosen

    mended = mending(reach(kubeconfig, context), mend)
    if output == "json":
        click.echo(json.dumps([one.as_json() for one in mended], indent=2))
        return
    for one in mended:
        click.echo(f"mended {one.id}: {one.what}", err=True)
    if not mended:
        click.echo("nothing was broken", err=True)


def _break(
    said: Made,
    *,
    output: str,
    kubeconfig: Path | None,
    context: str,
    verbs: str | None,
    resources: str | None,
    users: str | None,
    path: str | None,
    rate: str | None,
    **aim: Any,
) -> None:
    asked = {
        **said,
        **aim,
        "verbs": _listed(verbs, "--verbs"),
        "resources": _listed(resources, "--resources"),
        "users": _listed(users, "--users"),
        "path": _named(path, "--path"),
        "rate": share(rate, "--rate") if rate is not None else None,
    }
    fault = _fault({key: value for key, value in asked.items() if value is not None})
    _do(lambda troubles: troubles.break_answers(fault), output, kubeconfig, context)


def _fault(said: Made) -> Fault:
    try:
        return read_fault(said)
    except SpecError as senseless:
        raise SettingsError(f"--{senseless}", hint=senseless.hint) from None


def _seconds(text: str) -> float:
    seconds = length(text, "TIME")
    if seconds > LONGEST:
        raise SettingsError(f"TIME: expected a day at most, got {text!r}")
    return seconds


def _listed(text: str | None, option: str) -> list[str] | None:
    if _named(text, option) is None:
        return None
    return [part.strip() for part in str(text).split(",") if part.strip()]


def _named(text: str | None, option: str) -> str | None:
    """Return what an option names; one that is given and names nothing must not mean everything."""
    if text is not None and not text.strip(" ,"):
        raise SettingsError(f"{option} names nothing", hint="leave it out to mean everything")
    return text


def _do(
    work: Callable[[Troubles], Awaitable[Trouble]], output: str, kubeconfig: Path | None, context: str
) -> None:
    made = mending(reach(kubeconfig, context), work)
    if output == "json":
        click.echo(json.dumps(made.as_json(), indent=2))
    else:
        click.echo(f"{made.id}: {made.what}")
