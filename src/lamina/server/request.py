"""
A request and its answer, whoever carries them.

HTTP and the in-process client both speak in these two, so that a controller in
this process meets the very server that kubectl meets.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias, runtime_checkable
from urllib.parse import parse_qs

import orjson
from msgspec import Struct

from lamina.errors import ApiError, BadRequest
from lamina.server.empties import Empty

JSON = "application/json"


class Identity(Struct, frozen=True):
    """Who asks: a user name and the groups it belongs to."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))
ADMIN = Identity("lamina-admin", ("system:masters", "system:authenticated"))
ITSELF = Identity("system:apiserver", ("system:masters", "system:authenticated"))
"""The server, about what it cannot be without: nobody else is this very one, whatever name they have."""


class Request:
    """
    One request: method, path, raw query, headers with lower-case names, the whole body.

    `user` is who asks, once that is known; the caller sets it. `cluster` is the
    one it is for, where its path named one; the path is then the rest. `empties`
    is what its body states as empty, once that has been decoded. While it is
    `held`, nothing is being done for it that somebody else waits for, and it may
    end with its client; it is `silenced` if no answer comes because of a fault.
    """

    __slots__ = (
        "_parameters",
        "body",
        "cluster",
        "empties",
        "headers",
        "held",
        "method",
        "path",
        "query",
        "silenced",
        "user",
        "warnings",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        user: Identity = ANONYMOUS,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers or {}
        self.body = body
        self.user = user
        self.cluster = ""
        self.held = False
        self.silenced = False
        self.warnings: list[str] = []
        self.empties: Sequence[Empty] = ()
        self._parameters: Mapping[str, list[str]] | None = None

    @property
    def parameters(self) -> Mapping[str, list[str]]:
        known = self._parameters
        if known is None:
            known = self._parameters = _parsed(self.query) if self.query else {}
        return known

    def parameter(self, name: str) -> str:
        """Return the first value of a query parameter, or an empty string."""
        values = self.parameters.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Return a boolean parameter as Kubernetes' own query decoding does: set, unless it says `0` or `false`."""
        values = self.parameters.get(name)
        return values is not None and values[0].lower() not in ("0", "false")

    def number(self, name: str) -> int | None:
        """Return an integer parameter, None where it is absent or empty."""
        text = self.parameter(name)
        if not text:
            return None
        try:
            number = int(text)
        except ValueError:
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
        if not -(2**63) <= number < 2**63:
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
        return number

    def warn(self, sentence: str) -> None:
        """Say something beside the answer; it becomes a Warning header, once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)


@lru_cache(maxsize=512)
def _parsed(query: str) -> Mapping[str, list[str]]:
    """Return the parameters of a query; most clients ask for the same few all day."""
    return parse_qs(query, keep_blank_values=True)


Sink: TypeAlias = Callable[[bytes], bool]
"""Takes a piece of a stream at once, and says whether it did."""


@runtime_checkable
class Feed(Protocol):
    """A stream that can do without being asked: what comes while its reader waits may be pushed."""

    def push_to(self, sink: Sink) -> None:
        """Push into a sink; what the sink does not take is there to be read. Said before anything is read."""
        ...


class Answer:
    """
    One answer. A body that is an iterator is a stream, sent as it comes.

    Headers that every answer carries are added where it is sent.
    """

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes | AsyncIterator[bytes],
        content_type: str = JSON,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers


def json_answer(value: object, status: int = 200) -> Answer:
    """Return an answer that holds a JSON value."""
    return Answer(status, orjson.dumps(value))


def error_answer(error: ApiError) -> Answer:
    """Return the Status that says what went wrong, or the page that does."""
    if error.is_page:
        return Answer(error.code, f"{error.message}\n".encode(), "text/plain; charset=utf-8")
    headers = [("retry-after", str(error.retry_after))] if error.retry_after is not None else []
    return Answer(error.code, orjson.dumps(error.status()), headers=headers)
