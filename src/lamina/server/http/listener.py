"""A listening TLS socket and its connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

from msgspec import Struct

from lamina.errors import SettingsError
from lamina.server.http.connection import Connection
from lamina.server.http.connection_context import ConnectionContext, Handler, RequestAuthenticator, Timeouts

_DRAIN_SECONDS = 10.0
"""Seconds that requests in progress have to finish when the server stops."""
_DISCONNECT_SECONDS = 1.0
"""Seconds that clients have to disconnect once no request is in progress."""
_SWEEP_SECONDS = 5.0
_KEEPALIVE_SECONDS = 15


class TlsFiles(Struct, frozen=True):
    """The server's certificate and key, and the authority that client certificates must be signed by."""

    certificate: Path
    key: Path
    client_authority: Path


class Listener:
    """Serves one handler at one address."""

    def __init__(self, server: asyncio.Server, context: ConnectionContext) -> None:
        self._server = server
        self._context = context
        self._sweep_task = asyncio.create_task(self._sweep_loop())

    @property
    def connected(self) -> int:
        """The number of connected clients."""
        return len(self._context.connections)

    @property
    def in_progress(self) -> int:
        """The number of requests served in tasks."""
        return len(self._context.tasks)

    def sweep(self, now: float) -> None:
        """Close the connections whose deadline is before a time of the event loop."""
        for connection in list(self._context.connections):
            connection.close_if_overdue(now)

    async def stop(self) -> None:
        """
        Stop accepting, end streams, let requests in progress finish, and close the remaining connections.
        """
        context = self._context
        context.closing = True
        self._sweep_task.cancel()
        self._server.close()
        for connection in list(context.connections):
            connection.shut_down()
        if context.tasks:
            await asyncio.wait(list(context.tasks), timeout=_DRAIN_SECONDS)
        if context.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(context.no_connections.wait(), _DISCONNECT_SECONDS)
        for connection in list(context.connections):
            connection.abort()

    async def _sweep_loop(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.sweep(clock())


async def listen(
    opened: socket.socket,
    handler: Handler,
    authenticator: RequestAuthenticator,
    files: TlsFiles,
    timeouts: Timeouts | None = None,
) -> Listener:
    """Start serving on a bound socket."""
    timeouts = timeouts or Timeouts()
    context = ConnectionContext(handler, authenticator, timeouts)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(context),
        sock=opened,
        ssl=tls_context(files),
        ssl_handshake_timeout=timeouts.connecting,
        ssl_shutdown_timeout=timeouts.leaving,
        backlog=1024,
    )
    return Listener(server, context)


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the server's TLS context; client certificates are optional."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.client_authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; raises SettingsError with a hint if it is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections inherit these. A client whose machine is gone sends no FIN.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_SECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_SECONDS)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise SettingsError(
            f"cannot listen on {host} port {port}: {error.strerror or error}",
            hint="choose another port with --port N, or --port 0 for any free one",
        ) from None
    opened.setblocking(False)
    return opened
