"""
HTTP calls to webhooks.

Loaded with the first call: most clusters have no webhooks, and aiohttp loads slower
than the rest of the server.
"""

from __future__ import annotations

import base64
import io
import ssl
from functools import lru_cache
from typing import Final

import aiohttp

from lamina.server.admission.webhooks.address import Address
from lamina.tls import client_context

_MAX_BODY: Final = 3 * 1024 * 1024
_OK: Final = 200
_MAX_CONTEXTS: Final = 32
"""Number of cached TLS contexts, since every configuration may have another CA bundle."""


class CallFailed(Exception):
    """Why a webhook call failed."""


class WebhookClient:
    """Calls webhooks, each with the CA bundle of its configuration."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, address: Address, authority: str, body: bytes, seconds: float) -> bytes:
        """Return the response body; raises CallFailed with kube-apiserver's message."""
        call = f'Post "{address.shown}"'
        try:
            async with self._open_session().post(
                address.url,
                ssl=_tls_context(authority),
                # In chunks: writing a large body at once would block the event loop.
                data=io.BytesIO(body),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                timeout=aiohttp.ClientTimeout(total=seconds),
                server_hostname=address.server or None,
                allow_redirects=False,
            ) as response:
                data = await read_body(response)
                if response.status != _OK:
                    shown = data[:1024].decode(errors="replace").strip()
                    raise CallFailed(shown or "the server rejected our request for an unknown reason")
                return data
        except TimeoutError:
            raise CallFailed(f"{call}: context deadline exceeded") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise CallFailed(f"{call}: {_reason(error)}") from None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            # Not kept alive: many webhook servers handle one connection at a time, and an idle one would block others.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


@lru_cache(maxsize=_MAX_CONTEXTS)
def _tls_context(authority: str) -> ssl.SSLContext:
    """Return a TLS context that trusts a CA bundle, or the system's CAs if it is empty."""
    return client_context(base64.b64decode(authority).decode() if authority else None)


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """Return the whole body of a response, up to a limit."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > _MAX_BODY:
            raise CallFailed(f"the response is longer than {_MAX_BODY} bytes")
    return b"".join(chunks)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        reason = "connect: connection refused" if refused else str(error.os_error)
        return f"dial tcp {error.host}:{error.port}: {reason}"
    return str(error) or type(error).__name__
