"""Answering servers over HTTPS, with a certificate that is made anew before it ends."""

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

from lamina.admission.authority import Authority, Secrets, authority
from lamina.admission.registered import Registered, keep
from lamina.admission.registration import Way, configuration
from lamina.admission.reviews import BadQuestion, Reviewer
from lamina.client.client import Client
from lamina.core.admission import Check
from lamina.errors import LaminaError, SettingsError
from lamina.logs import Logger
from lamina.server.certificates import ensure_certificates, write_private

_MOST = 16 * 1024 * 1024
"""An object and what it was before, each as long as a server lets one be."""
_LOOKS_AGAIN = 30.0
_LASTS = 30 * 24 * 3600.0
"""After how many seconds another certificate is shown; each is good for much longer."""


class ReviewMeter(Protocol):
    """Who counts what is asked about writes, each by the path it is asked at."""

    def began(self, webhook: str) -> None: ...

    def ended(self, webhook: str, code: int, seconds: float) -> None: ...

    def broke(self) -> None: ...


class _Unheard:
    """Counts nothing."""

    def began(self, webhook: str) -> None: ...

    def ended(self, webhook: str, code: int, seconds: float) -> None: ...

    def broke(self) -> None: ...


@asynccontextmanager
async def serving(
    checks: tuple[Check, ...],
    client: Client,
    way: Way,
    bind: tuple[str, int],
    secrets: Secrets,
    log: Logger,
    looks_again: float = _LOOKS_AGAIN,
    meter: ReviewMeter | None = None,
) -> AsyncIterator[int]:
    """
    Have a server ask about writes, and answer it until the end of the block; yields the port.

    What that takes is looked at again every `looks_again` seconds. It stays
    registered: another replica may be there to answer, and while none is, every
    check says itself what becomes of a write.
    """
    before, reviewer = urlsplit(way.url).path.rstrip("/"), Reviewer(checks, client, log)
    runner = web.AppRunner(_application(reviewer, before, meter or _Unheard()), access_log=None)
    registered, keeping = Registered(client, log), None
    try:
        shown = Shown(way.host, await authority(client, secrets))
        await runner.setup()
        try:
            await web.TCPSite(runner, bind[0] or None, bind[1], ssl_context=shown.context).start()
        except OSError as taken:
            raise SettingsError(f"cannot listen on {bind[0]}:{bind[1]}: {taken.strerror}") from None
        user = await _user(client)

        async def look() -> None:
            """See to it that what is shown is what the server is told to trust, by the authority of all replicas."""
            try:
                if shown.renew(await authority(client, secrets, shown.authority)):
                    log.info("certificate of the webhook renewed")
            finally:
                # Whatever became of the authority: the one that is shown is the one to trust.
                trusted = replace(way, authority=shown.authority.certificate, user=user)
                await registered.see_to(configuration(checks, trusted))

        await look()
        keeping = asyncio.create_task(keep(look, log, looks_again))
        yield int(runner.addresses[0][1])
    finally:
        if keeping is not None:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
        await runner.cleanup()


async def _user(client: Client) -> str:
    """Return who we are to a server; nothing where it does not say."""
    try:
        said = await client.create({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    except LaminaError:
        return ""
    return str(((said.get("status") or {}).get("userInfo") or {}).get("username") or "")


class Shown:
    """
    The certificate that whoever connects is shown, made with an authority.

    Keys are in memory; they are in a file, for their owner only, while a library reads them.
    """

    def __init__(self, host: str, authority: Authority, now: Callable[[], float] = time.monotonic) -> None:
        self._host, self._now = host, now
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._show(authority)

    def renew(self, authority: Authority) -> bool:
        """Show another certificate if there has to be one, to whoever connects from now on; say whether it had."""
        if authority == self.authority and self._now() - self._since < _LASTS:
            return False
        self._show(authority)
        return True

    def _show(self, authority: Authority) -> None:
        with tempfile.TemporaryDirectory(prefix="lamina-webhook-") as name:
            folder = Path(name)
            write_private(folder / "ca.key", authority.key)
            write_private(folder / "ca.crt", authority.certificate)
            pair = ensure_certificates(folder, [self._host], "lamina-webhook", ()).server
            self.context.load_cert_chain(pair.certificate, pair.key)
        self.authority, self._since = authority, self._now()


def _application(reviewer: Reviewer, before: str, meter: ReviewMeter) -> web.Application:
    """Return what answers below a path, and at none: whoever stands before us may take theirs off or not."""

    async def answer(request: web.Request) -> web.Response:
        path, began, code = request.path.removeprefix(before), time.monotonic(), 500
        meter.began(path)
        try:
            answered = await _answered(reviewer, path, request)
            code = answered.status
        except web.HTTPException as refused:
            code = refused.status
            raise
        except Exception:
            meter.broke()
            raise
        finally:
            meter.ended(path, code, time.monotonic() - began)
        return answered

    application = web.Application(client_max_size=_MOST)
    for path in {*reviewer.checks, *(f"{before}{path}" for path in reviewer.checks)}:
        application.router.add_post(path, answer)
    return application


async def _answered(reviewer: Reviewer, path: str, request: web.Request) -> web.Response:
    try:
        made = await reviewer.answer(path, await request.read())
    except BadQuestion as wrong:
        return web.Response(status=400, text=f"{wrong}\n")
    except LaminaError as trouble:
        return web.Response(status=500, text=f"{trouble}\n")
    return web.Response(body=made, content_type="application/json")
