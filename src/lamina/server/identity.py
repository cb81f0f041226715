"""The identity of a client: user name, groups and uid, and the identities the server itself defines."""

from __future__ import annotations

from msgspec import Struct

_AUTHENTICATED = "system:authenticated"


class Identity(Struct, frozen=True):
    """An authenticated (or anonymous) user and the groups it belongs to."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))
ADMIN = Identity("lamina-admin", ("system:masters", _AUTHENTICATED))
LOOPBACK = Identity("system:apiserver", ("system:masters", _AUTHENTICATED))
"""The server's loopback identity. It is compared by object identity, so that no client can claim it by name."""


def identity_from_subject(common_name: str, organizations: tuple[str, ...]) -> Identity:
    """Return the identity in a client certificate: its common name, with its organizations as groups."""
    return Identity(common_name, (*organizations, _AUTHENTICATED))
