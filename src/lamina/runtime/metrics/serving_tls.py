"""The TLS context of the metrics endpoint: a certificate from files that may be replaced, or one of its own."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from lamina.errors import SettingsError
from lamina.server.tls.certificates import ensure_certificates

_Stamp: TypeAlias = tuple[int, ...]


def certificate_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """
    Return a context with the certificate in two files; SettingsError if they have none.

    Files that change are loaded again with the next connection. If they cannot be
    loaded, as in the middle of a replacement, the previous certificate is served.
    """
    context = _load(certificate, key)
    latest = [(_stamp(certificate, key), context)]

    def reload(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        stamp = _stamp(certificate, key)
        if stamp and stamp != latest[0][0]:
            with suppress(SettingsError):
                latest[0] = stamp, _load(certificate, key)
        connection.context = latest[0][1]

    context.sni_callback = reload
    return context


def self_signed_context(folder: Path, hosts: Sequence[str]) -> ssl.SSLContext:
    """Return a context with a new certificate that no client trusts, as controller-runtime makes one."""
    made = ensure_certificates(folder, hosts, "metrics", ())
    return _load(made.server.certificate, made.server.key)


def _load(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"cannot load the certificate of the metrics from {certificate} and {key}: {error}",
            hint="--metrics-cert-path names the folder with tls.crt and tls.key",
        ) from None
    return context


def _stamp(*files: Path) -> _Stamp:
    """Return what changes when one of the files is replaced; nothing while one is missing."""
    try:
        found = [file.stat() for file in files]
    except OSError:
        return ()
    return tuple(value for one in found for value in (one.st_mtime_ns, one.st_size, one.st_ino))
