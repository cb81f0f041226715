"""
Cluster IPs and node ports of Services.

The functions are stateless: the allocations of other Services are an argument, and the
Service gets what it lacks. On update, values that a client omits are kept.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from lamina.errors import InternalError, Invalid
from lamina.objects.types import Made, Obj
from lamina.server.field_errors import invalid
from lamina.server.kinds.builtin.defaults.networking import is_externally_accessible

Allocation = str | int
"""A cluster IP, or a node port."""


class Pool(NamedTuple):
    """The ranges of cluster IPs and node ports."""

    network: ipaddress.IPv4Network
    ports: range


POOL: Final = Pool(ipaddress.IPv4Network("10.96.0.0/12"), range(30000, 32768))


def allocated_by(service: Obj) -> set[Allocation]:
    """Return the cluster IPs and node ports of a Service."""
    spec = service.get("spec") or {}
    addresses = {address for address in spec.get("clusterIPs") or () if address not in ("", "None")}
    ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    check = {spec["healthCheckNodePort"]} if spec.get("healthCheckNodePort") else set()
    return addresses | ports | check


def allocate(
    service: Made,
    old: Obj | None,
    used: Collection[Allocation],
    *,
    pool: Pool = POOL,
    choose: Callable[[int], int] = random.randrange,
) -> None:
    """
    Allocate the cluster IPs and node ports that a Service needs and lacks.

    `used` are the allocations of other Services, `allocated_by` of each. `choose` returns
    a number below its argument. Raises Invalid if a requested value is not available.
    """
    set_families(service, old)
    spec = service["spec"]
    before: Obj = old["spec"] if old is not None else {}
    if spec["type"] != "ExternalName":
        _allocate_addresses(service, before, used, pool, choose)
    _allocate_ports(service, before, used, pool, choose)


def set_families(service: Made, old: Obj | None) -> None:
    """
    Set what does not depend on other Services, before allocation.

    Omitted allocations are kept, singular and plural fields are synchronized, and
    the IP families are set. It is idempotent. Raises Invalid for unsupported
    families.
    """
    spec = service["spec"]
    before: Obj = old["spec"] if old is not None else {}
    if old is not None:
        _keep_allocations(spec, before)
    _sync_addresses(spec, before if old is not None else None)
    _set_families(service, before)


def update_service(service: Made, old: Obj) -> None:
    """Keep allocations, and drop those that the new type does not use."""
    set_families(service, old)
    drop_obsolete(service, old)


def _keep_allocations(spec: Made, before: Obj) -> None:
    """Keep allocations that the new object omits."""
    if before.get("type") != "ExternalName" and spec["type"] != "ExternalName":
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if _has_node_ports(before) and _has_node_ports(spec):
        new_ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
        old_ports = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            known = old_ports.get(port.get("name", ""), 0)
            if not port.get("nodePort") and known and known not in new_ports:
                port["nodePort"] = known
    if _has_health_check(before) and _has_health_check(spec) and before.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _sync_addresses(spec: Made, before: Obj | None) -> None:
    """Synchronize `clusterIP` and `clusterIPs`; clients that know only the old field set both."""
    one, many = spec.get("clusterIP"), spec.get("clusterIPs")
    if before is None:
        if one and not many:
            spec["clusterIPs"] = [one]
        return
    old_address, old_addresses = before.get("clusterIP"), before.get("clusterIPs")
    if one == old_address:
        if old_addresses and not many:
            spec["clusterIPs"] = list(old_addresses)
    elif (many or []) == (old_addresses or []):
        if one:
            spec["clusterIPs"] = [one]
        else:
            spec.pop("clusterIPs", None)


def _set_families(service: Made, before: Obj) -> None:
    """Set the IP families; only IPv4 is allocated."""
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    is_unset = spec.get("clusterIP") == "None" and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        policy = before.get("ipFamilyPolicy") or ("RequireDualStack" if is_unset else "SingleStack")
        spec["ipFamilyPolicy"] = policy
    families = list(spec.get("ipFamilies") or ())
    for address in (spec.get("clusterIPs") or ())[len(families) :]:
        if address != "None":
            families.append("IPv6" if ":" in address else "IPv4")
    families = families or ["IPv4"]
    if is_unset:
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    else:
        _check_families(service, families)
    spec["ipFamilies"] = families


def _check_families(service: Made, families: list[str]) -> None:
    spec = service["spec"]
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        causes = "this cluster is not configured for dual-stack services"
        raise _refused(service, "spec.ipFamilyPolicy", spec["ipFamilyPolicy"], causes)
    for index, family in enumerate(families):
        if family != "IPv4":
            requested = index < len(spec.get("ipFamilies") or ())
            field, value = ("ipFamilies", family) if requested else ("clusterIPs", spec["clusterIPs"])
            causes = (
                "not configured on this cluster"
                if requested
                else f"{family} is not configured on this cluster"
            )
            raise _refused(service, f"spec.{field}[{index}]", value, causes)


def _allocate_addresses(
    service: Made, before: Obj, used: Collection[Allocation], pool: Pool, choose: Callable[[int], int]
) -> None:
    spec = service["spec"]
    addresses = list(spec.get("clusterIPs") or ())
    if addresses[:1] == ["None"] or (addresses and addresses == (before.get("clusterIPs") or [])):
        return
    if addresses and before.get("clusterIPs"):
        # Validation refuses a change of the address.
        return
    if addresses:
        _check_address(service, addresses[0], used, pool)
    else:
        addresses = [_free_address(used, pool, choose)]
    spec["clusterIPs"] = addresses
    spec["clusterIP"] = addresses[0]


def _check_address(service: Made, address: str, used: Collection[Allocation], pool: Pool) -> None:
    try:
        wanted = ipaddress.IPv4Address(address)
    except ValueError:
        # Validation refuses an empty address.
        return
    reason = ""
    if wanted not in pool.network:
        reason = (
            f"the provided IP ({address}) is not in the valid range. "
            f"The range of valid IPs is {pool.network.with_prefixlen}"
        )
    elif address in used:
        reason = "provided IP is already allocated"
    if reason:
        addresses = service["spec"]["clusterIPs"]
        raise _refused(service, "spec.clusterIPs", addresses, f"failed to allocate IP {address}: {reason}")


def _free_address(used: Collection[Allocation], pool: Pool, choose: Callable[[int], int]) -> str:
    """Return a free address, from a random start in the range that is not used for static ones."""
    size = pool.network.num_addresses
    reserved = min(max(16, size // 16), 256)
    upper = range(reserved, size - 1)
    lower = range(1, reserved)
    for part in (upper, lower):
        if not part:
            continue
        start = choose(len(part))
        for step in range(len(part)):
            address = str(pool.network[part[(start + step) % len(part)]])
            if address not in used:
                return address
    raise InternalError("Internal error occurred: failed to allocate a serviceIP: range is full")


def _allocate_ports(
    service: Made, before: Obj, used: Collection[Allocation], pool: Pool, choose: Callable[[int], int]
) -> None:
    spec = service["spec"]
    taken = set(used)
    had = allocated_by({"spec": before})
    if spec["type"] in ("NodePort", "LoadBalancer"):
        by_port: dict[int, int] = {}
        for index, port in enumerate(spec.get("ports") or ()):
            wanted = port.get("nodePort") or 0
            if not wanted and not _has_node_ports(spec):
                continue
            if not wanted and not had:
                # The same port over TCP and UDP shares one node port, if one of the two names it.
                wanted = by_port.get(port["port"], 0) or _requested_port(spec, port["port"])
                if wanted:
                    port["nodePort"] = wanted
            if not wanted:
                wanted = port["nodePort"] = _free_port(taken, pool, choose)
            elif wanted not in had and wanted not in by_port.values():
                _check_port(service, index, wanted, taken, pool)
            by_port[port["port"]] = wanted
            taken.add(wanted)
    if _has_health_check(spec):
        if not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = _free_port(taken, pool, choose)
        elif spec["healthCheckNodePort"] not in had and spec["healthCheckNodePort"] in taken:
            raise InternalError(
                "Internal error occurred: failed to allocate requested HealthCheck NodePort "
                f"{spec['healthCheckNodePort']}: provided port is already allocated"
            )


def _requested_port(spec: Obj, number: int) -> int:
    named = (port["nodePort"] for port in spec["ports"] if port["port"] == number and port.get("nodePort"))
    return next(named, 0)


def _check_port(service: Made, index: int, wanted: int, taken: Collection[Allocation], pool: Pool) -> None:
    reason = ""
    if wanted not in pool.ports:
        valid = f"{pool.ports[0]}-{pool.ports[-1]}"
        reason = f"provided port is not in the valid range. The range of valid ports is {valid}"
    elif wanted in taken:
        reason = "provided port is already allocated"
    if reason:
        raise _refused(service, f"spec.ports[{index}].nodePort", wanted, reason)


def _free_port(taken: set[Allocation], pool: Pool, choose: Callable[[int], int]) -> int:
    start = choose(len(pool.ports))
    for step in range(len(pool.ports)):
        number = pool.ports[(start + step) % len(pool.ports)]
        if number not in taken:
            return number
    raise InternalError("Internal error occurred: failed to allocate a nodePort: range is full")


def _has_node_ports(spec: Obj) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (
        kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )


def _has_health_check(spec: Obj) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def drop_obsolete(service: Made, old: Obj) -> None:
    """
    Drop fields of the previous type that a client left unchanged when it changed only the type.
    """
    spec, before = service["spec"], old["spec"]
    kind, old_address = spec.get("type"), before.get("type")
    if old_address != "ExternalName" and kind == "ExternalName":
        if all(spec.get(name) == before.get(name) for name in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_same(spec, before, "ipFamilies", "ipFamilyPolicy")
    if old_address in ("NodePort", "LoadBalancer") and kind not in ("NodePort", "LoadBalancer"):
        ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
        if ports <= {port.get("nodePort") for port in before.get("ports") or ()}:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if _has_health_check(before) and not _has_health_check(spec):
        _drop_same(spec, before, "healthCheckNodePort")
    if old_address == "LoadBalancer" and kind != "LoadBalancer":
        _drop_same(spec, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_externally_accessible(before) and not is_externally_accessible(spec):
        _drop_same(spec, before, "externalTrafficPolicy")
    if kind != "LoadBalancer":
        service["status"] = {**service.get("status", {}), "loadBalancer": {}}


def _drop_same(spec: Made, before: Obj, *names: str) -> None:
    for name in names:
        if name in spec and spec[name] == before.get(name):
            del spec[name]


def _refused(service: Obj, field: str, value: object, reason: str) -> Invalid:
    name = service["metadata"].get("name", "")
    cause = invalid(field, value, reason)
    return Invalid(
        f'Service "{name}" is invalid: {cause.field}: {cause.message}',
        details={"name": name, "kind": "Service"},
        causes=[cause],
    )
