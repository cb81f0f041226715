"""
Authentication and authorization.

A client certificate or a bearer token authenticates a user, who may then do everything. An invalid token is
rejected. Requests without credentials are anonymous: they may read health and version, and get
kube-apiserver's 403 for anything else.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import unquote

from lamina.errors import BadRequest, Forbidden, Unauthorized
from lamina.objects.api_paths import Path
from lamina.objects.field_selectors import parse_field_selector
from lamina.objects.go_quote import quoted
from lamina.server.http.request import Request
from lamina.server.identity import ANONYMOUS, Identity

_PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_EXTRA_SPACE = (
    "the provided Authorization header contains extra space before the bearer token, and is ignored"
)


class Authenticator:
    """Authenticates by bearer token, or by a client certificate that TLS has verified."""

    def __init__(self, tokens: Mapping[str, Identity]) -> None:
        self._tokens = {token.encode(): user for token, user in tokens.items()}
        # The usual spelling of the header. A dict lookup leaks nothing through timing: it compares the token
        # only with an entry of the same keyed hash.
        self._by_header = {f"Bearer {token}": user for token, user in tokens.items()}

    def authenticate(self, request: Request, client_identity: Identity | None = None) -> Identity:
        """
        Return the user of a request; raises Unauthorized for an unknown token.

        A client certificate takes precedence. Other authorization schemes are ignored, and a request
        without credentials is anonymous.
        """
        if client_identity is not None:
            return client_identity
        authorization = request.headers.get("authorization")
        if authorization is None:
            return ANONYMOUS
        if (user := self._by_header.get(authorization)) is not None:
            return user
        parts = authorization.strip().split(" ", 2)
        if len(parts) < 2 or parts[0].lower() != "bearer":
            return ANONYMOUS
        if not parts[1]:
            request.warn(_EXTRA_SPACE)
            return ANONYMOUS
        user = self.bearer(parts[1])
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def bearer(self, token: str) -> Identity | None:
        """Return the user of a token, None if it is unknown."""
        # Every token is compared in constant time, so that timing reveals nothing.
        found = None
        given = token.encode("utf-8", "replace")
        for known, user in self._tokens.items():
            if hmac.compare_digest(known, given):
                found = user
        return found


def authorize(request: Request, path: Path | None) -> None:
    """Raise Forbidden for an anonymous request, except to health and version; `path` is the parsed path."""
    if request.user is not ANONYMOUS:
        return
    if path is not None:
        raise _resource_forbidden(request, path)
    if request.method != "GET" or request.path not in _PUBLIC_PATHS:
        raise _path_forbidden(request)


def _path_forbidden(request: Request) -> Forbidden:
    verb, path = request.method.lower(), quoted(unquote(request.path))
    error = Forbidden(f"forbidden: User {quoted(request.user.name)} cannot {verb} path {path}")
    error.shows_details = True
    return error


def _resource_forbidden(request: Request, path: Path) -> Forbidden:
    verb = "watch" if path.watch else _VERBS.get(request.method, "")
    name = path.name
    if not name and verb == "get":
        verb = "watch" if request.flag("watch") else "list"
        name = _selected_name(request)
    elif not name and verb == "delete":
        verb = "deletecollection"
    # kube-apiserver reports a namespace as being in itself.
    namespace = path.name if path.plural == "namespaces" else path.namespace
    resource = "/".join(filter(None, (path.plural, path.subresource.partition("/")[0])))
    place = f"in the namespace {quoted(namespace)}" if namespace else "at the cluster scope"
    what = f"{path.plural}.{path.group}" if path.group else path.plural
    details = {"name": name, "group": path.group, "kind": path.plural}
    if name:
        what = f"{what} {quoted(name)}"
    return Forbidden(
        f"{what} is forbidden: User {quoted(request.user.name)} cannot {verb} resource {quoted(resource)} "
        f"in API group {quoted(path.group)} {place}",
        details={key: value for key, value in details.items() if value},
    )


def _selected_name(request: Request) -> str:
    """Return the name that a field selector restricts a list to, or an empty string."""
    try:
        return parse_field_selector(request.parameter("fieldSelector")).exact("metadata.name") or ""
    except BadRequest:
        return ""
