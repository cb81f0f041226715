"""Answering servers over HTTPS, with a certificate that is made anew before it ends."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from msgspec.structs import replace

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
    runner = web.AppRunner(
        _application(Reviewer(checks, client, log), urlsplit(way.url).path.rstrip("/")), access_log=None
    )
    renewing = None
    try:
        await authority(folder, client, secrets)
        shown = Shown(folder, way.host)
        await runner.setup()
        try:
            await web.TCPSite(runner, bind[0] or None, bind[1], ssl_context=shown.context).start()
        except OSError as taken:
            raise SettingsError(f"cannot listen on {bind[0]}:{bind[1]}: {taken.strerror}") from None
        trusted = replace(way, authority=shown.authority, user=await _user(client))
        await client.apply(configuration(checks, trusted), manager=_MANAGER, force=True)
        renewing = asyncio.create_task(_renew(shown, log))
        yield int(runner.addresses[0][1])
    finally:
        if renewing is not None:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        await runner.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


async def _user(client: Client) -> str:
    """Return who we are to a server; nothing where it does not say."""
    try:
        said = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    except LaminaError:
        return ""
    return str(((said.get("status") or {}).get("userInfo") or {}).get("username") or "")


class Shown:
    """The certificate that whoever connects is shown, made with the authority in a folder."""

    def __init__(self, folder: Path, host: str) -> None:
        self._folder, self._host = folder, host
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._shown = b""
        self.renew()

    @property
    def authority(self) -> bytes:
        return self._made().authority.certificate_pem

    def renew(self) -> bool:
        """Show another certificate if there has to be one, to whoever connects from now on; say whether it had."""
        pair = self._made().server
        if pair.certificate_pem == self._shown:
            return False
        self._shown = pair.certificate_pem
        self.context.load_cert_chain(pair.certificate, pair.key)
        return True

    def _made(self) -> Certificates:
        return ensure_certificates(self._folder, [self._host], "lamina-webhook", ())


async def _renew(shown: Shown, log: Logger) -> None:
    while True:
        await asyncio.sleep(_LOOKS_AGAIN)
        try:
            if shown.renew():
                log.info("certificate of the webhook renewed")
        except OSError as trouble:
            # There are weeks left, and it is tried again.
            log.error("certificate of the webhook not renewed", because=str(trouble))


def _application(reviewer: Reviewer, before: str) -> web.Application:
    """Return what answers below a path, and at none: whoever stands before us may take theirs off or not."""

    async def answer(request: web.Request) -> web.Response:
        try:
            made = await reviewer.answer(request.path.removeprefix(before), await request.read())
        except BadQuestion as wrong:
            return web.Response(status=400, text=f"{wrong}\n")
        except LaminaError as trouble:
            return web.Response(status=500, text=f"{trouble}\n")
        return web.Response(body=made, content_type="application/json")

    application = web.Application(client_max_size=_MOST)
    for path in {*reviewer.checks, *(f"{before}{path}" for path in reviewer.checks)}:
        application.router.add_post(path, answer)
    return application
