"""Answering servers over HTTPS, with a certificate that is made anew before it ends."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiohttp import web

from lamina.admission.authority import Secrets, authority
from lamina.admission.registration import Way, configuration
from lamina.admission.reviews import BadQuestion, Reviewer
from lamina.client.client import Client
from lamina.core.admission import Check
from lamina.errors import LaminaError, SettingsError
from lamina.logs import Logger
from lamina.server.certificates import Certificates, ensure_certificates

_MOST = 16 * 1024 * 1024
"""An object and what it was before, each as long as a server lets one be."""
_MANAGER = "lamina"
_LOOKS_AGAIN = 6 * 3600.0


@asynccontextmanager
async def serving(
    checks: tuple[Check, ...],
    client: Client,
    way: Way,
    bind: tuple[str, int],
    secrets: Secrets,
    log: Logger,
) -> AsyncIterator[int]:
    """
    Have a server ask about writes, and answer it until the end of the block; yields the port.

    It stays registered: another replica may be there to answer, and while none
    is, every check says itself what becomes of a write.
    """
    folder = Path(tempfile.mkdtemp(prefix="lamina-webhook-"))
    runner = web.AppRunner(_application(Reviewer(checks, client, log)), access_log=None)
    renewing = None
    try:
        await authority(folder, client, secrets)
        made = _certificates(folder, way)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(made.server.certificate, made.server.key)
        await runner.setup()
        try:
            await web.TCPSite(runner, bind[0] or None, bind[1], ssl_context=context).start()
        except OSError as taken:
            raise SettingsError(f"cannot listen on {bind[0]}:{bind[1]}: {taken.strerror}") from None
        port = int(runner.addresses[0][1])
        trusted = Way(
            url=way.url,
            namespace=way.namespace,
            name=way.name,
            port=way.port,
            authority=made.authority.certificate_pem,
        )
        await client.apply(configuration(checks, trusted), manager=_MANAGER, force=True)
        renewing = asyncio.create_task(_renew(folder, way, context, log))
        yield port
    finally:
        if renewing is not None:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        await runner.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _certificates(folder: Path, way: Way) -> Certificates:
    return ensure_certificates(folder, [way.host], "lamina-webhook", ())


async def _renew(folder: Path, way: Way, context: ssl.SSLContext, log: Logger) -> None:
    """Have the certificate made anew when it is about to end; whoever connects then is shown the new one."""
    shown = _certificates(folder, way).server.certificate_pem
    while True:
        await asyncio.sleep(_LOOKS_AGAIN)
        made = _certificates(folder, way)
        if made.server.certificate_pem != shown:
            shown = made.server.certificate_pem
            context.load_cert_chain(made.server.certificate, made.server.key)
            log.info("certificate of the webhook renewed")


def _application(reviewer: Reviewer) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        try:
            made = await reviewer.answer(request.path, await request.read())
        except BadQuestion as wrong:
            return web.Response(status=400, text=f"{wrong}\n")
        except LaminaError as trouble:
            return web.Response(status=500, text=f"{trouble}\n")
        return web.Response(body=made, content_type="application/json")

    application = web.Application(client_max_size=_MOST)
    for path in reviewer.checks:
        application.router.add_post(path, answer)
    return application
