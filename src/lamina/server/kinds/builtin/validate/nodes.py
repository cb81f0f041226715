"""Nodes."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, invalid
from lamina.server.kinds.builtin.validate.addresses import check_network, is_dual_stack
from lamina.server.kinds.builtin.validate.parts import items, part, positive, text
from lamina.server.kinds.builtin.validate.resources import resource_amount
from lamina.server.kinds.builtin.validate.scheduling import taints


def create(node: Obj) -> list[Cause]:
    spec, status = part(node, "spec"), part(node, "status")
    causes = taints(items(spec, "taints"), "metadata.taints")
    causes += _resources(status)
    capacity = part(part(status, "nodeInfo"), "swap").get("capacity")
    if capacity is not None:
        causes += positive("metadata.nodeSwapStatus.capacity", capacity)
    ranges = list(items(spec, "podCIDRs"))
    for index, one in enumerate(ranges):
        causes += check_network(f"spec.podCIDRs[{index}]", one)
    if len(ranges) > 2 or (len(ranges) == 2 and not is_dual_stack(ranges)):
        detail = "may specify no more than one CIDR for each IP family"
        causes.append(invalid("spec.podCIDRs", ranges, detail))
    return causes


def _resources(status: Obj) -> list[Cause]:
    causes: list[Cause] = []
    for field in ("capacity", "allocatable"):
        for name, value in part(status, field).items():
            causes += resource_amount(f"status.{field}.{name}", name, value)
    return causes


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    spec, before, status = part(new, "spec"), part(old, "spec"), part(new, "status")
    causes = _resources(status) if subresource == "status" else create(new)
    seen: list[Obj] = []
    for index, one in enumerate(items(status, "addresses")):
        if one in seen:
            shown = {"Type": text(one, "type"), "Address": text(one, "address")}
            causes.append(duplicate(f"status.addresses[{index}]", shown))
        seen.append(one)
    ranges = list(items(before, "podCIDRs"))
    if ranges and ranges != list(items(spec, "podCIDRs")):
        detail = 'node updates may not change podCIDR except from "" to valid'
        causes.append(forbidden("spec.podCIDRs", detail))
    provider = text(before, "providerID")
    if provider and provider != text(spec, "providerID"):
        detail = 'node updates may not change providerID except from "" to valid'
        causes.append(forbidden("spec.providerID", detail))
    causes += taints(items(spec, "taints"), "metadata.taints")
    if text(spec, "externalID") != text(before, "externalID"):
        causes.append(forbidden("spec.externalID", "may not be updated"))
    return causes
