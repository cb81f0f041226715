"""
Requests and responses, independent of the transport.

HTTP and the in-process client both use them, so that a controller in this process is served by the same
code as kubectl.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import parse_qs

import orjson

from lamina.errors import ApiError, BadRequest
from lamina.server.identity import ANONYMOUS, Identity

JSON = "application/json"


class Request:
    """
    One request: method, path, raw query, headers with lower-case names, the whole body.

    `user` is set by the transport after authentication. `cluster` is the cluster that the path named, and
    `path` is then the rest. `empties` holds the empty lists and maps of the body, once it is decoded. While
    a request is `abandonable`, it may be cancelled when its client disconnects; it is `silenced` while a
    fault withholds its response.
    """

    __slots__ = (
        "_parameters",
        "abandonable",
        "body",
        "cluster",
        "empties",
        "headers",
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
        self.abandonable = False
        self.silenced = False
        self.warnings: list[str] = []
        self.empties: Sequence[tuple[tuple[str | int, ...], Any]] = ()
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
        """Return a boolean parameter as Kubernetes' query decoding does: set, unless it is `0` or `false`."""
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
        """Add a Warning header to the response, once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)


@lru_cache(maxsize=512)
def _parsed(query: str) -> Mapping[str, list[str]]:
    """Return the parameters of a query; cached, since most clients repeat a few queries."""
    return parse_qs(query, keep_blank_values=True)


Sink: TypeAlias = Callable[[bytes], bool]
"""Writes a piece of a stream at once; returns false if it cannot."""


@runtime_checkable
class PushStream(Protocol):
    """A stream that can push pieces into a sink while its reader waits."""

    def push_to(self, sink: Sink) -> None:
        """Push into a sink; what the sink rejects is read as usual. Called before the first read."""
        ...


class Response:
    """
    One response. A body that is an iterator is streamed.

    Headers common to all responses are added where it is sent.
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


def json_response(value: object, status: int = 200) -> Response:
    """Return a response with a JSON body."""
    return Response(status, orjson.dumps(value))


def error_response(error: ApiError) -> Response:
    """Return the Status of an error, or its text page."""
    if error.is_page:
        return Response(error.code, f"{error.message}\n".encode(), "text/plain; charset=utf-8")
    headers = [("retry-after", str(error.retry_after))] if error.retry_after is not None else []
    return Response(error.code, orjson.dumps(error.status()), headers=headers)
