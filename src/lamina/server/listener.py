"""A listening socket with TLS, and the connections it brings."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

from msgspec import Struct

from lamina.errors import SettingsError
from lamina.server.connection import Connection
from lamina.server.desk import Desk, Doorkeeper, Handler, Patience

_FINISHING = 10.0
"""Seconds that requests in progress are given to finish when the server stops."""
_PARTING = 1.0
"""Seconds that clients are given to read the end and hang up, once nothing is in progress."""
_SWEEP_EVERY = 5.0
_PROBE_EVERY = 15


class TlsFiles(Struct, frozen=True):
    """Where the server's certificate and key are, and whose client certificates are believed."""

    certificate: Path
    key: Path
    client_authority: Path


class Listener:
    """Serves one handler at one address."""

    def __init__(self, server: asyncio.Server, desk: Desk) -> None:
        self._server = server
        self._desk = desk
        self._sweeping = asyncio.create_task(self._sweep_for_ever())

    @property
    def connected(self) -> int:
        """Return how many clients are connected."""
        return len(self._desk.connections)

    @property
    def answering(self) -> int:
        """Return how many requests are being answered that were not answered on the spot."""
        return len(self._desk.tasks)

    def sweep(self, now: float) -> None:
        """Close the connections that should have been heard of before a time of the loop."""
        for connection in list(self._desk.connections):
            connection.close_if_late(now)

    async def stop(self) -> None:
        """Accept nobody more, end streams, let requests in progress finish, and close what is left."""
        desk = self._desk
        desk.closing = True
        self._sweeping.cancel()
        self._server.close()
        for connection in list(desk.connections):
            connection.shut()
        if desk.tasks:
            await asyncio.wait(list(desk.tasks), timeout=_FINISHING)
        if desk.connections:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(desk.deserted.wait(), _PARTING)
        for connection in list(desk.connections):
            connection.drop()

    async def _sweep_for_ever(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(_SWEEP_EVERY)
            self.sweep(clock())


async def listen(
    opened: socket.socket,
    handler: Handler,
    authenticator: Doorkeeper,
    files: TlsFiles,
    patience: Patience | None = None,
) -> Listener:
    """Start serving on a bound socket."""
    patience = patience or Patience()
    desk = Desk(handler, authenticator, patience)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(desk),
        sock=opened,
        ssl=tls_context(files),
        ssl_handshake_timeout=patience.connecting,
        ssl_shutdown_timeout=patience.leaving,
        backlog=1024,
    )
    return Listener(server, desk)


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the server's side of TLS: its certificate, and client certificates where they are offered."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.client_authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; raises with a hint when somebody else has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections take these over. A client whose machine is gone says nothing, not even that.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_EVERY)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_EVERY)
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
