"""How API servers are told where to ask: the ValidatingWebhookConfiguration of some checks."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from lamina.core.admission import Absence, Check
from lamina.errors import SettingsError
from lamina.objects.types import Made

NAME = "lamina-manifestwork"
_PORT = 443


class Way(Struct, frozen=True, kw_only=True):
    """
    How a server gets here: to a URL that paths are added to, or to a service.

    `authority` is what leads to trust in whoever answers, in PEM. Unless it is
    `apart`, the server is this very process: nobody is ever away, and what it
    leaves behind must be in nobody's way when it is started without us.
    """

    url: str = ""
    namespace: str = ""
    name: str = ""
    port: int = _PORT
    authority: bytes = b""
    apart: bool = True
    user: str = ""
    """Who we are to the server, where that is known: it need not ask about what we write ourselves."""

    @property
    def host(self) -> str:
        """Return the name that a certificate has to be for."""
        return urlsplit(self.url).hostname or "" if self.url else f"{self.name}.{self.namespace}.svc"

    def config(self, path: str) -> Made:
        """Return the client configuration of a webhook at a path."""
        bundle = {"caBundle": base64.b64encode(self.authority).decode()} if self.authority else {}
        if self.url:
            return {"url": self.at(path), **bundle}
        where = {"namespace": self.namespace, "name": self.name, "port": self.port, "path": path}
        return {"service": where, **bundle}

    def at(self, path: str) -> str:
        return f"{self.url.rstrip('/')}{path}"


def way(url: str, service: str) -> Way | None:
    """Return how a server gets here, as somebody said it: a URL, or NAMESPACE/NAME[:PORT]; None if nobody did."""
    if url and service:
        raise SettingsError("a webhook is at a URL or at a service", hint="give one of the two")
    if url:
        if not _is_good(url):
            raise SettingsError(
                f"{url!r} is no address of a webhook", hint="for example https://10.0.0.7:9443"
            )
        return Way(url=url)
    if not service:
        return None
    namespace, slash, rest = service.partition("/")
    name, colon, port = rest.partition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0 if colon else _PORT
    if not (namespace and slash and name and 0 < number < 65536):
        raise SettingsError(f"{service!r} is no service", hint="for example lamina-system/lamina:443")
    return Way(namespace=namespace, name=name, port=number)


def _is_good(url: str) -> bool:
    """Say whether something is the URL of a webhook, without what is added to it."""
    try:
        parts = urlsplit(url)
        is_somewhere = bool(parts.hostname) and parts.port != 0
    except ValueError:
        # Such as a port that is none, or an address in brackets that are not closed.
        return False
    return parts.scheme == "https" and is_somewhere and not (parts.query or parts.fragment)


def configuration(checks: Sequence[Check], way: Way) -> Made:
    """Return what has a server ask about writes."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/managed-by": "lamina"}},
        "webhooks": [_webhook(check, way) for check in checks],
    }


def _webhook(check: Check, way: Way) -> Made:
    conditions = [dict(one) for one in check.conditions] if way.apart else []
    if way.apart and way.user and check.ours:
        ours = f"request.userInfo.username == {json.dumps(way.user)} && {check.ours}"
        conditions.append({"name": "is-not-ours", "expression": f"!({ours})"})
    # Judging asks who may do what and writes nothing, so a dry run can be judged too.
    return {
        "name": check.name,
        "clientConfig": way.config(check.path),
        "rules": [dict(rule) for rule in check.rules],
        "failurePolicy": str(check.absence if way.apart else Absence.LETS_PASS),
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": check.seconds,
        "admissionReviewVersions": ["v1"],
        **({"matchConditions": conditions} if conditions else {}),
    }
