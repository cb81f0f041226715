"""
The certificate authority of a server and the certificates it signs.

The authority is created once, so that kubeconfigs stay valid. The server's certificate is renewed before it
expires and when its addresses change. A file records which files were checked, for which addresses and
until when the check holds.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import orjson
from msgspec import Struct

from lamina.server.identity import Identity


class Pair(Struct, frozen=True):
    """Paths of a certificate and its key."""

    certificate: Path
    key: Path

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.read_bytes()

    @property
    def key_pem(self) -> bytes:
        return self.key.read_bytes()


class Certificates(Struct, frozen=True):
    """The authority, the server's certificate and the administrator's client certificate."""

    authority: Pair
    server: Pair
    admin: Pair


def ensure_certificates(
    folder: Path, hosts: Sequence[str], admin: str, groups: Sequence[str]
) -> Certificates:
    """Return the certificates in a folder, creating or renewing them as needed. Keys have mode 0600."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificates = Certificates(*(Pair(folder / f"{name}.crt", folder / f"{name}.key") for name in _PAIRS))
    note = folder / "checked.json"
    if not _is_noted(note, certificates, hosts):
        from lamina.server.tls.x509 import renew

        until = renew(certificates, hosts, admin, groups)
        record = {"until": until.isoformat(), "hosts": sorted(hosts), "files": _digest(certificates)}
        write_private(note, orjson.dumps(record))
    return certificates


_PAIRS = ("ca", "server", "admin")


def _is_noted(note: Path, certificates: Certificates, hosts: Sequence[str]) -> bool:
    """Return whether the record says that these files are valid for these hosts, and still holds."""
    try:
        record = orjson.loads(note.read_bytes())
        until = datetime.datetime.fromisoformat(record["until"])
        # TLS peers check against their own wall clocks, so certificates do not follow the server's clock.
        return (
            datetime.datetime.now(datetime.UTC) < until
            and set(hosts) <= set(record["hosts"])
            and record["files"] == _digest(certificates)
        )
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _digest(certificates: Certificates) -> str:
    seen = hashlib.sha256()
    for pair in (certificates.authority, certificates.server, certificates.admin):
        for content in (pair.certificate_pem, pair.key_pem):
            seen.update(hashlib.sha256(content).digest())
    return seen.hexdigest()


def certificate_identity(certificate: bytes) -> Identity | None:
    """Return the identity in a client certificate: its common name, with its organizations as groups."""
    from lamina.server.tls import x509

    return x509.certificate_identity(certificate)


def sign_client_certificate(authority: Pair, request: bytes, seconds: int | None = None) -> bytes:
    """Return the client certificate for a request, both in PEM; it is valid for a year at most."""
    from lamina.server.tls import x509

    return x509.sign_client_certificate(authority, request, seconds)


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 atomically."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
