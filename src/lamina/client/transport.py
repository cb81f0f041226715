"""
How a request reaches whoever serves it.

The client speaks in these two; HTTP and the embedded server are two ways of
carrying them. A transport streams, because a watch that arrives all at once
never arrives.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

Query: TypeAlias = Sequence[tuple[str, str]]
Sink: TypeAlias = Callable[[bytes], bool]
"""Takes a piece of a stream at once, and says whether it did."""


class Response(Protocol):
    """
    An answer whose head is here and whose body may still be on its way.

    Header names are in lower case. Close it once done, unless it was read to its end.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """Return the whole body."""
        ...

    def stream(self) -> AsyncIterator[bytes]:
        """Return the body in pieces, as they arrive; a piece may hold many lines or part of one."""
        ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """Carries requests. Raises Unreachable where nobody answers."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        headers: Mapping[str, str],
        body: bytes | None = None,
        streams: bool = False,
    ) -> Response:
        """Send one request; with `streams` its answer may take as long as it likes."""
        ...

    async def close(self) -> None: ...
