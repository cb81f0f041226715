"""`lamina chaos`: injects faults, lists active ones, and removes them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lamina.actors.stages.failures import FailureMode
from lamina.cli.faults_client import ActiveFault, FaultsClient, with_faults
from lamina.cli.options.cluster_flags import load_access, output_options
from lamina.cli.options.param_types import parse_seconds, parse_share
from lamina.cli.output.tables import table
from lamina.errors import SettingsError, SpecError
from lamina.faults import LONGEST, Fault, read_fault
from lamina.objects.types import Made

Command = TypeVar("Command", bound=Callable[..., Any])

_COLUMNS = ("ID", "FAULT", "HITS")


@click.group()
def chaos() -> None:
    """
    Inject faults, list them, and remove them.

    A fault of requests is active until `lamina chaos stop` or until the server
    stops. Faults of pods and nodes are stored in objects and outlast the server;
    only a server of `lamina up` accepts them.
    """


def _request_options(command: Command) -> Command:
    """Add the options that select requests."""
    for option in reversed(
        (
            click.option("--verbs", metavar="VERBS", help="Verbs, comma-separated: get, list, watch, create…"),
            click.option("--resources", metavar="NAMES", help="Resources, comma-separated: pods, pods/status."),
            click.option("--path", metavar="PATTERN", help="Path pattern; * matches anything."),
            click.option("--users", metavar="NAMES", help="User names, comma-separated; * matches anything."),
            click.option("--rate", metavar="SHARE", help="Share of the matching requests: 20% or 0.2."),
            click.option("--times", metavar="N", type=click.IntRange(min=1), help="Maximum number of requests."),
            click.option("--seed", metavar="N", type=int, help="Seed that selects the requests of a --rate."),
        )
    ):  # fmt: skip
        command = option(command)
    return output_options(command)


@chaos.command()
@click.option("--after", is_flag=True, help="Execute the requests, and drop the responses.")
@_request_options
def silence(after: bool, **options: Any) -> None:
    """Send no response: requests hang until their clients time out."""
    _inject({"fault": "silence", "after": after}, **options)


@chaos.command()
@click.argument("time", metavar="TIME")
@_request_options
def slow(time: str, **options: Any) -> None:
    """Delay responses by TIME (200ms, 2s)."""
    _inject({"fault": "slow", "seconds": _seconds(time)}, **options)


@chaos.command()
@click.argument("code", metavar="CODE", type=click.IntRange(400, 599))
@click.option("--retry-after", metavar="SECONDS", type=click.IntRange(min=0), help="Retry-After header. Default: 1 for a 429, none otherwise.")  # fmt: skip
@click.option("--after", is_flag=True, help="Execute the requests, and respond with the error all the same.")
@_request_options
def refuse(code: int, retry_after: int | None, after: bool, **options: Any) -> None:
    """Respond with the error CODE, from 400 to 599."""
    _inject({"fault": "refuse", "code": code, "retryAfter": retry_after, "after": after}, **options)


@chaos.command("cut-watches")
@click.option("--after-events", metavar="N", type=click.IntRange(min=1), help="End every new watch after N events. Default: end the open watches once.")  # fmt: skip
@_request_options
def cut_watches(after_events: int | None, **options: Any) -> None:
    """End open watches, so that clients watch again."""
    _inject({"fault": "cut", "events": after_events or 0}, **options)


@chaos.command()
@_request_options
def expire(**options: Any) -> None:
    """Respond 410 to resumed watches and to list pages."""
    _inject({"fault": "expire"}, **options)


@chaos.command()
@click.argument("time", metavar="[TIME]", required=False)
@click.option(
    "--versions", metavar="N", type=click.IntRange(min=1), help="Serve the state of N versions ago."
)
@_request_options
def stale(time: str | None, versions: int | None, **options: Any) -> None:
    """
    Serve stale reads.

    Reads return the state of TIME ago (30s), or of --versions ago. By default they
    return the state at the start of the fault.
    """
    if time and versions:
        raise SettingsError("stale takes TIME or --versions", hint="give one of the two")
    _inject({"fault": "stale", "seconds": _seconds(time) if time else None, "versions": versions}, **options)


@chaos.command()
@click.argument("image", metavar="IMAGE")
@click.option("--share", "part", metavar="SHARE", default="100%", show_default=True, help="Share of the pods that fail.")  # fmt: skip
@click.option("--how", type=click.Choice([str(how) for how in FailureMode]), default="crash", show_default=True, help="How the pods fail.")  # fmt: skip
@output_options
def fail(image: str, part: str, how: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    Make pods of IMAGE fail.

    The pattern IMAGE, as `web:2`, `web` or `*/web:*`, selects running and future
    pods.
    """
    chosen = parse_share(part, "--share")
    if not image.strip():
        raise SettingsError("IMAGE is empty", hint="`*` matches every image")
    _add(lambda faults: faults.fail_pods(image, chosen, FailureMode(how)), output, kubeconfig, context)


