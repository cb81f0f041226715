"""
Posting a question to a webhook.

Loaded with the first one that is asked: most control planes never ask one, and
the library takes longer to load than everything else here.
"""

from __future__ import annotations

import base64
import io
import ssl
from functools import lru_cache
from typing import Final

import aiohttp

from lamina.server.webhooks.address import Address
from lamina.trust import trusting

_MOST: Final = 3 * 1024 * 1024
_OK: Final = 200
_AUTHORITIES: Final = 32
"""How many authorities are remembered: whoever registers may name another each time."""


class Unanswered(Exception):
    """Why a webhook gave no answer."""


class Caller:
    """Posts questions, whichever authority a certificate is checked against."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, where: Address, authority: str, body: bytes, seconds: float) -> bytes:
        """Return what is answered; Unanswered where nothing is, in the words of a real server."""
        told = f'Post "{where.shown}"'
        try:
            async with self._opened().post(
                where.url,
                ssl=_trusting(authority),
                # In pieces: a long one would be sent in one go, and nobody else served meanwhile.
                data=io.BytesIO(body),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                timeout=aiohttp.ClientTimeout(total=seconds),
                server_hostname=where.server or None,
                allow_redirects=False,
            ) as answer:
                data = await whole(answer)
                if answer.status != _OK:
                    shown = data[:1024].decode(errors="replace").strip()
                    raise Unanswered(shown or "the server rejected our request for an unknown reason")
                return data
        except TimeoutError:
            raise Unanswered(f"{told}: context deadline exceeded") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unanswered(f"{told}: {_reason(error)}") from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            # Many webhooks serve one connection at a time: one that is kept would keep everybody else out.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


@lru_cache(maxsize=_AUTHORITIES)
def _trusting(authority: str) -> ssl.SSLContext:
    """Return what checks certificates against an authority, or against those that everybody trusts."""
    return trusting(base64.b64decode(authority).decode() if authority else None)


async def whole(answer: aiohttp.ClientResponse) -> bytes:
    """Return all of an answer, in however many pieces it comes."""
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > _MOST:
            raise Unanswered(f"the answer is longer than {_MOST} bytes")
    return b"".join(pieces)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        why = "connect: connection refused" if refused else str(error.os_error)
        return f"dial tcp {error.host}:{error.port}: {why}"
    return str(error) or type(error).__name__
