"""
Plain HTTP to a Kubernetes API.

Without a client library a test sees the status, headers and bytes of a response.
"""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response of a server."""

    code: int
    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body, as text."""
        return self.body.decode()

    @property
    def media_type(self) -> str:
        """The Content-Type header, unchanged."""
        return self.headers.get("content-type", "")


class Api:
    """
    One identity at one server.

    Each request has a connection of its own, so that threads can share an `Api` and
    requests share nothing but the server.
    """

    def __init__(self, url: str, ca_file: str, token: str | None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 443
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._token = token

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content: str | None = JSON,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> Answer:
        """
        Send one request and return its response.

        Bytes and text are sent as they are, other values as JSON. `content` is the
        Content-Type; None omits the header.
        """
        with closing(self._connection(timeout)) as connection:
            answer = self._send(connection, method, path, body, content, headers)
            return Answer(
                code=answer.status,
                headers={name.lower(): value for name, value in answer.getheaders()},
                warnings=tuple(answer.headers.get_all("Warning") or ()),
                body=answer.read(),
            )

    def get(self, path: str, **options: Any) -> Answer:
        """GET a path."""
        return self.call("GET", path, **options)

    def post(self, path: str, body: object, **options: Any) -> Answer:
        """POST an object."""
        return self.call("POST", path, body, **options)

    def put(self, path: str, body: object, **options: Any) -> Answer:
        """PUT an object."""
        return self.call("PUT", path, body, **options)

    def delete(self, path: str, body: object = None, **options: Any) -> Answer:
        """DELETE a path, with options as the body or none."""
        return self.call("DELETE", path, body, **options)

    def patch(self, path: str, body: object, content: str = MERGE, **options: Any) -> Answer:
        """PATCH a path; a merge patch unless `content` says otherwise."""
        return self.call("PATCH", path, body, content=content, **options)

    def lines(
        self, path: str, *, headers: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> Iterator[Any]:
        """Yield each line of a stream as it arrives, decoded, until the server ends it."""
        with closing(self._connection(timeout)) as connection:
            answer = self._send(connection, "GET", path, None, None, headers)
            if answer.status != 200:
                raise AssertionError(f"GET {path} answered {answer.status}: {answer.read().decode()}")
            while line := answer.readline():
                yield json.loads(line)

    def _connection(self, timeout: float) -> HTTPSConnection:
        return HTTPSConnection(self._host, self._port, context=self._tls, timeout=timeout)

    def _send(
        self,
        connection: HTTPSConnection,
        method: str,
        path: str,
        body: object,
        content: str | None,
        headers: Mapping[str, str] | None,
    ) -> HTTPResponse:
        sent: dict[str, str] = {}
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        if body is not None and content is not None:
            sent["Content-Type"] = content
        payload = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
        if isinstance(payload, str):
            payload = payload.encode()
        connection.request(method, path, payload, sent | dict(headers or {}))
        return connection.getresponse()
