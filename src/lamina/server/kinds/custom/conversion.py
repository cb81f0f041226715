"""
Validation of a CRD's conversion: strategy None, or a webhook.

Paths in messages are those of the internal version, in which the webhook's fields are
beside the strategy.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.objects.urls import BadUrl, parse
from lamina.server.field_errors import forbidden, invalid, not_supported, required

_PATH: Final = "spec.conversion"
_REVIEWS: Final = ("v1", "v1beta1")
_BLOCK: Final = re.compile(
    rb"^-----BEGIN ([^\n-]+)-----[ \t\r]*\n((?:[A-Za-z0-9+/= \t\r\n])*?)-----END \1-----", re.MULTILINE
)
_FORM: Final = "; desired format: https://host[/path]"


def validate_conversion(crd: Obj, old: Obj | None, *, was_established: bool) -> list[Cause]:
    """Return the errors of the conversion of a CRD."""
    return list(_conversion(crd["spec"], old, was_established))


def has_invalid_bundle(crd: Obj) -> bool:
    """Return whether the CA bundle of a CRD's webhook is invalid."""
    return bundle_problem(_bundle(crd.get("spec") or {})) is not None


def _conversion(spec: Mapping[str, Any], old: Obj | None, was_established: bool) -> Iterator[Cause]:
    conversion = spec.get("conversion")
    if conversion is None:
        return
    strategy = conversion.get("strategy") or ""
    if strategy != "None" and spec.get("preserveUnknownFields"):
        detail = "must be None if spec.preserveUnknownFields is true"
        yield invalid(f"{_PATH}.strategy", strategy, detail)
    if not strategy:
        yield required(f"{_PATH}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported(f"{_PATH}.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield forbidden(f"{_PATH}.webhookClientConfig", detail)
        if reviews:
            yield forbidden(f"{_PATH}.conversionReviewVersions", detail)
        return
    where = f"{_PATH}.webhookClientConfig"
    if client is None:
        yield required(where, "required when strategy is set to Webhook")
    else:
        yield from _client(client, where)
        lenient = not was_established or (old is not None and has_invalid_bundle(old))
        problem = None if lenient else bundle_problem(client.get("caBundle"))
        if problem is not None:
            yield invalid(f"{where}.caBundle", client["caBundle"], problem)
    yield from _reviews(reviews, f"{_PATH}.conversionReviewVersions")


def _client(client: Mapping[str, Any], path: str) -> Iterator[Cause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, f"{path}.url")
    elif service is not None:
        yield from _service(service, f"{path}.service")


def _url(text: str, path: str) -> Iterator[Cause]:
    try:
        url = parse(text)
    except BadUrl as problem:
        yield required(path, f"url must be a valid URL: {problem}{_FORM}")
        return
    if url.scheme != "https":
        yield invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not url.host:
        yield invalid(path, url.host, f"host must be specified{_FORM}")
    if url.user is not None:
        yield invalid(path, url.user, "user information is not permitted in the URL")
    if url.fragment:
        yield invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield invalid(path, url.query, "query parameters are not permitted in the URL")


def _service(service: Mapping[str, Any], path: str) -> Iterator[Cause]:
    # kube-apiserver confuses the two: a missing namespace is reported as a missing name, and vice versa.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, f"port is not valid: {names.inclusive_range_error(1, 65535)}")
    route = service.get("path") or ""
    if route in ("", "/"):
        return
    where = f"{path}.path"
    if route == "//":
        yield invalid(where, route, "segment[0] may not be empty")
        return
    if not route.startswith("/"):
        yield invalid(where, route, "must start with a '/'")
    for index, step in enumerate(route[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(where, route, f"segment[{index}] may not be empty")
            continue
        for complaint in names.subdomain(step):
            yield invalid(where, route, f"segment[{index}]: {complaint}")


def _reviews(versions: list[str], path: str) -> Iterator[Cause]:
    if not versions:
        yield required(path)
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for complaint in names.label_1035(version):
            yield invalid(f"{path}[{index}]", version, complaint)
    if not seen.intersection(_REVIEWS):
        yield invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")


def _bundle(spec: Mapping[str, Any]) -> str | None:
    webhook = (spec.get("conversion") or {}).get("webhook") or {}
    bundle: str | None = (webhook.get("clientConfig") or {}).get("caBundle")
    return bundle


def bundle_problem(encoded: str | None) -> str | None:
    """Return why a CA bundle is invalid; None if it is valid or absent."""
    if not encoded:
        return None
    data = base64.b64decode(encoded)
    problem = "no valid certificate authority data seen"
    if b"CERTIFICATE" in data:
        # Imported here because it loads slowly and few CRDs have a bundle.
        from cryptography import x509
    blocks = list(_BLOCK.finditer(data))
    if not blocks:
        problem = "unable to parse bytes as PEM block"
    for block in blocks:
        if block.group(1) != b"CERTIFICATE":
            continue
        try:
            x509.load_der_x509_certificate(base64.b64decode(block.group(2)))
        except (ValueError, binascii.Error):
            problem = "failed to parse certificate: x509: malformed certificate"
        else:
            return None
    return f"unable to load root certificates: {problem}"
