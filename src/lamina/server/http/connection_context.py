"""The state shared by the connections of one listener: handler, authenticator and timeouts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from lamina.server.http.request import Request, Response
from lamina.server.identity import Identity

if TYPE_CHECKING:
    from lamina.server.http.connection import Connection


class Handler(Protocol):
    """Serves requests."""

    def handle_nowait(self, request: Request) -> Response | None:
        """Return the response to a request that can be served synchronously, None for any other."""
        ...

    async def handle(self, request: Request) -> Response: ...


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds after which a client is closed, by what it is doing."""

    connecting: float = 10.0
    """TLS handshake."""
    request: float = 30.0
    """Sending a request that has begun, or the first one after connecting."""
    idle: float = 180.0
    """Idle between requests."""
    unread: float = 60.0
    """Reading any of the bytes sent to it, once writing is paused."""
    leaving: float = 5.0
    """TLS shutdown."""
    refused: float = 1.0
    """Reading the rejection of a request, while the rest of that request is discarded."""


class RequestAuthenticator(Protocol):
    """Authenticates requests."""

    def authenticate(self, request: Request, client_identity: Identity | None = None) -> Identity:
        """Return the identity of a request's user; raises Unauthorized for invalid credentials."""
        ...


class ConnectionContext:
    def __init__(
        self, handler: Handler, authenticator: RequestAuthenticator, timeouts: Timeouts | None = None
    ) -> None:
        self.handler = handler
        self.authenticator = authenticator
        self.timeouts = timeouts or Timeouts()
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Tasks that serve requests, including those whose client is disconnected."""
        self.closing = False
        self.no_connections = asyncio.Event()
        """Set while no client is connected."""
