"""The interface to a server, and its implementation over HTTP."""

import json
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPResponse, HTTPSConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.bed.wire import Answer

TIMEOUT = 60.0
SILENCE = 40.0
"""Seconds without a line after which a stream counts as finished."""


class Stream(Protocol):
    """A response that arrives line by line."""

    def line(self) -> Any:
        """Return the next line, decoded; None at the end. Raises TimeoutError if none arrives."""
        ...

    def close(self) -> None: ...


class Wire(Protocol):
    """Sends requests to one server as an administrator."""

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Send one request and return its response."""
        ...

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        """Open a stream; a status other than 200 is a response."""
        ...


class HttpWire:
    """A server at an address; every request has a connection of its own unless they `share` one."""

    def __init__(self, url: str, authority: str, token: str, *, share: bool = False) -> None:
        parts = urlsplit(url)
        self._share = share
        self._shared: HTTPSConnection | None = None
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 443
        self._tls = ssl.create_default_context(cafile=authority)
        self._token = token

    def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        if self._share:
            return self._call_again(method, path, headers, body)
        connection, answer = self._send(method, path, headers, body)
        try:
            return _whole(answer)
        finally:
            connection.close()

    def _call_again(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        if self._shared is None:
            self._shared = HTTPSConnection(self._host, self._port, context=self._tls, timeout=TIMEOUT)
        # If the server has closed the connection in between, http.client reconnects.
        self._shared.request(method, path, body, {"Authorization": f"Bearer {self._token}", **headers})
        return _whole(self._shared.getresponse())

    def close(self) -> None:
        """Close the shared connection."""
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def open(self, path: str, headers: Mapping[str, str]) -> Answer | Stream:
        connection, answer = self._send("GET", path, headers, None)
        if answer.status == 200:
            connection.sock.settimeout(SILENCE)
            return _HttpStream(connection, answer)
        try:
            return _whole(answer)
        finally:
            connection.close()

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[HTTPSConnection, HTTPResponse]:
        connection = HTTPSConnection(self._host, self._port, context=self._tls, timeout=TIMEOUT)
        try:
            # A server may respond and close before it has read the whole body; its response is still readable.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, {"Authorization": f"Bearer {self._token}", **headers})
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise


def _whole(answer: HTTPResponse) -> Answer:
    return Answer(
        code=answer.status,
        headers={name.lower(): value for name, value in answer.getheaders()},
        warnings=tuple(answer.headers.get_all("Warning") or ()),
        body=answer.read(),
    )


class _HttpStream:
    def __init__(self, connection: HTTPSConnection, answer: HTTPResponse) -> None:
        self._connection, self._answer = connection, answer

    def line(self) -> Any:
        read = self._answer.readline()
        return json.loads(read) if read else None

    def close(self) -> None:
        self._answer.close()
        self._connection.close()
