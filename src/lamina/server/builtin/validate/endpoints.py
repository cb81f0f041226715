"""Where the pods behind a Service are: Endpoints and EndpointSlices."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.addresses import (
    address,
    check_address,
    check_canonical,
    check_endpoint,
)
from lamina.server.builtin.validate.parts import (
    PROTOCOLS,
    chosen,
    count,
    items,
    part,
    port,
    ruled,
    text,
)
from lamina.server.fields import (
    duplicate,
    immutable,
    invalid,
    is_same,
    required,
    too_many,
)
from lamina.server.metadata import check_labels

_TYPES = ("FQDN", "IPv4", "IPv6")


def endpoints(obj: Obj) -> list[Cause]:
    said: list[Cause] = []
    for index, subset in enumerate(items(obj, "subsets")):
        here = f"subsets[{index}]"
        if not items(subset, "addresses") and not items(subset, "notReadyAddresses"):
            said.append(required(here, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for at, one in enumerate(items(subset, field)):
                said += _address(one, f"{here}.{field}[{at}]")
        ports = items(subset, "ports")
        for at, one in enumerate(ports):
            said += _port(one, f"{here}.ports[{at}]", named=len(ports) > 1)
    return said


def endpoints_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return [] if is_same(new.get("subsets"), old.get("subsets")) else endpoints(new)


def _address(one: Obj, path: str) -> list[Cause]:
    said = check_address(f"{path}.ip", text(one, "ip"))
    if host := text(one, "hostname"):
        said += ruled(f"{path}.hostname", host, names.label)
    if (node := one.get("nodeName")) is not None:
        said += ruled(f"{path}.nodeName", node, names.subdomain)
    return said + check_endpoint(f"{path}.ip", text(one, "ip"))


def _port(one: Obj, path: str, *, named: bool) -> list[Cause]:
    said: list[Cause] = []
    if name := text(one, "name"):
        said += ruled(f"{path}.name", name, names.label)
    elif named:
        said.append(required(f"{path}.name"))
    said += port(f"{path}.port", count(one, "port"))
    said += chosen(f"{path}.protocol", one.get("protocol"), PROTOCOLS)
    if (protocol := one.get("appProtocol")) is not None:
        said += ruled(f"{path}.appProtocol", protocol, names.qualified)
    return said


def endpoint_slice(obj: Obj) -> list[Cause]:
    return _slice(obj) + _slice_endpoints(obj)


def _slice(obj: Obj) -> list[Cause]:
    return chosen("addressType", text(obj, "addressType"), _TYPES) + _slice_ports(items(obj, "ports"))


def endpoint_slice_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    said = _slice(new)
    if not is_same(new.get("endpoints"), old.get("endpoints")):
        said += _slice_endpoints(new)
    return said + immutable("addressType", text(new, "addressType"), text(old, "addressType"))


def _slice_ports(ports: Sequence[Obj]) -> list[Cause]:
    if len(ports) > 20000:
        return [too_many("ports", len(ports), 20000)]
    said: list[Cause] = []
    seen: set[str] = set()
    for index, one in enumerate(ports):
        here = f"ports[{index}]"
        name = text(one, "name")
        if name:
            said += ruled(f"{here}.name", name, names.label)
        if name in seen:
            said.append(duplicate(f"{here}.name", name))
        seen.add(name)
        said += chosen(f"{here}.protocol", one.get("protocol"), PROTOCOLS)
        if (protocol := one.get("appProtocol")) is not None:
            said += ruled(f"{here}.appProtocol", protocol, names.qualified)
    return said


def _slice_endpoints(obj: Obj) -> list[Cause]:
    found = items(obj, "endpoints")
    if len(found) > 1000:
        return [too_many("endpoints", len(found), 1000)]
    said: list[Cause] = []
    for index, one in enumerate(found):
        here = f"endpoints[{index}]"
        addresses = items(one, "addresses")
        if not addresses:
            said.append(required(f"{here}.addresses", "must contain at least 1 address"))
        elif len(addresses) > 100:
            said.append(too_many(f"{here}.addresses", len(addresses), 100))
        for at, where in enumerate(addresses):
            said += _slice_address(where, text(obj, "addressType"), f"{here}.addresses", at)
        if (node := one.get("nodeName")) is not None:
            said += ruled(f"{here}.nodeName", node, names.subdomain)
        topology = part(one, "deprecatedTopology")
        if len(topology) > 16:
            said.append(too_many(f"{here}.deprecatedTopology", len(topology), 16))
        said += check_labels(topology, f"{here}.deprecatedTopology")
        if (host := one.get("hostname")) is not None:
            said += ruled(f"{here}.hostname", host, names.label)
        said += _hints(part(one, "hints"), f"{here}.hints")
    return said


def _slice_address(one: str, kind: str, path: str, index: int) -> list[Cause]:
    here = f"{path}[{index}]"
    if kind == "FQDN":
        return _domain(one, here)
    if kind not in {"IPv4", "IPv6"}:
        return []
    if said := check_address(here, one) if kind == "IPv4" else check_canonical(here, one):
        return said
    parsed = address(one)
    if parsed is not None and f"IPv{parsed.version}" != kind:
        said.append(invalid(path, one, f"must be an {kind} address"))
    return said + check_endpoint(here, one)


def _domain(name: str, path: str) -> list[Cause]:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if wrong := names.subdomain(name):
        return [invalid(path, name, ",".join(wrong))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        if wrong := names.label(label):
            return [invalid(path, label, ",".join(wrong))]
    return []


def _hints(hints: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    for field, rule in (("forZones", names.label_value), ("forNodes", names.subdomain)):
        found = [text(one, "name") for one in items(hints, field)]
        if len(found) > 8:
            return [*said, too_many(f"{path}.{field}", len(found), 8)]
        for index, name in enumerate(found):
            here = f"{path}.{field}[{index}].name"
            if name in found[:index]:
                said.append(duplicate(here, name))
            said += ruled(here, name, rule)
    return said
