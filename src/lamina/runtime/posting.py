"""
Posting to webhooks over HTTP.

Many of them are a screenful of code on a server that serves one connection at a
time. A connection that waits in case it is needed again would keep everybody
else out, so each call has one of its own, and says how long its body is.

Loaded when the first webhook is called: most control planes never call one,
and the library takes longer to load than everything else here.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import aiohttp

from lamina.core.questions import Call, Credentials
from lamina.errors import HookError
from lamina.runtime.meter import CallMeter
from lamina.trust import trusting


class Post:
    """Posts to webhooks, with a session for each way of trusting them."""

    def __init__(self, meter: CallMeter | None = None) -> None:
        self._meter = meter or CallMeter()
        self._sessions: dict[Credentials, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def send(self, call: Call, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Return the code, headers and body that a webhook answers with; HookError if it does not."""
        timeout = aiohttp.ClientTimeout(total=call.seconds)
        try:
            async with self._session(call.credentials).post(
                call.url,
                data=call.body,
                headers=headers,
                timeout=timeout,
                trace_request_ctx=(call, monotonic()),
            ) as answer:
                return answer.status, answer.headers, await answer.read()
        except TimeoutError:
            raise HookError(
                f"http error: {call.purpose} hook {call.url}: no answer within {call.seconds:g}s",
                reached=False,
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise HookError(
                f"http error: {call.purpose} hook {call.url}: {_words(error)}", reached=False
            ) from error

    def _session(self, credentials: Credentials) -> aiohttp.ClientSession:
        trust = Credentials(
            authority=credentials.authority, certificate=credentials.certificate, key=credentials.key
        )
        session = self._sessions.get(trust)
        if session is None:
            # One connection, to one address at a time: a second one, in case it is quicker, would be in the way.
            connector = aiohttp.TCPConnector(
                limit=0, force_close=True, ssl=_context(trust), happy_eyeballs_delay=None
            )
            jar = aiohttp.DummyCookieJar()
            session = self._sessions[trust] = aiohttp.ClientSession(
                connector=connector, cookie_jar=jar, trace_configs=[_traced(self._meter)]
            )
        return session


def _traced(meter: CallMeter) -> aiohttp.TraceConfig:
    """Return what has a meter told of how a call finds its way."""

    def told(event: str, *, secure: bool = False) -> Callable[..., Awaitable[None]]:
        async def tell(session: object, context: SimpleNamespace, params: object) -> None:
            call, began = context.trace_request_ctx
            if not secure or call.url.startswith("https:"):
                meter.found(call, event, monotonic() - began)

        return tell

    config = aiohttp.TraceConfig()
    config.on_dns_resolvehost_start.append(told("dns_start"))
    config.on_dns_resolvehost_end.append(told("dns_done"))
    config.on_connection_create_end.append(told("tls_handshake_done", secure=True))
    return config


def _context(trust: Credentials) -> ssl.SSLContext:
    try:
        context = trusting(trust.authority)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if trust.certificate:
            # The library reads a key from a file only.
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "pair.pem"
                path.touch(mode=0o600)
                path.write_text(f"{trust.certificate}\n{trust.key}\n")
                context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        raise HookError(
            f"http error: the certificates for this webhook cannot be used: {error}", reached=False
        ) from error
    return context


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
