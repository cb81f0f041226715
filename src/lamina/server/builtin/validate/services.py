"""Services."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.addresses import (
    address,
    check_address,
    check_endpoint,
    check_network,
    is_dual_stack,
)
from lamina.server.builtin.validate.parts import (
    PROTOCOLS,
    chosen,
    count,
    items,
    part,
    port,
    port_number_or_name,
    ruled,
    supported,
    text,
)
from lamina.server.fields import duplicate, forbidden, invalid, required
from lamina.server.metadata import check_labels

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_MODE, _HINTS = "service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"
_BALANCED_ONLY = "may only be used when `type` is 'LoadBalancer'"


def create(service: Obj) -> list[Cause]:
    return _service(service, None)


def update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        return _status(new, old)
    spec, before = part(new, "spec"), part(old, "spec")
    said = _addresses_kept(spec, before) + _families_kept(spec, before)
    if text(spec, "type") == text(before, "type") == "LoadBalancer":
        if spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
            told = "may not change once set"
            said.append(invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), told))
        checked = _needs_health_check(spec) and _needs_health_check(before)
        if checked and count(spec, "healthCheckNodePort") != count(before, "healthCheckNodePort"):
            said.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return said + _service(new, old)


def _cluster_ips(spec: Obj) -> list[str]:
    """Return all addresses a Service asks for; the one in `clusterIP` counts before it is copied over."""
    own = text(spec, "clusterIP")
    return list(items(spec, "clusterIPs")) or ([own] if own else [])


def _is_headless(spec: Obj) -> bool:
    return _cluster_ips(spec) == ["None"]


def _service(service: Obj, old: Obj | None) -> list[Cause]:
    spec = part(service, "spec")
    before = part(old, "spec") if old else {}
    kind, headless = text(spec, "type"), _is_headless(spec)
    said = _hints(service)
    ports = items(spec, "ports")
    if not ports and not headless and kind != "ExternalName":
        said.append(required("spec.ports"))
    if kind in {"LoadBalancer", "NodePort"} and headless:
        told = f"may not be set to 'None' for {kind} services"
        said.append(invalid("spec.clusterIPs[0]", "None", told))
    if kind == "ExternalName":
        said += _external_name(spec)
    said += _ports(spec)
    said += check_labels(part(spec, "selector"), "spec.selector")
    said += _affinity(spec)
    if kind != "ExternalName":
        said += _cluster_addresses(spec, before)
    for index, one in enumerate(items(spec, "externalIPs")):
        here = f"spec.externalIPs[{index}]"
        said += check_address(here, one, items(before, "externalIPs")) or check_endpoint(here, one)
    said += chosen("spec.type", kind, _TYPES)
    said += _port_clashes(spec)
    said += _source_ranges(service, old)
    allocates = spec.get("allocateLoadBalancerNodePorts")
    if allocates is not None and kind != "LoadBalancer":
        said.append(forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY))
    if allocates is None and kind == "LoadBalancer":
        said.append(required("allocateLoadBalancerNodePorts"))
    if (balancer := spec.get("loadBalancerClass")) is not None:
        said += (
            ruled("spec.loadBalancerClass", balancer, names.qualified)
            if kind == "LoadBalancer"
            else [forbidden("spec.loadBalancerClass", _BALANCED_ONLY)]
        )
    return said + _traffic(spec)


def _hints(service: Obj) -> list[Cause]:
    found = part(part(service, "metadata"), "annotations")
    if _MODE in found and _HINTS in found and found[_MODE] != found[_HINTS]:
        told = f"must match annotations[{_HINTS}] when both are specified"
        return [invalid(f"metadata.annotations[{_MODE}]", found[_MODE], told)]
    return []


def _external_name(spec: Obj) -> list[Cause]:
    told = "may not be set for ExternalName services"
    said = [
        forbidden(f"spec.{field}", told)
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = text(spec, "externalName").removesuffix(".")
    return said + (
        ruled("spec.externalName", name, names.subdomain) if name else [required("spec.externalName")]
    )


def _ports(spec: Obj) -> list[Cause]:
    said: list[Cause] = []
    ports = items(spec, "ports")
    seen: set[str] = set()
    for index, one in enumerate(ports):
        here = f"spec.ports[{index}]"
        name = text(one, "name")
        if name:
            said += ruled(f"{here}.name", name, names.label)
            if name in seen:
                said.append(duplicate(f"{here}.name", name))
            seen.add(name)
        elif len(ports) > 1:
            said.append(required(f"{here}.name"))
        said += port(f"{here}.port", count(one, "port"))
        said += chosen(f"{here}.protocol", one.get("protocol"), PROTOCOLS)
        said += port_number_or_name(f"{here}.targetPort", one.get("targetPort"))
        if (protocol := one.get("appProtocol")) is not None:
            said += ruled(f"{here}.appProtocol", protocol, names.qualified)
    return said


def _affinity(spec: Obj) -> list[Cause]:
    kind, config = text(spec, "sessionAffinity"), spec.get("sessionAffinityConfig")
    said = chosen("spec.sessionAffinity", kind, ("ClientIP", "None"))
    path = "spec.sessionAffinityConfig"
    if kind == "ClientIP":
        told = "when session affinity type is ClientIP"
        if config is None:
            said.append(required(path, told))
        elif config.get("clientIP") is None:
            said.append(required(f"{path}.clientIP", told))
        elif (seconds := config["clientIP"].get("timeoutSeconds")) is None:
            said.append(required(f"{path}.clientIP.timeoutSeconds", told))
        elif not 0 < seconds <= 86400:
            rule = "must be greater than 0 and less than 86400"
            said.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, rule))
    elif kind == "None" and config is not None:
        said.append(forbidden(path, "must not be set when session affinity is None"))
    return said


def _cluster_addresses(spec: Obj, before: Obj) -> list[Cause]:
    said: list[Cause] = []
    own, found, path = text(spec, "clusterIP"), _cluster_ips(spec), "spec.clusterIPs"
    if own:
        if found[0] != own:
            said.append(invalid(path, found, "first value must match `clusterIP`"))
    elif found:
        said.append(invalid(path, found, "must be empty when `clusterIP` is not specified"))
    families = items(spec, "ipFamilies")
    for index, family in enumerate(families):
        said += supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            said.append(duplicate(f"spec.ipFamilies[{index}]", family))
    said += supported("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), _FAMILY_POLICIES)
    wrong: list[Cause] = []
    for index, one in enumerate(found):
        if index == 0 and one == "None":
            if len(found) > 1:
                wrong.append(invalid(path, found, "'None' must be the first and only value"))
            continue
        wrong += check_address(f"{path}[{index}]", one, items(before, "clusterIPs"))
    said += wrong
    if len(found) > 2:
        said.append(invalid(path, found, "may only hold up to 2 values"))
    if wrong:
        return said
    if len(found) > 1 and not is_dual_stack(found):
        said.append(invalid(path, found, "may specify no more than one IP for each IP family"))
    if not _is_headless(spec):
        for index, (one, family) in enumerate(zip(found, families, strict=False)):
            parsed = address(one)
            version = parsed.version if parsed else 4
            if family in _FAMILIES and family != f"IPv{version}":
                told = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                said.append(invalid(f"{path}[{index}]", one, told))
    return said


def _port_clashes(spec: Obj) -> list[Cause]:
    said: list[Cause] = []
    ports = items(spec, "ports")
    if text(spec, "type") == "ClusterIP":
        told = "may not be used when `type` is 'ClusterIP'"
        said += (
            forbidden(f"spec.ports[{index}].nodePort", told)
            for index, one in enumerate(ports)
            if count(one, "nodePort")
        )
    on_nodes: set[tuple[str, int]] = set()
    for index, one in enumerate(ports):
        if number := count(one, "nodePort"):
            key = (text(one, "protocol"), number)
            if key in on_nodes:
                said.append(duplicate(f"spec.ports[{index}].nodePort", number))
            on_nodes.add(key)
    seen: set[tuple[str, int]] = set()
    for index, one in enumerate(ports):
        key = (text(one, "protocol"), count(one, "port"))
        if key in seen:
            shown = {
                "Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1], "TargetPort": 0, "NodePort": 0,
            }  # fmt: skip
            said.append(duplicate(f"spec.ports[{index}]", shown))
        seen.add(key)
    return said


def _source_ranges(service: Obj, old: Obj | None) -> list[Cause]:
    spec = part(service, "spec")
    balanced = text(spec, "type") == "LoadBalancer"
    said: list[Cause] = []
    if ranges := items(spec, "loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if not balanced:
            said.append(forbidden(path, _BALANCED_ONLY))
        known = [one.strip() for one in items(part(old, "spec"), "loadBalancerSourceRanges")] if old else []
        for index, one in enumerate(ranges):
            said += check_network(f"{path}[{index}]", one.strip(), known)
        return said
    annotation = part(part(service, "metadata"), "annotations").get(_RANGES)
    if annotation is None:
        return []
    path = f"metadata.annotations[{_RANGES}]"
    if not balanced:
        said.append(forbidden(path, _BALANCED_ONLY))
    was = part(part(old, "metadata"), "annotations").get(_RANGES) if old else None
    if annotation != was and annotation.strip():
        for one in annotation.split(","):
            said += check_network(path, one.strip())
    return said


def _needs_health_check(spec: Obj) -> bool:
    return text(spec, "type") == "LoadBalancer" and text(spec, "externalTrafficPolicy") == "Local"


def _traffic(spec: Obj) -> list[Cause]:
    said: list[Cause] = []
    kind, policy = text(spec, "type"), text(spec, "externalTrafficPolicy")
    outside = kind in {"LoadBalancer", "NodePort"} or (kind == "ClusterIP" and items(spec, "externalIPs"))
    if outside:
        said += chosen("spec.externalTrafficPolicy", policy, ("Cluster", "Local"))
    elif policy:
        told = "may only be set for externally-accessible services"
        said.append(invalid("spec.externalTrafficPolicy", policy, told))
    check = count(spec, "healthCheckNodePort")
    if not _needs_health_check(spec):
        if check:
            told = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            said.append(invalid("spec.healthCheckNodePort", check, told))
    elif not check:
        said.append(required("spec.healthCheckNodePort"))
    else:
        said += port("spec.healthCheckNodePort", check)
    inside = spec.get("internalTrafficPolicy")
    if inside is None and kind in {"ClusterIP", "LoadBalancer", "NodePort"}:
        said.append(required("spec.internalTrafficPolicy"))
    said += supported("spec.internalTrafficPolicy", inside, ("Cluster", "Local"))
    return said + supported("spec.trafficDistribution", spec.get("trafficDistribution"), _DISTRIBUTIONS)


def _addresses_kept(spec: Obj, before: Obj) -> list[Cause]:
    if "ExternalName" in {text(spec, "type"), text(before, "type")}:
        return []
    if _is_headless(spec) and _is_headless(before):
        return []
    found, had, path = list(items(spec, "clusterIPs")), list(items(before, "clusterIPs")), "spec.clusterIPs"
    changed = "may not change once set"
    if len(found) == len(had):
        return [
            invalid(f"{path}[{index}]", found, changed)
            for index, (one, was) in enumerate(zip(found, had, strict=True))
            if one != was
        ]
    said: list[Cause] = []
    if not found:
        return [invalid(f"{path}[0]", None, "primary clusterIP can not be unset")]
    if had and found[0] != had[0]:
        said.append(invalid(f"{path}[0]", found, changed))
    if len(found) == 1 < len(had) and spec.get("ipFamilyPolicy") != "SingleStack":
        told = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        said.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), told))
    return said


def _families_kept(spec: Obj, before: Obj) -> list[Cause]:
    if "ExternalName" in {text(spec, "type"), text(before, "type")}:
        return []
    if _is_headless(spec) or _is_headless(before):
        return []
    found, had, path = (
        list(items(spec, "ipFamilies")),
        list(items(before, "ipFamilies")),
        "spec.ipFamilies[0]",
    )
    changed = "may not change once set"
    if len(found) == len(had):
        return [invalid(path, found, changed) for one, was in zip(found, had, strict=True) if one != was]
    said: list[Cause] = []
    if len(had) > len(found) and not items(spec, "clusterIPs"):
        said.append(invalid(path, found or None, "primary ipFamily can not be unset"))
    if found and had and found[0] != had[0]:
        said.append(invalid(path, list(items(spec, "clusterIPs")), changed))
    if len(found) == 1 < len(had) and spec.get("ipFamilyPolicy") != "SingleStack":
        told = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        said.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), told))
    return said


def _status(new: Obj, old: Obj) -> list[Cause]:
    ingress = items(part(part(new, "status"), "loadBalancer"), "ingress")
    path = "status.loadBalancer.ingress"
    if ingress and text(part(new, "spec"), "type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = [text(one, "ip") for one in items(part(part(old, "status"), "loadBalancer"), "ingress")]
    said: list[Cause] = []
    for index, one in enumerate(ingress):
        here = f"{path}[{index}]"
        own, mode = text(one, "ip"), one.get("ipMode")
        if own:
            said += check_address(f"{here}.ip", own, known)
            if mode is None:
                said.append(required(f"{here}.ipMode", "must be specified when `ip` is set"))
            said += supported(f"{here}.ipMode", mode, ("Proxy", "VIP"))
        elif mode is not None:
            said.append(forbidden(f"{here}.ipMode", "may not be specified when `ip` is not set"))
        said += host_name(f"{here}.hostname", text(one, "hostname"))
    return said


def host_name(path: str, name: str) -> list[Cause]:
    """Check the name a balancer is reached by."""
    if not name:
        return []
    said = ruled(path, name, names.subdomain)
    if address(name) is not None:
        said.append(invalid(path, name, "must be a DNS name, not an IP address"))
    return said
