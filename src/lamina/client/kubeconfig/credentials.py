"""
Credentials: request headers, and the client certificate of connections.

Files are rewritten by another process, such as the kubelet, and may be incomplete
when they are read; the last valid token or certificate is used until there is a new
one. What a program printed is used until it expires or is not accepted.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple
from urllib.parse import quote

from lamina.client.kubeconfig.exec_plugin import ExecCredential, ExecPlugin, invalid_certificate, run_plugin
from lamina.client.kubeconfig.read import Access
from lamina.errors import Unreachable

_FILE_AGE = 60.0
_IN_A_NAME = "!#$&'*+-.^_`|~"
_USER = "impersonate-user"


class Identity(NamedTuple):
    """A client certificate and its key in PEM, both empty for none."""

    certificate: bytes
    key: bytes


class Credentials:
    """Adds authentication and impersonation headers to requests, and has the client certificate for connections."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._token, self._token_read = access.token, float("-inf")
        self._impersonation = tuple(_impersonation(access))
        self._identity, self._identity_read = Identity(access.certificate, access.key), monotonic()
        # A token or a password that is stated takes precedence, as in client-go.
        has_own = access.token or access.token_file is not None or access.username
        self._plugin = access.exec if not has_own else None
        self._printed: ExecCredential | None = None
        self._running = asyncio.Lock()
        self._failure: tuple[float, Unreachable] | None = None

    @property
    def identity(self) -> Identity:
        """Return the client certificate for new connections."""
        if self._printed is not None and self._printed.certificate:
            return Identity(self._printed.certificate, self._printed.key)
        return self._identity

    async def renew(self) -> None:
        """Get credentials that have expired or may have changed; Unreachable if a program has none."""
        if self._access.certificate_file is not None and monotonic() - self._identity_read > _FILE_AGE:
            self._read_identity()
        if self._plugin is None or not self._is_due:
            return
        asked = monotonic()
        async with self._running:
            # Requests that waited use what the first of them got, a failure included.
            if self._failure is not None and self._failure[0] >= asked:
                raise self._failure[1].with_traceback(None)
            if self._is_due:
                self._printed = await self._run(self._plugin)

    async def _run(self, plugin: ExecPlugin) -> ExecCredential:
        try:
            printed = await run_plugin(plugin)
            if printed.certificate and not is_pair(Identity(printed.certificate, printed.key)):
                raise invalid_certificate(plugin)
        except Unreachable as error:
            self._failure = monotonic(), error
            raise
        return printed

    @property
    def _is_due(self) -> bool:
        return self._printed is None or self._printed.has_expired

    @property
    def mark(self) -> object:
        """Return a value that `invalidate` takes: which credentials a request was sent with."""
        return self._printed

    def _read_identity(self) -> None:
        access = self._access
        assert access.certificate_file is not None and access.key_file is not None
        self._identity_read = monotonic()
        with suppress(OSError):
            read = Identity(access.certificate_file.read_bytes(), access.key_file.read_bytes())
            if read != self._identity and is_pair(read):
                self._identity = read

    def add_to(self, headers: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the headers of a request with credentials; Unreachable if the token cannot be read."""
        result = [*headers.items(), *self._authentication()]
        # A single request may impersonate a user of its own.
        return result if _USER in headers else [*result, *self._impersonation]

    def invalidate(self, mark: object = None) -> None:
        """Get credentials again before the next request, because the server answered 401 to those with this mark."""
        self._token_read = self._identity_read = float("-inf")
        if self._printed is mark:
            self._printed = None

    def _authentication(self) -> Iterator[tuple[str, str]]:
        access = self._access
        # Token files are rewritten long before the token expires.
        if access.token_file is not None and monotonic() - self._token_read > _FILE_AGE:
            self._read()
        if self._token:
            yield "authorization", f"Bearer {self._token}"
        elif access.username:
            pair = b64encode(f"{access.username}:{access.password}".encode()).decode()
            yield "authorization", f"Basic {pair}"
        elif self._printed is not None and self._printed.token:
            yield "authorization", f"Bearer {self._printed.token}"

    def _read(self) -> None:
        file = self._access.token_file
        assert file is not None
        try:
            token = file.read_text().strip()
        except OSError as error:
            problem = f"cannot read the token: {error.strerror}"
        except UnicodeDecodeError:
            problem = "cannot read the token: the file is no text"
        else:
            if token and token.isascii() and token.isprintable() and " " not in token:
                self._token, self._token_read = token, monotonic()
                return
            problem = "the file has no token" if not token else "the file has no valid token"
        if not self._token:
            raise Unreachable(f"{file}: {problem}")


def describe(access: Access) -> str:
    """Return what a server was sent to authenticate with, and the kubeconfig's user that it belongs to."""
    if access.token_file is not None:
        sent = f"the token in {access.token_file}"
    elif access.token:
        sent = "the token"
    elif access.username:
        sent = f"the password of {access.username}"
    elif access.exec is not None:
        sent = f"the credentials of {access.exec.command}"
    elif access.certificate or access.certificate_file is not None:
        sent = "the client certificate"
    else:
        return "requests without credentials"
    return f"{sent}, of user {access.user}" if access.user else sent


def load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    """Have a context present a client certificate; SSLError where it cannot be used."""
    # The ssl module loads a certificate and its key only from files.
    handle, name = tempfile.mkstemp(prefix="lamina-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(identity.certificate + b"\n" + identity.key)
        context.load_cert_chain(name)
    finally:
        Path(name).unlink()


def is_pair(identity: Identity) -> bool:
    """Say whether a certificate and its key belong together: of two files, one may be rewritten before the other."""
    try:
        load_identity(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), identity)
    except ssl.SSLError:
        return False
    return True


def _impersonation(access: Access) -> Iterator[tuple[str, str]]:
    """Yield the impersonation headers."""
    if access.as_user:
        yield _USER, access.as_user
    if access.as_uid:
        yield "impersonate-uid", access.as_uid
    for group in access.as_groups:
        yield "impersonate-group", group
    for key, values in access.as_extra.items():
        for value in values:
            yield f"impersonate-extra-{quote(key.lower(), safe=_IN_A_NAME)}", value
