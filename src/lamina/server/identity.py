"""
Who asks, and whether anonymous callers may.

A bearer token or a client certificate says who it is; a wrong one is refused
rather than taken for nobody. Whoever is known may do everything; nobody may
see health and version.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from lamina.errors import Forbidden, Unauthorized
from lamina.server.request import ANONYMOUS, Identity, Request

_OPEN = ("/healthz", "/livez", "/readyz", "/version")
_AUTHENTICATED = "system:authenticated"


class Authenticator:
    """Knows tokens, and reads certificates that TLS has already verified."""

    def __init__(self, tokens: Mapping[str, Identity]) -> None:
        self._tokens = {token.encode(): who for token, who in tokens.items()}

    def identify(self, authorization: str, certified: Identity | None) -> Identity:
        """Return who a request is from; raises Unauthorized for credentials that are not ours."""
        if authorization:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() == "bearer" and token:
                return self._by_token(token.strip().encode())
            if scheme.lower() != "basic":
                return certified or ANONYMOUS
            raise Unauthorized("Unauthorized")
        return certified or ANONYMOUS

    def _by_token(self, token: bytes) -> Identity:
        # Every token is compared, in constant time each, so that timing tells nothing.
        found = None
        for known, who in self._tokens.items():
            if hmac.compare_digest(known, token):
                found = who
        if found is None:
            raise Unauthorized("Unauthorized")
        return found


def from_subject(common_name: str, organizations: tuple[str, ...]) -> Identity:
    """Return the identity a client certificate stands for: its common name, and its organizations as groups."""
    return Identity(common_name, (*organizations, _AUTHENTICATED))


def authorise(request: Request) -> None:
    """Let known users pass; let nobody in particular see health and version; refuse the rest as a real server words it."""
    if request.user is not ANONYMOUS:
        return
    path = request.path.rstrip("/") or "/"
    if path.startswith(_OPEN) and any(path == one or path.startswith(f"{one}/") for one in _OPEN):
        return
    verb = request.method.lower()
    raise Forbidden(f'forbidden: User "{request.user.name}" cannot {verb} path "{request.path}"')