@chaos.command("node-down")
@click.argument("node", metavar="NODE")
@output_options
def node_down(node: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    Make NODE unreachable.

    The node is not ready, and its pods are evicted after five minutes.
    """
    _add(lambda faults: faults.stop_node(node), output, kubeconfig, context)


@chaos.command()
@output_options
def show(output: str, kubeconfig: Path | None, context: str) -> None:
    """List active faults, and how many requests each has hit."""
    found = with_faults(load_access(kubeconfig, context), lambda faults: faults.list_all())
    if output == "json":
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
    elif not found:
        click.echo("no faults are active", err=True)
    else:
        rows = [(one.id, one.description, "-" if one.hits is None else str(one.hits)) for one in found]
        click.echo(table(_COLUMNS, rows))


@chaos.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@output_options
def stop(ids: tuple[str, ...], output: str, kubeconfig: Path | None, context: str) -> None:
    """Remove faults: all, or those with these IDs."""

    async def remove(faults: FaultsClient) -> list[ActiveFault]:
        active = await faults.list_all()
        known = {one.id: one for one in active}
        for name in ids:
            if name not in known:
                raise SettingsError(
                    f"there is no fault {name!r}",
                    hint=f"active faults are {', '.join(known)}" if known else "no faults are active",
                )
        chosen = [known[name] for name in ids] if ids else active
        for one in chosen:
            await faults.remove(one)
        return chosen

    removed = with_faults(load_access(kubeconfig, context), remove)
    if output == "json":
        click.echo(json.dumps([one.as_json() for one in removed], indent=2))
        return
    for one in removed:
        click.echo(f"removed {one.id}: {one.description}", err=True)
    if not removed:
        click.echo("no faults are active", err=True)


def _inject(
    spec: Made,
    *,
    output: str,
    kubeconfig: Path | None,
    context: str,
    verbs: str | None,
    resources: str | None,
    users: str | None,
    path: str | None,
    rate: str | None,
    **more: Any,
) -> None:
    given = {
        **spec,
        **more,
        "verbs": _split(verbs, "--verbs"),
        "resources": _split(resources, "--resources"),
        "users": _split(users, "--users"),
        "path": _non_empty(path, "--path"),
        "rate": parse_share(rate, "--rate") if rate is not None else None,
    }
    fault = _fault({key: value for key, value in given.items() if value is not None})
    _add(lambda faults: faults.fail_requests(fault), output, kubeconfig, context)


def _fault(spec: Made) -> Fault:
    try:
        return read_fault(spec)
    except SpecError as error:
        raise SettingsError(f"--{error}", hint=error.hint) from None


def _seconds(text: str) -> float:
    seconds = parse_seconds(text, "TIME")
    if seconds > LONGEST:
        raise SettingsError(f"TIME: expected at most a day, got {text!r}")
    return seconds


def _split(text: str | None, option: str) -> list[str] | None:
    if _non_empty(text, option) is None:
        return None
    return [part.strip() for part in str(text).split(",") if part.strip()]


def _non_empty(text: str | None, option: str) -> str | None:
    """Return the value of an option; an empty value is an error, since an absent option selects everything."""
    if text is not None and not text.strip(" ,"):
        raise SettingsError(f"{option} is empty", hint="omit it to select everything")
    return text


def _add(
    work: Callable[[FaultsClient], Awaitable[ActiveFault]], output: str, kubeconfig: Path | None, context: str
) -> None:
    added = with_faults(load_access(kubeconfig, context), work)
    if output == "json":
        click.echo(json.dumps(added.as_json(), indent=2))
    else:
        click.echo(f"{added.id}: {added.description}")
