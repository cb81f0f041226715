"""The ValidatingWebhookConfigurations of admission checks."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from lamina.core.admission import AdmissionCheck, FailurePolicy
from lamina.errors import SettingsError
from lamina.objects.types import Made

_PORT = 443


class WebhookEndpoint(Struct, frozen=True, kw_only=True):
    """
    Where an API server reaches the webhook: a URL that paths are appended to, or a Service.

    `authority` is the CA bundle, in PEM. Unless it is `apart`, the server is in this
    process: the webhook is always available, and the configuration must not block
    writes when the server is started later without it.
    """

    url: str = ""
    namespace: str = ""
    name: str = ""
    port: int = _PORT
    authority: bytes = b""
    apart: bool = True
    user: str = ""
    """Our username at the server, if known: our own writes are not sent to the webhook."""

    @property
    def host(self) -> str:
        """Return the host name that the serving certificate must be valid for."""
        return urlsplit(self.url).hostname or "" if self.url else f"{self.name}.{self.namespace}.svc"

    def config(self, path: str) -> Made:
        """Return the clientConfig of a webhook at a path."""
        bundle = {"caBundle": base64.b64encode(self.authority).decode()} if self.authority else {}
        if self.url:
            return {"url": self.at(path), **bundle}
        service_ref = {"namespace": self.namespace, "name": self.name, "port": self.port, "path": path}
        return {"service": service_ref, **bundle}

    def at(self, path: str) -> str:
        return f"{self.url.rstrip('/')}{path}"


def webhook_endpoint(url: str, service: str) -> WebhookEndpoint | None:
    """Return the endpoint that the flags name: a URL, or NAMESPACE/NAME[:PORT]; None if both are empty."""
    if url and service:
        raise SettingsError("a webhook has a URL or a service, not both", hint="give one of the two")
    if url:
        if not _is_url(url):
            raise SettingsError(f"{url!r} is no webhook URL", hint="for example https://10.0.0.7:9443")
        return WebhookEndpoint(url=url)
    if not service:
        return None
    namespace, slash, rest = service.partition("/")
    name, colon, port = rest.partition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0 if colon else _PORT
    if not (namespace and slash and name and 0 < number < 65536):
        raise SettingsError(f"{service!r} is no service", hint="for example lamina-system/lamina:443")
    return WebhookEndpoint(namespace=namespace, name=name, port=number)


def _is_url(url: str) -> bool:
    """Return whether a string is a valid base URL of a webhook."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        # Such as an invalid port, or an address in brackets that are not closed.
        return False
    return parts.scheme == "https" and has_host and not (parts.query or parts.fragment)


def configurations(checks: Sequence[AdmissionCheck], endpoint: WebhookEndpoint) -> tuple[Made, ...]:
    """Return the ValidatingWebhookConfigurations, one for all checks that name the same one."""
    return tuple(
        _configuration(name, [check for check in checks if check.configuration == name], endpoint)
        for name in dict.fromkeys(check.configuration for check in checks)
    )


def _configuration(name: str, checks: Sequence[AdmissionCheck], endpoint: WebhookEndpoint) -> Made:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "lamina"}},
        "webhooks": [_webhook(check, endpoint) for check in checks],
    }


def _webhook(check: AdmissionCheck, endpoint: WebhookEndpoint) -> Made:
    conditions = [dict(one) for one in check.conditions] if endpoint.apart else []
    if endpoint.apart and endpoint.user and check.ours:
        ours = f"request.userInfo.username == {json.dumps(endpoint.user)} && {check.ours}"
        conditions.append({"name": "is-not-ours", "expression": f"!({ours})"})
    # Checks only create access reviews and store nothing, so a dry run is checked too.
    return {
        "name": check.name,
        "clientConfig": endpoint.config(check.path),
        "rules": [dict(rule) for rule in check.rules],
        "failurePolicy": str(check.absence if endpoint.apart else FailurePolicy.LETS_PASS),
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": check.seconds,
        "admissionReviewVersions": ["v1"],
        **({"matchConditions": conditions} if conditions else {}),
    }
