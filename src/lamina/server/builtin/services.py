"""
Addresses and node ports of Services.

Nothing here remembers anything: what is already given to other Services comes
in as a set, and the Service that comes out has what it lacked. The rules of an
update come first: what a client left out, it did not mean to give back.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from lamina.errors import InternalError, Invalid
from lamina.objects.types import Made, Obj
from lamina.server.builtin.defaults.networking import reached_from_outside
from lamina.server.fields import invalid

Given = str | int
"""An address, or a node port."""


class Pool(NamedTuple):
    """Where addresses and node ports are taken from."""

    network: ipaddress.IPv4Network
    ports: range


POOL: Final = Pool(ipaddress.IPv4Network("10.96.0.0/12"), range(30000, 32768))


def given_to(service: Obj) -> set[Given]:
    """Return the addresses and node ports that a Service has."""
    spec = service.get("spec") or {}
    addresses = {address for address in spec.get("clusterIPs") or () if address not in ("", "None")}
    ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    check = {spec["healthCheckNodePort"]} if spec.get("healthCheckNodePort") else set()
    return addresses | ports | check


def allocate(
    service: Made,
    old: Obj | None,
    used: Collection[Given],
    *,
    pool: Pool = POOL,
    choose: Callable[[int], int] = random.randrange,
) -> None:
    """
    Give a Service the addresses and node ports it needs and has not.

    `used` is what other Services have, `given_to` of each. `choose` returns a
    number below the one it is given. Raises Invalid where the Service asks for
    something that cannot be had.
    """
    settle(service, old)
    spec = service["spec"]
    before: Obj = old["spec"] if old is not None else {}
    if spec["type"] != "ExternalName":
        _give_addresses(service, before, used, pool, choose)
    _give_ports(service, before, used, pool, choose)


def settle(service: Made, old: Obj | None) -> None:
    """
    Do what comes before giving anything, and needs no look at other Services.

    What was given before and is not mentioned now is taken over, the singular
    and plural fields are brought into step, and the families are named. Doing
    it twice is doing it once. Raises Invalid for families that are not served.
    """
    spec = service["spec"]
    before: Obj = old["spec"] if old is not None else {}
    if old is not None:
        _keep_given(spec, before)
    _match_addresses(spec, before if old is not None else None)
    _name_families(service, before)


def update_service(service: Made, old: Obj) -> None:
    """Keep what was given, and drop what belonged to a type the Service no longer has."""
    settle(service, old)
    drop_outgrown(service, old)


def _keep_given(spec: Made, before: Obj) -> None:
    """Take over what was given before and is not mentioned now."""
    if before.get("type") != "ExternalName" and spec["type"] != "ExternalName":
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if _has_node_ports(before) and _has_node_ports(spec):
        ours = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
        theirs = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            known = theirs.get(port.get("name", ""), 0)
            if not port.get("nodePort") and known and known not in ours:
                port["nodePort"] = known
    if _has_health_check(before) and _has_health_check(spec) and before.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _match_addresses(spec: Made, before: Obj | None) -> None:
    """Bring the one address and the list of them into step; whoever knows only the old field means both."""
    one, many = spec.get("clusterIP"), spec.get("clusterIPs")
    if before is None:
        if one and not many:
            spec["clusterIPs"] = [one]
        return
    was, were = before.get("clusterIP"), before.get("clusterIPs")
    if one == was:
        if were and not many:
            spec["clusterIPs"] = list(were)
    elif (many or []) == (were or []):
        if one:
            spec["clusterIPs"] = [one]
        else:
            spec.pop("clusterIPs", None)


def _name_families(service: Made, before: Obj) -> None:
    """Say which families of addresses a Service has; only IPv4 is given out."""
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    bare = spec.get("clusterIP") == "None" and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        policy = before.get("ipFamilyPolicy") or ("RequireDualStack" if bare else "SingleStack")
        spec["ipFamilyPolicy"] = policy
    families = list(spec.get("ipFamilies") or ())
    for address in (spec.get("clusterIPs") or ())[len(families) :]:
        if address != "None":
            families.append("IPv6" if ":" in address else "IPv4")
    families = families or ["IPv4"]
    if bare:
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    else:
        _check_families(service, families)
    spec["ipFamilies"] = families


def _check_families(service: Made, families: list[str]) -> None:
    spec = service["spec"]
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        said = "this cluster is not configured for dual-stack services"
        raise _refused(service, "spec.ipFamilyPolicy", spec["ipFamilyPolicy"], said)
    for index, family in enumerate(families):
        if family != "IPv4":
            asked = index < len(spec.get("ipFamilies") or ())
            field, value = ("ipFamilies", family) if asked else ("clusterIPs", spec["clusterIPs"])
            said = (
                "not configured on this cluster" if asked else f"{family} is not configured on this cluster"
            )
            raise _refused(service, f"spec.{field}[{index}]", value, said)


def _give_addresses(
    service: Made, before: Obj, used: Collection[Given], pool: Pool, choose: Callable[[int], int]
) -> None:
    spec = service["spec"]
    addresses = list(spec.get("clusterIPs") or ())
    if addresses[:1] == ["None"] or (addresses and addresses == (before.get("clusterIPs") or [])):
        return
    if addresses and before.get("clusterIPs"):
        # A change of address is for validation to refuse.
        return
    if addresses:
        _check_address(service, addresses[0], used, pool)
    else:
        addresses = [_free_address(used, pool, choose)]
    spec["clusterIPs"] = addresses
    spec["clusterIP"] = addresses[0]


def _check_address(service: Made, address: str, used: Collection[Given], pool: Pool) -> None:
    try:
        wanted = ipaddress.IPv4Address(address)
    except ValueError:
        # No address at all is for validation to refuse.
        return
    why = ""
    if wanted not in pool.network:
        why = (
            f"the provided IP ({address}) is not in the valid range. "
            f"The range of valid IPs is {pool.network.with_prefixlen}"
        )
    elif address in used:
        why = "provided IP is already allocated"
    if why:
        addresses = service["spec"]["clusterIPs"]
        raise _refused(service, "spec.clusterIPs", addresses, f"failed to allocate IP {address}: {why}")


def _free_address(used: Collection[Given], pool: Pool, choose: Callable[[int], int]) -> str:
    """Return a free address, from a random start in the part that nobody asks for by name."""
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


def _give_ports(
    service: Made, before: Obj, used: Collection[Given], pool: Pool, choose: Callable[[int], int]
) -> None:
    spec = service["spec"]
    taken = set(used)
    had = given_to({"spec": before})
    if spec["type"] in ("NodePort", "LoadBalancer"):
        by_port: dict[int, int] = {}
        for index, port in enumerate(spec.get("ports") or ()):
            wanted = port.get("nodePort") or 0
            if not wanted and not _has_node_ports(spec):
                continue
            if not wanted and not had:
                # The same port over TCP and UDP has one node port, if one of the two is named.
                wanted = by_port.get(port["port"], 0) or _asked_for(spec, port["port"])
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


def _asked_for(spec: Obj, number: int) -> int:
    named = (port["nodePort"] for port in spec["ports"] if port["port"] == number and port.get("nodePort"))
    return next(named, 0)


def _check_port(service: Made, index: int, wanted: int, taken: Collection[Given], pool: Pool) -> None:
    why = ""
    if wanted not in pool.ports:
        valid = f"{pool.ports[0]}-{pool.ports[-1]}"
        why = f"provided port is not in the valid range. The range of valid ports is {valid}"
    elif wanted in taken:
        why = "provided port is already allocated"
    if why:
        raise _refused(service, f"spec.ports[{index}].nodePort", wanted, why)


def _free_port(taken: set[Given], pool: Pool, choose: Callable[[int], int]) -> int:
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


def drop_outgrown(service: Made, old: Obj) -> None:
    """
    Drop what belonged to the type a Service had before, and was left in by a client that changed only the type.
    """
    spec, before = service["spec"], old["spec"]
    kind, was = spec.get("type"), before.get("type")
    if was != "ExternalName" and kind == "ExternalName":
        if all(spec.get(name) == before.get(name) for name in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_same(spec, before, "ipFamilies", "ipFamilyPolicy")
    if was in ("NodePort", "LoadBalancer") and kind not in ("NodePort", "LoadBalancer"):
        ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
        if ports <= {port.get("nodePort") for port in before.get("ports") or ()}:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if _has_health_check(before) and not _has_health_check(spec):
        _drop_same(spec, before, "healthCheckNodePort")
    if was == "LoadBalancer" and kind != "LoadBalancer":
        _drop_same(spec, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if reached_from_outside(before) and not reached_from_outside(spec):
        _drop_same(spec, before, "externalTrafficPolicy")
    if kind != "LoadBalancer":
        service["status"] = {**service.get("status", {}), "loadBalancer": {}}


def _drop_same(spec: Made, before: Obj, *names: str) -> None:
    for name in names:
        if name in spec and spec[name] == before.get(name):
            del spec[name]


def _refused(service: Obj, field: str, value: object, why: str) -> Invalid:
    name = service["metadata"].get("name", "")
    cause = invalid(field, value, why)
    return Invalid(
        f'Service "{name}" is invalid: {cause.field}: {cause.message}',
        details={"name": name, "kind": "Service"},
        causes=[cause],
    )
