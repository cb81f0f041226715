"""`lamina clock`: shows the clock that a server stamps objects with, advances it, and sets its speed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import isnan
from pathlib import Path

import click
import orjson

from lamina.cli.options.cluster_flags import load_access, output_options, with_client
from lamina.cli.options.param_types import format_seconds, parse_seconds
from lamina.client.client import Client
from lamina.errors import ApiError, SettingsError
from lamina.objects.times import moment
from lamina.objects.types import Made
from lamina.server.api.admin import MAX_WIND

_PATH = "/lamina/clock"


@click.group()
def clock() -> None:
    """
    Show, advance and speed up the clock of a server.

    This clock sets the timestamps of objects and the timers of controllers.
    Certificates and request timeouts follow the system clock, which does not
    change.
    """


@clock.command()
@output_options
def show(output: str, kubeconfig: Path | None, context: str) -> None:
    """Show the time, the speed, and the offset to the system clock."""
    _request(None, output, kubeconfig, context)


@clock.command()
@click.argument("time", metavar="TIME")
@output_options
def wind(time: str, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    Advance the clock by TIME (30s, 10m, 1d), as fast as possible.

    Timers on the way fire at their own time. The command returns when all
    controllers are idle.
    """
    seconds = parse_seconds(time, "TIME")
    if seconds > MAX_WIND.total_seconds():
        raise SettingsError(f"TIME: expected {MAX_WIND.days}d (ten years) at most, got {time!r}")
    _request({"wind": seconds}, output, kubeconfig, context)


@clock.command()
@click.argument("times", metavar="N", type=click.FloatRange(0, 1_000_000))
@output_options
def speed(times: float, output: str, kubeconfig: Path | None, context: str) -> None:
    """
    Set the speed of the clock to N.

    60 is a minute per second, 0 stops the clock.
    """
    if isnan(times):
        raise SettingsError("N: expected a number from 0 to 1000000, got nan")
    _request({"speed": times}, output, kubeconfig, context)


def _request(change: Made | None, output: str, kubeconfig: Path | None, context: str) -> None:
    access = load_access(kubeconfig, context)

    async def request(client: Client) -> Made:
        status = await _read(client)
        if status is None:
            raise SettingsError(
                f"{access.server} has no adjustable clock",
                hint="only a server of `lamina up` has one, and only its administrator may use it",
            )
        if change is not None:
            response = await client.request("POST", _PATH, body=orjson.dumps(change))
            status = orjson.loads(response)
        return dict(status)

    # How long a wind takes depends on the work that falls due.
    status = with_client(access, request, timeout=None if change else 60.0)
    if output == "json":
        click.echo(json.dumps(status, indent=2))
        return
    click.echo(f"now    {status['now'].partition('.')[0]}Z")
    click.echo(f"speed  {status['speed']:g}")
    ahead = status["ahead"]
    if abs(ahead) >= 1:
        click.echo(f"{'ahead' if ahead > 0 else 'behind'}  {format_seconds(abs(round(ahead)))}")


async def _read(client: Client) -> Made | None:
    """Return the status of a server's clock; None if it has no adjustable clock."""
    try:
        status = orjson.loads(await client.request("GET", _PATH))
    except orjson.JSONDecodeError:
        return None
    except ApiError as refused:
        if refused.code in (401, 403, 404, 405):
            return None
        raise
    return status if isinstance(status, dict) and "now" in status else None


async def now_at(client: Client) -> datetime:
    """Return the time of a server's own clock, or the system time if it has none."""
    status = await _read(client)
    now = moment(status["now"]) if status is not None else None
    return now or datetime.now(UTC)
