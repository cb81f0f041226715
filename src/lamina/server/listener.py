"""
uvicorn, with what an API server needs beyond it.

A connection says which certificate it came with, may send only so many and so
large headers, and has to send them soon.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from cryptography import x509
from cryptography.x509.oid import NameOID
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lamina.errors import SettingsError
from lamina.server.identity import from_subject
from lamina.server.request import Identity

_HEADERS_LIMIT = 100
_HEADER_BYTES_LIMIT = 64 * 1024
_HEADERS_PATIENCE = 30.0
_KEEP_ALIVE = 180
_TOO_MANY = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class _Cork:
    """
    A transport that sends once a turn of the loop what was written in it.

    uvicorn writes the head of an answer and its body apart; over TLS that is two
    records and two system calls.
    """

    __slots__ = ("_loop", "_pending", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pending: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            if not self._transport.is_closing():
                self._transport.write(b"".join(pending) if len(pending) > 1 else pending[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Connection(HttpToolsProtocol):
    """One connection."""

    _certified: Identity | None = None
    _header_bytes = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Cork(transport, self.loop))  # type: ignore[arg-type]
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        if certificate:
            self._certified = identity_in(certificate)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0
        if self._late is None:
            self._wait_for_headers()
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope["extensions"] = {"tls": self._certified}

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if len(self.headers) >= _HEADERS_LIMIT or self._header_bytes > _HEADER_BYTES_LIMIT:
            if not self.transport.is_closing():
                self.transport.write(_TOO_MANY)
                self.transport.close()
            return
        super().on_header(name, value)

    def on_url(self, url: bytes) -> None:
        self._header_bytes += len(url)
        if self._header_bytes > _HEADER_BYTES_LIMIT:
            if not self.transport.is_closing():
                self.transport.write(_TOO_MANY)
                self.transport.close()
            return
        super().on_url(url)

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.cycle is not None:
            super().on_message_complete()

    def _wait_for_headers(self) -> None:
        self._late = self.loop.call_later(_HEADERS_PATIENCE, self.timeout_keep_alive_handler)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def identity_in(certificate: bytes) -> Identity | None:
    """Return whom a client certificate names: its common name, with its organizations as groups."""
    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(one.value) for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = tuple(str(one.value) for one in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    return from_subject(names[0], groups) if names and names[0] else None


class Listener(uvicorn.Server):
    """One listening socket and the connections it brings. Signals are the process's business, not its."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; raises with a hint when somebody else has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise SettingsError(
            f"cannot listen on {host} port {port}: {error.strerror or error}",
            hint="choose another port with --port N, or --port 0 for any free one",
        ) from None
    opened.listen(1024)
    opened.setblocking(False)
    return opened


def make_listener(app: Any, tls: TlsFiles | None) -> Listener:
    """Return a uvicorn server for an ASGI application, not yet started."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        lifespan="off",
        loop="none",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=10,
        backlog=1024,
        ssl_certfile=str(tls.certificate) if tls else None,
        ssl_keyfile=str(tls.key) if tls else None,
        ssl_ca_certs=str(tls.client_authority) if tls else None,
        ssl_cert_reqs=ssl.CERT_OPTIONAL if tls else ssl.CERT_NONE,
    )
    return Listener(config)


class TlsFiles:
    """Where the server's certificate and key are, and whose client certificates are believed."""

    def __init__(self, certificate: Path, key: Path, client_authority: Path) -> None:
        self.certificate = certificate
        self.key = key
        self.client_authority = client_authority
