"""Options of the validating webhook, and the server that answers its AdmissionReviews."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from lamina.errors import SettingsError

if TYPE_CHECKING:
    from lamina.admission.registration import WebhookEndpoint
    from lamina.admission.webhook_server import ReviewMeter
    from lamina.client.client import Client
    from lamina.core.model.family import Family

Command = TypeVar("Command", bound=Callable[..., Any])
_PORT = 9443


def webhook_options(command: Command) -> Command:
    """Add the options that register and serve the validating webhook."""
    for option, metavar, text in (
        (
            "--webhook-bind-address", "ADDRESS",
            "Address that the webhook listens on: HOST:PORT, or :PORT for all interfaces. "
            f"Default: that of the URL, or :{_PORT}.",
        ),
        (
            "--webhook-service", "NAMESPACE/NAME[:PORT]",
            "Service at which the API server calls the webhook.",
        ),
        (
            "--webhook-url", "URL",
            "URL at which the API server calls the webhook. Default: no webhook is registered.",
        ),
    ):  # fmt: skip
        command = click.option(option, metavar=metavar, default="", help=text)(command)
    return command


@asynccontextmanager
async def serving_webhook(
    flags: dict[str, Any],
    families: Sequence[Family],
    client: Client,
    namespace: str,
    meter: ReviewMeter | None = None,
) -> AsyncIterator[None]:
    """Register and serve the webhook until the end of the block, if a URL or a service is given."""
    from lamina.admission.registration import webhook_endpoint

    found = webhook_endpoint(flags["webhook_url"], flags["webhook_service"])
    if found is None:
        yield
        return
    from lamina.admission.ca import Secrets
    from lamina.admission.webhook_server import serving
    from lamina.logs import log

    checks = tuple(check for family in families for check in family.checks)
    bind, secrets = bind_address(found, flags["webhook_bind_address"]), Secrets(namespace=namespace)
    async with serving(checks, client, found, bind, secrets, log, meter=meter) as port:
        log.info("validating webhook is serving", host=found.host, port=port, checks=len(checks))
        yield


def check_options(flags: dict[str, Any], families: Sequence[Family]) -> None:
    """Raise SettingsError for options that contradict each other, before anything is started."""
    from lamina.admission.registration import webhook_endpoint

    found = webhook_endpoint(flags["webhook_url"], flags["webhook_service"])
    if found is None:
        if flags["webhook_bind_address"]:
            raise SettingsError(
                "--webhook-bind-address needs an address for the API server",
                hint="give --webhook-url or --webhook-service, too",
            )
        return
    bind_address(found, flags["webhook_bind_address"])
    if not any(family.checks for family in families):
        raise SettingsError(
            "none of the selected families validates writes",
            hint="omit --webhook-url and --webhook-service, or run the family manifestwork",
        )


def bind_address(way: WebhookEndpoint, text: str) -> tuple[str, int]:
    """Return the address to listen on: as given, or that of the URL, on one interface only if that is loopback."""
    from lamina.runtime.metrics.healthz import address

    if text:
        found = address(text)
        if found is None:
            raise SettingsError(
                "--webhook-bind-address: expected an address, got 0", hint="for example :9443"
            )
        return found
    if not way.url:
        return "", _PORT
    port = urlsplit(way.url).port or 443
    return (way.host if _is_loopback(way.host) else ""), port


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
