"""Serve admission webhooks over HTTPS, with a certificate that is renewed before it expires."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web
from msgspec.structs import replace

from lamina.admission.admission_review import BadReview, Reviewer
from lamina.admission.ca import Authority, Secrets, authority
from lamina.admission.keep_registered import Registered, keep
from lamina.admission.registration import WebhookEndpoint, configurations
from lamina.client.client import Client
from lamina.core.admission import AdmissionCheck
from lamina.errors import LaminaError, SettingsError
from lamina.logs import Logger
from lamina.server.tls.certificates import ensure_certificates, write_private

_MAX_BODY = 16 * 1024 * 1024
"""Space for an object and its old version, each as large as the API server accepts."""
_RESYNC = 30.0
_RENEW_AFTER = 30 * 24 * 3600.0
"""Seconds after which a new certificate is issued; each is valid for much longer."""


class ReviewMeter(Protocol):
    """Counts admission requests by webhook path."""

    def began(self, webhook: str) -> None: ...

    def ended(self, webhook: str, code: int, seconds: float) -> None: ...

    def broke(self) -> None: ...


class _NoMeter:
    """Counts nothing."""

    def began(self, webhook: str) -> None: ...

    def ended(self, webhook: str, code: int, seconds: float) -> None: ...

    def broke(self) -> None: ...


@asynccontextmanager
async def serving(
    checks: tuple[AdmissionCheck, ...],
    client: Client,
    endpoint: WebhookEndpoint,
    bind: tuple[str, int],
    secrets: Secrets,
    log: Logger,
    resync: float = _RESYNC,
    meter: ReviewMeter | None = None,
) -> AsyncIterator[int]:
    """
    Register the webhooks and serve them until the block ends; yields the port.

    Certificate and registration are checked every `resync` seconds. The
    registration stays when the server stops: another replica may serve it, and
    without one, each check's failure policy applies.
    """
    prefix, reviewer = urlsplit(endpoint.url).path.rstrip("/"), Reviewer(checks, client, log)
    runner = web.AppRunner(_application(reviewer, prefix, meter or _NoMeter()), access_log=None)
    registered, keeping = Registered(client, log), None
    try:
        certificate = ServingCertificate(endpoint.host, await authority(client, secrets))
        await runner.setup()
        try:
            await web.TCPSite(runner, bind[0] or None, bind[1], ssl_context=certificate.context).start()
        except OSError as error:
            raise SettingsError(f"cannot listen on {bind[0]}:{bind[1]}: {error.strerror}") from None
        user = await _user(client)

        async def ensure() -> None:
            """Renew the certificate if needed, and register its CA."""
            try:
                if certificate.renew(await authority(client, secrets, certificate.authority)):
                    log.info("certificate of the webhook renewed")
            finally:
                # Even if the shared CA could not be read: the CA of the certificate in use is registered.
                trusted = replace(endpoint, authority=certificate.authority.certificate, user=user)
                await registered.ensure(configurations(checks, trusted))

        await ensure()
        keeping = asyncio.create_task(keep(ensure, log, resync))
        yield int(runner.addresses[0][1])
    finally:
        if keeping is not None:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
        await runner.cleanup()


async def _user(client: Client) -> str:
    """Return our username at a server, or an empty string if it does not support SelfSubjectReview."""
    try:
        review = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    except LaminaError:
        return ""
    return str(((review.get("status") or {}).get("userInfo") or {}).get("username") or "")


class ServingCertificate:
    """
    The serving certificate, issued by a CA.

    Keys are kept in memory; they are written to a private file only while `ssl` loads them.
    """

    def __init__(self, host: str, authority: Authority, now: Callable[[], float] = time.monotonic) -> None:
        self._host, self._now = host, now
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._issue(authority)

    def renew(self, authority: Authority) -> bool:
        """Issue another certificate for new connections if it is due or the CA changed; return whether it did."""
        if authority == self.authority and self._now() - self._since < _RENEW_AFTER:
            return False
        self._issue(authority)
        return True

    def _issue(self, authority: Authority) -> None:
        with tempfile.TemporaryDirectory(prefix="lamina-webhook-") as name:
            folder = Path(name)
            write_private(folder / "ca.key", authority.key)
            write_private(folder / "ca.crt", authority.certificate)
            pair = ensure_certificates(folder, [self._host], "lamina-webhook", ()).server
            self.context.load_cert_chain(pair.certificate, pair.key)
        self.authority, self._since = authority, self._now()


def _application(reviewer: Reviewer, prefix: str, meter: ReviewMeter) -> web.Application:
    """Return the web application; a proxy in front may or may not strip the path of the URL."""

    async def serve(request: web.Request) -> web.Response:
        path, started, code = request.path.removeprefix(prefix), time.monotonic(), 500
        meter.began(path)
        try:
            response = await _respond(reviewer, path, request)
            code = response.status
        except web.HTTPException as error:
            code = error.status
            raise
        except Exception:
            meter.broke()
            raise
        finally:
            meter.ended(path, code, time.monotonic() - started)
        return response

    application = web.Application(client_max_size=_MAX_BODY)
    for path in {*reviewer.checks, *(f"{prefix}{path}" for path in reviewer.checks)}:
        application.router.add_post(path, serve)
    return application


async def _respond(reviewer: Reviewer, path: str, request: web.Request) -> web.Response:
    try:
        body = await reviewer.review(path, await request.read())
    except BadReview as error:
        return web.Response(status=400, text=f"{error}\n")
    except LaminaError as error:
        return web.Response(status=500, text=f"{error}\n")
    return web.Response(body=body, content_type="application/json")
