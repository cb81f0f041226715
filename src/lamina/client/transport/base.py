"""
The transport interface: requests and responses.

HTTP and the embedded server implement it. Responses are streamed, because a watch
has no end to wait for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from lamina.client.write_guard import WriteGuard

Query: TypeAlias = Sequence[tuple[str, str]]
Sink: TypeAlias = Callable[[bytes], bool]
"""Takes a chunk of a stream synchronously; returns whether it accepted it."""


class Response(Protocol):
    """
    A response whose headers are there and whose body may still arrive.

    Header names are in lower case. It must be closed unless it was read to its end.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """Return the whole body."""
        ...

    def stream(self) -> AsyncIterator[bytes]:
        """Yield chunks of the body as they arrive; a chunk may hold many lines or part of one."""
        ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """Sends requests. Raises Unreachable if there is no response."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
        guard: WriteGuard | None = None,
    ) -> Response:
        """Send one request; with `streams`, the response has no time limit."""
        ...

    async def close(self) -> None: ...
