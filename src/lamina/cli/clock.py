"""`lamina clock`: what time it is for the objects of a server, and how to wind it on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Any

import click
import orjson

from lamina.cli.amounts import as_length, length
from lamina.cli.reaching import cluster_options, reach, with_client
from lamina.client.client import Client
from lamina.errors import ApiError, SettingsError
from lamina.objects.times import moment
from lamina.objects.types import Made
from lamina.server.administration import LONGEST

_PAGE = "/lamina/clock"


@click.group()
def clock() -> None:
    """
    Show and wind the clock of a server.

    It is the clock of objects: when they were made, when they are due. The
    clock on the wall, which certificates and timeouts follow, is not touched.
    """


def _common(command: Any) -> Any:
    output = click.option(
        "-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it."
    )
    return output(cluster_options(command))


@clock.command()
@_common
def show(output: str, kubeconfig: Path | None, context: str) -> None:
    """Show what time it is there, and how fast it passes."""
    _ask(None, output, kubeconfig, context)


@clock.command()
@click.argument("time", metavar="TIME")
@_common
def wind(time: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    Let TIME (30s, 10m, 1d) pass, as fast as it can.

    Whatever falls due on the way happens at its own moment; it is over when
    everybody has done what they had to do by then.
    """
    seconds = length(time, "TIME")
    if seconds > LONGEST.total_seconds():
        raise SettingsError(f"TIME: expected {LONGEST.days}d at most, which are ten years, got {time!r}")
    _ask({"wind": seconds}, output, kubeconfig, context)


@clock.command()
@click.argument("times", metavar="N", type=click.FloatRange(0, 1_000_000))
@_common
def speed(times: float, output: str, kubeconfig: Path | None, context: str) -> None:
    """Let time pass N times as fast from now on: 60 is a minute a second, 0 stands still."""
    if isnan(times):
        raise SettingsError("N: expected a number from 0 to 1000000, got nan")
    _ask({"speed": times}, output, kubeconfig, context)


def _ask(asked: Made | None, output: str, kubeconfig: Path | None, context: str) -> None:
    access = reach(kubeconfig, context)

    async def ask(client: Client) -> Made:
        told = await _told(client)
        if told is None:
            raise SettingsError(
                f"{access.server} has no clock that can be wound",
                hint="only the server of `lamina up` has one, for whoever administers it",
            )
        if asked is not None:
            answer = await client.request("POST", _PAGE, body=orjson.dumps(asked))
            told = orjson.loads(answer)
        return dict(told)

    # Winding takes as long as it takes.
    told = with_client(access, ask, timeout=None if asked else 60.0)
    if output == "json":
        click.echo(json.dumps(told, indent=2))
        return
    click.echo(f"now    {told['now'].partition('.')[0]}Z")
    click.echo(f"speed  {told['speed']:g}")
    ahead = told["ahead"]
    if abs(ahead) >= 1:
        click.echo(f"{'ahead' if ahead > 0 else 'behind'}  {as_length(abs(round(ahead)))}")


async def _told(client: Client) -> Made | None:
    """Return what a server says of its clock; None if it has none of its own."""
    try:
        told = orjson.loads(await client.request("GET", _PAGE))
    except orjson.JSONDecodeError:
        return None
    except ApiError as refused:
        if refused.code in (401, 403, 404, 405):
            return None
        raise
    return told if isinstance(told, dict) and "now" in told else None


async def now_at(client: Client) -> datetime:
    """Return what time it is for the objects of a server: its own, or else everybody's."""
    told = await _told(client)
    there = moment(told["now"]) if told is not None else None
    return there or datetime.now(UTC)
