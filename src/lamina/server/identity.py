"""
Who asks, and whether anonymous callers may.

A client certificate or a bearer token says who it is; a wrong token is refused
rather than taken for nobody. Whoever is known may do everything; nobody may
see health and version, and is told what it may not do as a real server tells it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import unquote

from lamina.errors import BadRequest, Forbidden, Unauthorized
from lamina.objects.field_selectors import parse_field_selector
from lamina.objects.printing import quoted
from lamina.server.request import ANONYMOUS, Identity, Request
from lamina.server.routes import Path

_OPEN = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_AUTHENTICATED = "system:authenticated"
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_SPACED = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class Authenticator:
    """Knows tokens, and believes certificates that TLS has already verified."""

    def __init__(self, tokens: Mapping[str, Identity]) -> None:
        self._tokens = {token.encode(): who for token, who in tokens.items()}
        # As nearly everybody says it. A look into a dict tells nothing by its
        # timing: it compares what has the same keyed hash, and that is the token.
        self._said = {f"Bearer {token}": who for token, who in tokens.items()}

    def identify(self, request: Request, certified: Identity | None = None) -> Identity:
        """
        Return who a request is from; raises Unauthorized for a token that is not ours.

        A certificate goes first. Any other kind of Authorization says nothing
        here, and whoever has none of these is nobody in particular.
        """
        if certified is not None:
            return certified
        authorization = request.headers.get("authorization")
        if authorization is None:
            return ANONYMOUS
        if (known := self._said.get(authorization)) is not None:
            return known
        words = authorization.strip().split(" ", 2)
        if len(words) < 2 or words[0].lower() != "bearer":
            return ANONYMOUS
        if not words[1]:
            request.warn(_SPACED)
            return ANONYMOUS
        who = self.bearer(words[1])
        if who is None:
            raise Unauthorized("Unauthorized")
        return who

    def bearer(self, token: str) -> Identity | None:
        """Return whose token this is, None if it is not ours."""
        # Every token is compared, in constant time each, so that timing tells nothing.
        found = None
        given = token.encode("utf-8", "replace")
        for known, who in self._tokens.items():
            if hmac.compare_digest(known, given):
                found = who
        return found


def from_subject(common_name: str, organizations: tuple[str, ...]) -> Identity:
    """Return the identity a client certificate stands for: its common name, and its organizations as groups."""
    return Identity(common_name, (*organizations, _AUTHENTICATED))


def authorise(request: Request, path: Path | None) -> None:
    """Let known users pass, and nobody in particular see health and version; `path` is the request's, taken apart."""
    if request.user is not ANONYMOUS:
        return
    if path is not None:
        raise _resource_forbidden(request, path)
    if request.method != "GET" or request.path not in _OPEN:
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
        name = _selected(request)
    elif not name and verb == "delete":
        verb = "deletecollection"
    # Of a namespace itself a real server says that it is in that namespace.
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


def _selected(request: Request) -> str:
    """Return the one name that a list is about, if it is about one."""
    try:
        return parse_field_selector(request.parameter("fieldSelector")).exact("metadata.name") or ""
    except BadRequest:
        return ""
