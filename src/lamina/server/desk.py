"""What the connections of one listener share: who answers, who knows whom, how long anybody waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from lamina.server.request import Answer, Identity, Request

if TYPE_CHECKING:
    from lamina.server.connection import Connection


class Handler(Protocol):
    """What answers requests."""

    def answer_now(self, request: Request) -> Answer | None:
        """Return the answer to a request that nothing has to be waited for, None for any other."""
        ...

    async def handle(self, request: Request) -> Answer: ...


class Patience(Struct, frozen=True, kw_only=True):
    """How many seconds a client is given, by what it is doing."""

    connecting: float = 10.0
    """To agree on TLS."""
    request: float = 30.0
    """To send a request once it has begun, or the first one once it has connected."""
    idle: float = 180.0
    """To come back with another request."""
    unread: float = 60.0
    """To read any of what was sent to it, when too much of that is on its way already."""
    leaving: float = 5.0
    """To agree on the end of TLS."""
    refused: float = 1.0
    """To read why it was refused, while what it still sends is thrown away."""


class Doorkeeper(Protocol):
    """Who says who is there."""

    def identify(self, request: Request, certified: Identity | None = None) -> Identity:
        """Return who a request is from; raises Unauthorized for those who pretend to be somebody."""
        ...


class Desk:
    """What the connections of one listener share."""

    def __init__(self, handler: Handler, authenticator: Doorkeeper, patience: Patience | None = None) -> None:
        self.handler = handler
        self.authenticator = authenticator
        self.patience = patience or Patience()
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Requests that are being answered, also those whose client has gone."""
        self.closing = False
        self.deserted = asyncio.Event()
        """Set whenever nobody is connected any more."""
