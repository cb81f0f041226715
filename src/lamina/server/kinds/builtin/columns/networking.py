"""Table rows of networking kinds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from lamina.objects.types import Obj
from lamina.server.kinds.builtin.columns.cells import NONE, UNSET, age, first_few, labels, name_of, selector
from lamina.server.kinds.builtin.validate.parts import count, items, part, text


def service(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    addresses = items(spec, "clusterIPs")
    return [
        name_of(obj),
        text(spec, "type"),
        addresses[0] if addresses else NONE,
        _external(spec, part(obj, "status")),
        ",".join(map(_port, items(spec, "ports"))) or NONE,
        age(obj, now),
        labels(spec.get("selector")),
    ]


def _port(port: Obj) -> str:
    number, on_nodes = count(port, "port"), count(port, "nodePort")
    return (
        f"{number}:{on_nodes}/{text(port, 'protocol')}" if on_nodes else f"{number}/{text(port, 'protocol')}"
    )


def _external(spec: Obj, status: Obj) -> str:
    given = items(spec, "externalIPs")
    match text(spec, "type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join([*_balancers(status), *given]) or "<pending>"
        case "ExternalName":
            return text(spec, "externalName")
        case _:
            return "<unknown>"


def _balancers(status: Obj) -> list[str]:
    found = items(part(status, "loadBalancer"), "ingress")
    return sorted({text(one, "ip") or text(one, "hostname") for one in found} - {""})


def endpoints(obj: Obj, now: datetime) -> list[Any]:
    found = list(_endpoints(items(obj, "subsets")))
    return [name_of(obj), first_few(found, 3, len(found)) if items(obj, "subsets") else NONE, age(obj, now)]


def _endpoints(subsets: Iterable[Obj]) -> Iterable[str]:
    for subset in subsets:
        addresses = [text(one, "ip") for one in items(subset, "addresses")]
        ports = items(subset, "ports")
        if not ports:
            yield from addresses
        for port in ports:
            number = count(port, "port")
            yield from (f"[{one}]:{number}" if ":" in one else f"{one}:{number}" for one in addresses)


def endpoint_slice(obj: Obj, now: datetime) -> list[Any]:
    ports = [_slice_port(one) for one in items(obj, "ports")]
    found = [address for one in items(obj, "endpoints") for address in items(one, "addresses")]
    return [
        name_of(obj),
        text(obj, "addressType"),
        first_few(ports, 3, len(ports)) or UNSET,
        first_few(found, 3, len(found)) or UNSET,
        age(obj, now),
    ]


def _slice_port(port: Obj) -> str:
    number, name = port.get("port"), port.get("name")
    if number is not None:
        return str(number)
    return "*" if name is None else name


def ingress(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        spec.get("ingressClassName") or NONE,
        _hosts(items(spec, "rules")),
        ",".join(_balancers(part(obj, "status"))),
        "80, 443" if items(spec, "tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: Any) -> str:
    shown: list[str] = []
    for rule in rules:
        if len(shown) == 3:
            return f"{','.join(shown)} + {len(rules) - 3} more..."
        if host := text(rule, "host"):
            shown.append(host)
    return ",".join(shown) or "*"


def ingress_class(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    shown, ref = NONE, spec.get("parameters")
    if ref is not None:
        group = ref.get("apiGroup")
        kind = text(ref, "kind") if group is None else f"{text(ref, 'kind')}.{group}"
        shown = f"{kind}/{text(ref, 'name')}"
    return [name_of(obj), text(spec, "controller"), shown, age(obj, now)]


def network_policy(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), selector(part(obj, "spec").get("podSelector") or {}), age(obj, now)]
