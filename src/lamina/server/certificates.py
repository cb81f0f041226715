"""
The server's own certificate authority.

Made once and kept: a kubeconfig written yesterday must work today. The
server's certificate is made anew when it is about to expire or the addresses
change; the authority is not. Once all of it has been looked at, a note says for
which files, for which addresses and until when that holds.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import orjson
from msgspec import Struct

from lamina.server.request import Identity


class Pair(Struct, frozen=True):
    """A certificate and its key, where they are and what they say."""

    certificate: Path
    key: Path

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.read_bytes()

    @property
    def key_pem(self) -> bytes:
        return self.key.read_bytes()


class Certificates(Struct, frozen=True):
    """Everything TLS needs here."""

    authority: Pair
    server: Pair
    admin: Pair


def ensure_certificates(
    folder: Path, hosts: Sequence[str], admin: str, groups: Sequence[str]
) -> Certificates:
    """Return the certificates in a folder, making what is missing or about to expire. Keys are mode 0600."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Certificates(*(Pair(folder / f"{name}.crt", folder / f"{name}.key") for name in _PAIRS))
    note = folder / "checked.json"
    if not _is_noted(note, made, hosts):
        from lamina.server.issuing import see_to

        until = see_to(made, hosts, admin, groups)
        said = {"until": until.isoformat(), "hosts": sorted(hosts), "files": _digest(made)}
        write_private(note, orjson.dumps(said))
    return made


_PAIRS = ("ca", "server", "admin")


def _is_noted(note: Path, made: Certificates, hosts: Sequence[str]) -> bool:
    """Say whether a note says that these very files are good, for these hosts and still for a while."""
    try:
        said = orjson.loads(note.read_bytes())
        until = datetime.datetime.fromisoformat(said["until"])
        # TLS is checked by other people's clocks, so certificates follow the wall clock and no other.
        return (
            datetime.datetime.now(datetime.UTC) < until
            and set(hosts) <= set(said["hosts"])
            and said["files"] == _digest(made)
        )
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _digest(made: Certificates) -> str:
    seen = hashlib.sha256()
    for pair in (made.authority, made.server, made.admin):
        for content in (pair.certificate_pem, pair.key_pem):
            seen.update(hashlib.sha256(content).digest())
    return seen.hexdigest()


def identity_in(certificate: bytes) -> Identity | None:
    """Return whom a client certificate names: its common name, with its organizations as groups."""
    from lamina.server import issuing

    return issuing.identity_in(certificate)


def write_private(path: Path, content: bytes) -> None:
    """Write a file only its owner can read, all of it or nothing."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
