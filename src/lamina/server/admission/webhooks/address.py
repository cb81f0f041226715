"""
The address of a webhook: a URL, or a Service.

There is no network between Services here. A Service of type ExternalName resolves to
that name; any other resolves to an address of one of its endpoints, which may be
outside the cluster.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from lamina.objects.go_quote import quoted
from lamina.objects.types import Obj
from lamina.server.admission.lister import AdmissionLister

_SERVICES, _ENDPOINTS = "services", "endpoints"


class Unresolved(Exception):
    """A webhook has no address."""


class Address(Struct, frozen=True):
    """Where to connect, the name to verify the certificate for, and the URL for messages."""

    url: str
    server: str
    shown: str


def resolve(config: Obj, lister: AdmissionLister, seconds: int) -> Address:
    """Return the address of a webhook; raises Unresolved if it has none."""
    query = f"timeout={seconds}s"
    if url := config.get("url"):
        parts = urlsplit(url)
        url = urlunsplit(parts._replace(query="&".join(one for one in (parts.query, query) if one)))
        return Address(url, "", url)
    service = config.get("service") or {}
    namespace, name = service.get("namespace") or "", service.get("name") or ""
    port, path = service.get("port") or 443, service.get("path") or "/"
    known = f"{name}.{namespace}.svc"
    host = _host(lister, namespace, name, int(port))
    rest = f"{path if path.startswith('/') else f'/{path}'}?{query}"
    return Address(f"https://{host}{rest}", known, f"https://{known}:{port}{rest}")


def _host(lister: AdmissionLister, namespace: str, name: str, port: int) -> str:
    service = lister.get(_SERVICES, namespace, name)
    if service is None:
        raise Unresolved(f"service {quoted(name)} not found")
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return f"{spec.get('externalName')}:{port}"
    service_port = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
    if service_port is None:
        raise Unresolved(f"no service port {port} found for service {quoted(name)}")
    endpoints = lister.get(_ENDPOINTS, namespace, name) or {}
    for subset in endpoints.get("subsets") or ():
        number = _number(subset, service_port)
        for one in subset.get("addresses") or ():
            if number is not None:
                ip = one["ip"]
                return f"[{ip}]:{number}" if ":" in ip else f"{ip}:{number}"
    raise Unresolved(f"no endpoints available for service {quoted(name)}")


def _number(subset: Obj, service_port: Obj) -> Any:
    """Return the port of an endpoint subset that a Service port maps to."""
    ports = subset.get("ports") or ()
    named = [one for one in ports if (one.get("name") or "") == (service_port.get("name") or "")]
    return named[0].get("port") if named else None
