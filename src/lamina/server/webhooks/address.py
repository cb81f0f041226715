"""
Where a webhook is reached: at a URL, or at a service.

There is no network between services here. One with a name elsewhere is that
name; any other is reached at an address that one of its endpoints has, so that
what runs outside can stand behind a service.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from lamina.objects.printing import quoted
from lamina.objects.types import Obj
from lamina.server.records import Records

_SERVICES, _ENDPOINTS = "services", "endpoints"


class NoWay(Exception):
    """There is nothing at the address of a webhook."""


class Address(Struct, frozen=True):
    """Where to go, what the certificate found there has to be for, and what all of it is called in a message."""

    url: str
    server: str
    shown: str


def address(config: Obj, records: Records, seconds: int) -> Address:
    """Return where a webhook is reached; raises NoWay where it is not."""
    query = f"timeout={seconds}s"
    if url := config.get("url"):
        parts = urlsplit(url)
        whole = urlunsplit(parts._replace(query="&".join(one for one in (parts.query, query) if one)))
        return Address(whole, "", whole)
    service = config.get("service") or {}
    namespace, name = service.get("namespace") or "", service.get("name") or ""
    port, path = service.get("port") or 443, service.get("path") or "/"
    known = f"{name}.{namespace}.svc"
    host = _host(records, namespace, name, int(port))
    rest = f"{path if path.startswith('/') else f'/{path}'}?{query}"
    return Address(f"https://{host}{rest}", known, f"https://{known}:{port}{rest}")


def _host(records: Records, namespace: str, name: str, port: int) -> str:
    service = records.get(_SERVICES, namespace, name)
    if service is None:
        raise NoWay(f"service {quoted(name)} not found")
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return f"{spec.get('externalName')}:{port}"
    offered = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
    if offered is None:
        raise NoWay(f"no service port {port} found for service {quoted(name)}")
    endpoints = records.get(_ENDPOINTS, namespace, name) or {}
    for subset in endpoints.get("subsets") or ():
        number = _number(subset, offered)
        for one in subset.get("addresses") or ():
            if number is not None:
                ip = one["ip"]
                return f"[{ip}]:{number}" if ":" in ip else f"{ip}:{number}"
    raise NoWay(f"no endpoints available for service {quoted(name)}")


def _number(subset: Obj, offered: Obj) -> Any:
    """Return the port of some endpoints that a port of their service leads to."""
    ports = subset.get("ports") or ()
    named = [one for one in ports if (one.get("name") or "") == (offered.get("name") or "")]
    return named[0].get("port") if named else None
