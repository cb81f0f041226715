"""Nodes."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.builtin.validate.addresses import check_network, is_dual_stack
from lamina.server.builtin.validate.parts import items, part, positive, text
from lamina.server.builtin.validate.resources import resource_amount
from lamina.server.builtin.validate.scheduling import taints
from lamina.server.fields import duplicate, forbidden, invalid


def create(node: Obj) -> list[Cause]:
    spec, status = part(node, "spec"), part(node, "status")
    said = taints(items(spec, "taints"), "metadata.taints")
    said += _resources(status)
    capacity = part(part(status, "nodeInfo"), "swap").get("capacity")
    if capacity is not None:
        said += positive("metadata.nodeSwapStatus.capacity", capacity)
    ranges = list(items(spec, "podCIDRs"))
    for index, one in enumerate(ranges):
        said += check_network(f"spec.podCIDRs[{index}]", one)
    if len(ranges) > 2 or (len(ranges) == 2 and not is_dual_stack(ranges)):
        told = "may specify no more than one CIDR for each IP family"
        said.append(invalid("spec.podCIDRs", ranges, told))
    return said


def _resources(status: Obj) -> list[Cause]:
    said: list[Cause] = []
    for field in ("capacity", "allocatable"):
        for name, value in part(status, field).items():
            said += resource_amount(f"status.{field}.{name}", name, value)
    return said


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    spec, before, status = part(new, "spec"), part(old, "spec"), part(new, "status")
    said = _resources(status) if subresource == "status" else create(new)
    seen: list[Obj] = []
    for index, one in enumerate(items(status, "addresses")):
        if one in seen:
            shown = {"Type": text(one, "type"), "Address": text(one, "address")}
            said.append(duplicate(f"status.addresses[{index}]", shown))
        seen.append(one)
    ranges = list(items(before, "podCIDRs"))
    if ranges and ranges != list(items(spec, "podCIDRs")):
        told = 'node updates may not change podCIDR except from "" to valid'
        said.append(forbidden("spec.podCIDRs", told))
    provider = text(before, "providerID")
    if provider and provider != text(spec, "providerID"):
        told = 'node updates may not change providerID except from "" to valid'
        said.append(forbidden("spec.providerID", told))
    said += taints(items(spec, "taints"), "metadata.taints")
    if text(spec, "externalID") != text(before, "externalID"):
        said.append(forbidden("spec.externalID", "may not be updated"))
    return said
