"""Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, immutable, invalid, is_same, required, too_many
from lamina.server.kinds.builtin.validate.addresses import (
    address,
    check_address,
    check_canonical,
    check_endpoint,
)
from lamina.server.kinds.builtin.validate.parts import (
    PROTOCOLS,
    chosen,
    count,
    items,
    part,
    port,
    ruled,
    text,
)
from lamina.server.kinds.metadata import check_labels

_TYPES = ("FQDN", "IPv4", "IPv6")


def endpoints(obj: Obj) -> list[Cause]:
    causes: list[Cause] = []
    for index, subset in enumerate(items(obj, "subsets")):
        item_path = f"subsets[{index}]"
        if not items(subset, "addresses") and not items(subset, "notReadyAddresses"):
            causes.append(required(item_path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for at, one in enumerate(items(subset, field)):
                causes += _address(one, f"{item_path}.{field}[{at}]")
        ports = items(subset, "ports")
        for at, one in enumerate(ports):
            causes += _port(one, f"{item_path}.ports[{at}]", named=len(ports) > 1)
    return causes


def endpoints_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return [] if is_same(new.get("subsets"), old.get("subsets")) else endpoints(new)


def _address(one: Obj, path: str) -> list[Cause]:
    causes = check_address(f"{path}.ip", text(one, "ip"))
    if host := text(one, "hostname"):
        causes += ruled(f"{path}.hostname", host, names.label)
    if (node := one.get("nodeName")) is not None:
        causes += ruled(f"{path}.nodeName", node, names.subdomain)
    return causes + check_endpoint(f"{path}.ip", text(one, "ip"))


def _port(one: Obj, path: str, *, named: bool) -> list[Cause]:
    causes: list[Cause] = []
    if name := text(one, "name"):
        causes += ruled(f"{path}.name", name, names.label)
    elif named:
        causes.append(required(f"{path}.name"))
    causes += port(f"{path}.port", count(one, "port"))
    causes += chosen(f"{path}.protocol", one.get("protocol"), PROTOCOLS)
    if (protocol := one.get("appProtocol")) is not None:
        causes += ruled(f"{path}.appProtocol", protocol, names.qualified)
    return causes


def endpoint_slice(obj: Obj) -> list[Cause]:
    return _slice(obj) + _slice_endpoints(obj)


def _slice(obj: Obj) -> list[Cause]:
    return chosen("addressType", text(obj, "addressType"), _TYPES) + _slice_ports(items(obj, "ports"))


def endpoint_slice_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes = _slice(new)
    if not is_same(new.get("endpoints"), old.get("endpoints")):
        causes += _slice_endpoints(new)
    return causes + immutable("addressType", text(new, "addressType"), text(old, "addressType"))


def _slice_ports(ports: Sequence[Obj]) -> list[Cause]:
    if len(ports) > 20000:
        return [too_many("ports", len(ports), 20000)]
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, one in enumerate(ports):
        item_path = f"ports[{index}]"
        name = text(one, "name")
        if name:
            causes += ruled(f"{item_path}.name", name, names.label)
        if name in seen:
            causes.append(duplicate(f"{item_path}.name", name))
        seen.add(name)
        causes += chosen(f"{item_path}.protocol", one.get("protocol"), PROTOCOLS)
        if (protocol := one.get("appProtocol")) is not None:
            causes += ruled(f"{item_path}.appProtocol", protocol, names.qualified)
    return causes


def _slice_endpoints(obj: Obj) -> list[Cause]:
    found = items(obj, "endpoints")
    if len(found) > 1000:
        return [too_many("endpoints", len(found), 1000)]
    causes: list[Cause] = []
    for index, one in enumerate(found):
        item_path = f"endpoints[{index}]"
        addresses = items(one, "addresses")
        if not addresses:
            causes.append(required(f"{item_path}.addresses", "must contain at least 1 address"))
        elif len(addresses) > 100:
            causes.append(too_many(f"{item_path}.addresses", len(addresses), 100))
        for at, where in enumerate(addresses):
            causes += _slice_address(where, text(obj, "addressType"), f"{item_path}.addresses", at)
        if (node := one.get("nodeName")) is not None:
            causes += ruled(f"{item_path}.nodeName", node, names.subdomain)
        topology = part(one, "deprecatedTopology")
        if len(topology) > 16:
            causes.append(too_many(f"{item_path}.deprecatedTopology", len(topology), 16))
        causes += check_labels(topology, f"{item_path}.deprecatedTopology")
        if (host := one.get("hostname")) is not None:
            causes += ruled(f"{item_path}.hostname", host, names.label)
        causes += _hints(part(one, "hints"), f"{item_path}.hints")
    return causes


def _slice_address(one: str, kind: str, path: str, index: int) -> list[Cause]:
    item_path = f"{path}[{index}]"
    if kind == "FQDN":
        return _domain(one, item_path)
    if kind not in {"IPv4", "IPv6"}:
        return []
    if causes := check_address(item_path, one) if kind == "IPv4" else check_canonical(item_path, one):
        return causes
    parsed = address(one)
    if parsed is not None and f"IPv{parsed.version}" != kind:
        causes.append(invalid(path, one, f"must be an {kind} address"))
    return causes + check_endpoint(item_path, one)


def _domain(name: str, path: str) -> list[Cause]:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if problem := names.subdomain(name):
        return [invalid(path, name, ",".join(problem))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        if problem := names.label(label):
            return [invalid(path, label, ",".join(problem))]
    return []


def _hints(hints: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for field, rule in (("forZones", names.label_value), ("forNodes", names.subdomain)):
        found = [text(one, "name") for one in items(hints, field)]
        if len(found) > 8:
            return [*causes, too_many(f"{path}.{field}", len(found), 8)]
        for index, name in enumerate(found):
            item_path = f"{path}.{field}[{index}].name"
            if name in found[:index]:
                causes.append(duplicate(item_path, name))
            causes += ruled(item_path, name, rule)
    return causes
