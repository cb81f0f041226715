"""Services."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, invalid, required
from lamina.server.kinds.builtin.validate.addresses import (
    address,
    check_address,
    check_endpoint,
    check_network,
    is_dual_stack,
)
from lamina.server.kinds.builtin.validate.parts import (
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
from lamina.server.kinds.metadata import check_labels

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
    causes = _addresses_kept(spec, before) + _families_kept(spec, before)
    if text(spec, "type") == text(before, "type") == "LoadBalancer":
        if spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
            detail = "may not change once set"
            causes.append(invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), detail))
        checked = _needs_health_check(spec) and _needs_health_check(before)
        if checked and count(spec, "healthCheckNodePort") != count(before, "healthCheckNodePort"):
            causes.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return causes + _service(new, old)


def _cluster_ips(spec: Obj) -> list[str]:
    """Return all cluster IPs of a Service; `clusterIP` counts even before it is copied to the list."""
    own = text(spec, "clusterIP")
    return list(items(spec, "clusterIPs")) or ([own] if own else [])


def _is_headless(spec: Obj) -> bool:
    return _cluster_ips(spec) == ["None"]


def _service(service: Obj, old: Obj | None) -> list[Cause]:
    spec = part(service, "spec")
    before = part(old, "spec") if old else {}
    kind, headless = text(spec, "type"), _is_headless(spec)
    causes = _hints(service)
    ports = items(spec, "ports")
    if not ports and not headless and kind != "ExternalName":
        causes.append(required("spec.ports"))
    if kind in {"LoadBalancer", "NodePort"} and headless:
        detail = f"may not be set to 'None' for {kind} services"
        causes.append(invalid("spec.clusterIPs[0]", "None", detail))
    if kind == "ExternalName":
        causes += _external_name(spec)
    causes += _ports(spec)
    causes += check_labels(part(spec, "selector"), "spec.selector")
    causes += _affinity(spec)
    if kind != "ExternalName":
        causes += _cluster_addresses(spec, before)
    for index, one in enumerate(items(spec, "externalIPs")):
        item_path = f"spec.externalIPs[{index}]"
        causes += check_address(item_path, one, items(before, "externalIPs")) or check_endpoint(
            item_path, one
        )
    causes += chosen("spec.type", kind, _TYPES)
    causes += _port_clashes(spec)
    causes += _source_ranges(service, old)
    allocates = spec.get("allocateLoadBalancerNodePorts")
    if allocates is not None and kind != "LoadBalancer":
        causes.append(forbidden("spec.allocateLoadBalancerNodePorts", _BALANCED_ONLY))
    if allocates is None and kind == "LoadBalancer":
        causes.append(required("allocateLoadBalancerNodePorts"))
    if (balancer := spec.get("loadBalancerClass")) is not None:
        causes += (
            ruled("spec.loadBalancerClass", balancer, names.qualified)
            if kind == "LoadBalancer"
            else [forbidden("spec.loadBalancerClass", _BALANCED_ONLY)]
        )
    return causes + _traffic(spec)


def _hints(service: Obj) -> list[Cause]:
    found = part(part(service, "metadata"), "annotations")
    if _MODE in found and _HINTS in found and found[_MODE] != found[_HINTS]:
        detail = f"must match annotations[{_HINTS}] when both are specified"
        return [invalid(f"metadata.annotations[{_MODE}]", found[_MODE], detail)]
    return []


def _external_name(spec: Obj) -> list[Cause]:
    detail = "may not be set for ExternalName services"
    causes = [
        forbidden(f"spec.{field}", detail)
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = text(spec, "externalName").removesuffix(".")
    return causes + (
        ruled("spec.externalName", name, names.subdomain) if name else [required("spec.externalName")]
    )


def _ports(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    ports = items(spec, "ports")
    seen: set[str] = set()
    for index, one in enumerate(ports):
        item_path = f"spec.ports[{index}]"
        name = text(one, "name")
        if name:
            causes += ruled(f"{item_path}.name", name, names.label)
            if name in seen:
                causes.append(duplicate(f"{item_path}.name", name))
            seen.add(name)
        elif len(ports) > 1:
            causes.append(required(f"{item_path}.name"))
        causes += port(f"{item_path}.port", count(one, "port"))
        causes += chosen(f"{item_path}.protocol", one.get("protocol"), PROTOCOLS)
        causes += port_number_or_name(f"{item_path}.targetPort", one.get("targetPort"))
        if (protocol := one.get("appProtocol")) is not None:
            causes += ruled(f"{item_path}.appProtocol", protocol, names.qualified)
    return causes


def _affinity(spec: Obj) -> list[Cause]:
    kind, config = text(spec, "sessionAffinity"), spec.get("sessionAffinityConfig")
    causes = chosen("spec.sessionAffinity", kind, ("ClientIP", "None"))
    path = "spec.sessionAffinityConfig"
    if kind == "ClientIP":
        detail = "when session affinity type is ClientIP"
        if config is None:
            causes.append(required(path, detail))
        elif config.get("clientIP") is None:
            causes.append(required(f"{path}.clientIP", detail))
        elif (seconds := config["clientIP"].get("timeoutSeconds")) is None:
            causes.append(required(f"{path}.clientIP.timeoutSeconds", detail))
        elif not 0 < seconds <= 86400:
            rule = "must be greater than 0 and less than 86400"
            causes.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, rule))
    elif kind == "None" and config is not None:
        causes.append(forbidden(path, "must not be set when session affinity is None"))
    return causes


def _cluster_addresses(spec: Obj, before: Obj) -> list[Cause]:
    causes: list[Cause] = []
    own, found, path = text(spec, "clusterIP"), _cluster_ips(spec), "spec.clusterIPs"
    if own:
        if found[0] != own:
            causes.append(invalid(path, found, "first value must match `clusterIP`"))
    elif found:
        causes.append(invalid(path, found, "must be empty when `clusterIP` is not specified"))
    families = items(spec, "ipFamilies")
    for index, family in enumerate(families):
        causes += supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            causes.append(duplicate(f"spec.ipFamilies[{index}]", family))
    causes += supported("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), _FAMILY_POLICIES)
    problem: list[Cause] = []
    for index, one in enumerate(found):
        if index == 0 and one == "None":
            if len(found) > 1:
                problem.append(invalid(path, found, "'None' must be the first and only value"))
            continue
        problem += check_address(f"{path}[{index}]", one, items(before, "clusterIPs"))
    causes += problem
    if len(found) > 2:
        causes.append(invalid(path, found, "may only hold up to 2 values"))
    if problem:
        return causes
    if len(found) > 1 and not is_dual_stack(found):
        causes.append(invalid(path, found, "may specify no more than one IP for each IP family"))
    if not _is_headless(spec):
        for index, (one, family) in enumerate(zip(found, families, strict=False)):
            parsed = address(one)
            version = parsed.version if parsed else 4
            if family in _FAMILIES and family != f"IPv{version}":
                detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                causes.append(invalid(f"{path}[{index}]", one, detail))
    return causes


def _port_clashes(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    ports = items(spec, "ports")
    if text(spec, "type") == "ClusterIP":
        detail = "may not be used when `type` is 'ClusterIP'"
        causes += (
            forbidden(f"spec.ports[{index}].nodePort", detail)
            for index, one in enumerate(ports)
            if count(one, "nodePort")
        )
    on_nodes: set[tuple[str, int]] = set()
    for index, one in enumerate(ports):
        if number := count(one, "nodePort"):
            key = (text(one, "protocol"), number)
            if key in on_nodes:
                causes.append(duplicate(f"spec.ports[{index}].nodePort", number))
            on_nodes.add(key)
    seen: set[tuple[str, int]] = set()
    for index, one in enumerate(ports):
        key = (text(one, "protocol"), count(one, "port"))
        if key in seen:
            shown = {
                "Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1], "TargetPort": 0, "NodePort": 0,
            }  # fmt: skip
            causes.append(duplicate(f"spec.ports[{index}]", shown))
        seen.add(key)
    return causes


def _source_ranges(service: Obj, old: Obj | None) -> list[Cause]:
    spec = part(service, "spec")
    balanced = text(spec, "type") == "LoadBalancer"
    causes: list[Cause] = []
    if ranges := items(spec, "loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if not balanced:
            causes.append(forbidden(path, _BALANCED_ONLY))
        known = [one.strip() for one in items(part(old, "spec"), "loadBalancerSourceRanges")] if old else []
        for index, one in enumerate(ranges):
            causes += check_network(f"{path}[{index}]", one.strip(), known)
        return causes
    annotation = part(part(service, "metadata"), "annotations").get(_RANGES)
    if annotation is None:
        return []
    path = f"metadata.annotations[{_RANGES}]"
    if not balanced:
        causes.append(forbidden(path, _BALANCED_ONLY))
    was = part(part(old, "metadata"), "annotations").get(_RANGES) if old else None
    if annotation != was and annotation.strip():
        for one in annotation.split(","):
            causes += check_network(path, one.strip())
    return causes


def _needs_health_check(spec: Obj) -> bool:
    return text(spec, "type") == "LoadBalancer" and text(spec, "externalTrafficPolicy") == "Local"


def _traffic(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    kind, policy = text(spec, "type"), text(spec, "externalTrafficPolicy")
    outside = kind in {"LoadBalancer", "NodePort"} or (kind == "ClusterIP" and items(spec, "externalIPs"))
    if outside:
        causes += chosen("spec.externalTrafficPolicy", policy, ("Cluster", "Local"))
    elif policy:
        detail = "may only be set for externally-accessible services"
        causes.append(invalid("spec.externalTrafficPolicy", policy, detail))
    check = count(spec, "healthCheckNodePort")
    if not _needs_health_check(spec):
        if check:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            causes.append(invalid("spec.healthCheckNodePort", check, detail))
    elif not check:
        causes.append(required("spec.healthCheckNodePort"))
    else:
        causes += port("spec.healthCheckNodePort", check)
    inside = spec.get("internalTrafficPolicy")
    if inside is None and kind in {"ClusterIP", "LoadBalancer", "NodePort"}:
        causes.append(required("spec.internalTrafficPolicy"))
    causes += supported("spec.internalTrafficPolicy", inside, ("Cluster", "Local"))
    return causes + supported("spec.trafficDistribution", spec.get("trafficDistribution"), _DISTRIBUTIONS)


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
    causes: list[Cause] = []
    if not found:
        return [invalid(f"{path}[0]", None, "primary clusterIP can not be unset")]
    if had and found[0] != had[0]:
        causes.append(invalid(f"{path}[0]", found, changed))
    if len(found) == 1 < len(had) and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        causes.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))
    return causes


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
    causes: list[Cause] = []
    if len(had) > len(found) and not items(spec, "clusterIPs"):
        causes.append(invalid(path, found or None, "primary ipFamily can not be unset"))
    if found and had and found[0] != had[0]:
        causes.append(invalid(path, list(items(spec, "clusterIPs")), changed))
    if len(found) == 1 < len(had) and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        causes.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))
    return causes


def _status(new: Obj, old: Obj) -> list[Cause]:
    ingress = items(part(part(new, "status"), "loadBalancer"), "ingress")
    path = "status.loadBalancer.ingress"
    if ingress and text(part(new, "spec"), "type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    known = [text(one, "ip") for one in items(part(part(old, "status"), "loadBalancer"), "ingress")]
    causes: list[Cause] = []
    for index, one in enumerate(ingress):
        item_path = f"{path}[{index}]"
        own, mode = text(one, "ip"), one.get("ipMode")
        if own:
            causes += check_address(f"{item_path}.ip", own, known)
            if mode is None:
                causes.append(required(f"{item_path}.ipMode", "must be specified when `ip` is set"))
            causes += supported(f"{item_path}.ipMode", mode, ("Proxy", "VIP"))
        elif mode is not None:
            causes.append(forbidden(f"{item_path}.ipMode", "may not be specified when `ip` is not set"))
        causes += host_name(f"{item_path}.hostname", text(one, "hostname"))
    return causes


def host_name(path: str, name: str) -> list[Cause]:
    """Validate the host name of a load balancer."""
    if not name:
        return []
    causes = ruled(path, name, names.subdomain)
    if address(name) is not None:
        causes.append(invalid(path, name, "must be a DNS name, not an IP address"))
    return causes
