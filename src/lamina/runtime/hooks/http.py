"""
Sends calls to webhooks over HTTP.

Many webhooks run on a server that serves one connection at a time. A pooled
connection would block every other client, so each call opens one of its own and
sends Content-Length.

Imported when the first webhook is called: most control planes never call one,
and aiohttp takes longer to import than the rest of this package.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import aiohttp

from lamina.core.model.queries import Call, Credentials
from lamina.errors import HookError, HookUnreachable
from lamina.runtime.metrics.recorder import HookRecorder
from lamina.tls import client_context


class HookTransport:
    """Posts to webhooks, with a session for each TLS identity."""

    def __init__(self, meter: HookRecorder | None = None) -> None:
        self._meter = meter or HookRecorder()
        self._sessions: dict[Credentials, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def send(self, call: Call, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Return the status code, headers and body of the response; HookError without one."""
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
            kind = HookUnreachable if isinstance(error, aiohttp.ClientConnectorError) else HookError
            raise kind(
                f"http error: {call.purpose} hook {call.url}: {_message(error)}", reached=False
            ) from error

    def _session(self, credentials: Credentials) -> aiohttp.ClientSession:
        identity = Credentials(
            authority=credentials.authority, certificate=credentials.certificate, key=credentials.key
        )
        session = self._sessions.get(identity)
        if session is None:
            # One connection, to one address at a time: a second one (happy eyeballs) would block the first.
            connector = aiohttp.TCPConnector(
                limit=0, force_close=True, ssl=_context(identity), happy_eyeballs_delay=None
            )
            jar = aiohttp.DummyCookieJar()
            session = self._sessions[identity] = aiohttp.ClientSession(
                connector=connector, cookie_jar=jar, trace_configs=[_trace_config(self._meter)]
            )
        return session


def _trace_config(meter: HookRecorder) -> aiohttp.TraceConfig:
    """Return the tracing that records when a call resolves a name and completes a TLS handshake."""

    def on_event(event: str, *, secure: bool = False) -> Callable[..., Awaitable[None]]:
        async def record(session: object, context: SimpleNamespace, params: object) -> None:
            call, began = context.trace_request_ctx
            if not secure or call.url.startswith("https:"):
                meter.found(call, event, monotonic() - began)

        return record

    config = aiohttp.TraceConfig()
    config.on_dns_resolvehost_start.append(on_event("dns_start"))
    config.on_dns_resolvehost_end.append(on_event("dns_done"))
    config.on_connection_create_end.append(on_event("tls_handshake_done", secure=True))
    return config


def _context(identity: Credentials) -> ssl.SSLContext:
    try:
        context = client_context(identity.authority)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if identity.certificate:
            # The ssl module reads a key from a file only.
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "pair.pem"
                path.touch(mode=0o600)
                path.write_text(f"{identity.certificate}\n{identity.key}\n")
                context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        raise HookError(
            f"http error: the certificates for this webhook cannot be used: {error}", reached=False
        ) from error
    return context


def _message(error: Exception) -> str:
    return str(error) or type(error).__name__
