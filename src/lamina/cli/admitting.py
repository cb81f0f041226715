"""Where API servers ask a process about writes, as its options say."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from lamina.errors import SettingsError

if TYPE_CHECKING:
    from lamina.admission.registration import Way
    from lamina.admission.serving import ReviewMeter
    from lamina.client.client import Client
    from lamina.core.family import Family

Command = TypeVar("Command", bound=Callable[..., Any])
_PORT = 9443


def webhook_options(command: Command) -> Command:
    """Add where a process is asked about writes."""
    for option, name, said in (
        (
            "--webhook-bind-address", "ADDRESS",
            "Where it listens for that: HOST:PORT, or :PORT on every interface. "
            f"Default: where the URL says, or :{_PORT}.",
        ),
        (
            "--webhook-service", "NAMESPACE/NAME[:PORT]",
            "At which service the API server asks about writes before it stores them.",
        ),
        (
            "--webhook-url", "URL",
            "At which URL the API server asks about writes before it stores them. Default: it asks nobody.",
        ),
    ):  # fmt: skip
        command = click.option(option, metavar=name, default="", help=said)(command)
    return command


@asynccontextmanager
async def admitting(
    flags: dict[str, Any],
    families: Sequence[Family],
    client: Client,
    namespace: str,
    meter: ReviewMeter | None = None,
) -> AsyncIterator[None]:
    """Answer an API server until the end of the block, where somebody said how it gets here."""
    from lamina.admission.registration import way

    found = way(flags["webhook_url"], flags["webhook_service"])
    if found is None:
        yield
        return
    from lamina.admission.authority import Secrets
    from lamina.admission.serving import serving
    from lamina.logs import log

    checks = tuple(check for family in families for check in family.checks)
    bind, secrets = bound(found, flags["webhook_bind_address"]), Secrets(namespace=namespace)
    async with serving(checks, client, found, bind, secrets, log, meter=meter) as port:
        log.info("writes are judged", host=found.host, port=port, checks=len(checks))
        yield


def check_options(flags: dict[str, Any], families: Sequence[Family]) -> None:
    """Raise what is wrong with the options, before anything is begun."""
    from lamina.admission.registration import way

    found = way(flags["webhook_url"], flags["webhook_service"])
    if found is None:
        if flags["webhook_bind_address"]:
            raise SettingsError(
                "--webhook-bind-address says where to listen, and nobody is told to come there",
                hint="give --webhook-url or --webhook-service too",
            )
        return
    bound(found, flags["webhook_bind_address"])
    if not any(family.checks for family in families):
        raise SettingsError(
            "none of the families that run has anything to say about writes",
            hint="leave out --webhook-url and --webhook-service, or run manifestwork",
        )


def bound(way: Way, said: str) -> tuple[str, int]:
    """Return where to listen: where somebody said, or where the URL leads; only there, if that is this machine."""
    from lamina.runtime.probes import address

    if said:
        found = address(said)
        if found is None:
            raise SettingsError("a webhook has to listen somewhere", hint="for example :9443")
        return found
    if not way.url:
        return "", _PORT
    port = urlsplit(way.url).port or 443
    return (way.host if _is_here(way.host) else ""), port


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
