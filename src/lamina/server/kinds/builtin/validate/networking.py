"""Ingresses, their classes, and NetworkPolicies."""

from __future__ import annotations

from collections.abc import Collection

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import each, forbidden, immutable, invalid, not_supported, required, too_long
from lamina.server.kinds.builtin.validate.addresses import address, check_address, check_network, network
from lamina.server.kinds.builtin.validate.labels import label_selector
from lamina.server.kinds.builtin.validate.parts import (
    count,
    domain_path,
    items,
    named,
    part,
    port,
    ruled,
    supported,
    text,
)
from lamina.server.kinds.builtin.validate.services import host_name

_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_PROTOCOLS = ("TCP", "UDP", "SCTP")


def ingress(obj: Obj) -> list[Cause]:
    causes = _ingress(obj, None)
    own = part(part(obj, "metadata"), "annotations").get(_CLASS)
    name = part(obj, "spec").get("ingressClassName")
    if own is not None and name is not None and own != name:
        detail = "must match `ingressClassName` when both are specified"
        causes.append(invalid(f"annotations.{_CLASS}", own, detail))
    return causes


def ingress_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return _ingress(new, old)
    balancers = items(part(part(new, "status"), "loadBalancer"), "ingress")
    known = [text(one, "ip") for one in items(part(part(old, "status"), "loadBalancer"), "ingress")]
    causes: list[Cause] = []
    for index, one in enumerate(balancers):
        item_path = f"status.loadBalancer.ingress[{index}]"
        if own := text(one, "ip"):
            causes += check_address(f"{item_path}.ip", own, known)
        causes += host_name(f"{item_path}.hostname", text(one, "hostname"))
    return causes


def _ingress(obj: Obj, old: Obj | None) -> list[Cause]:
    spec = part(obj, "spec")
    rules, default = items(spec, "rules"), spec.get("defaultBackend")
    causes: list[Cause] = []
    if not rules and default is None:
        detail = "either `defaultBackend` or `rules` must be specified"
        causes.append(invalid("spec", spec.get("rules"), detail))
    if default is not None:
        causes += _backend(default, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        causes += _rule(rule, f"spec.rules[{index}]")
    had_bad_secret = old is not None and any(
        name and names.subdomain(name)
        for name in (text(one, "secretName") for one in items(part(old, "spec"), "tls"))
    )
    for index, one in enumerate(items(spec, "tls")):
        item_path = f"spec.tls[{index}]"
        for at, host in enumerate(items(one, "hosts")):
            causes += _host(host, f"{item_path}.hosts[{at}]")
        name = text(one, "secretName")
        if name and not had_bad_secret:
            causes += ruled(f"{item_path}.secretName", name, names.subdomain)
    if (class_name := spec.get("ingressClassName")) is not None:
        causes += ruled("spec.ingressClassName", class_name, names.subdomain)
    return causes


def _host(host: str, path: str) -> list[Cause]:
    return ruled(path, host, names.wildcard_subdomain if "*" in host else names.subdomain)


def _rule(rule: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if host := text(rule, "host"):
        if address(host) is not None:
            causes.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        causes += _host(host, f"{path}.host")
    if (http := rule.get("http")) is None:
        return causes
    paths = items(http, "paths")
    if not paths:
        causes.append(required(f"{path}.http.paths"))
    for index, one in enumerate(paths):
        causes += _path(one, f"{path}.http.paths[{index}]")
    return causes


def _path(found: Obj, path: str) -> list[Cause]:
    kind, where = found.get("pathType"), text(found, "path")
    if kind is None:
        return [required(f"{path}.pathType", "pathType must be specified")]
    causes: list[Cause] = []
    item_path = f"{path}.path"
    if kind not in _PATH_TYPES:
        causes.append(not_supported(f"{path}.pathType", kind, _PATH_TYPES))
    elif not where.startswith("/") and (where or kind != "ImplementationSpecific"):
        causes.append(invalid(item_path, where, "must be an absolute path"))
    if kind in {"Exact", "Prefix"}:
        causes += (
            invalid(item_path, where, f"must not contain '{piece}'")
            for piece in ("//", "/./", "/../", "%2f", "%2F")
            if piece in where
        )
        causes += (
            invalid(item_path, where, f"cannot end with '{end}'")
            for end in ("/..", "/.")
            if where.endswith(end)
        )
    return causes + _backend(part(found, "backend"), f"{path}.backend")


def _backend(backend: Obj, path: str) -> list[Cause]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _typed(resource, f"{path}.resource")
    if service is None:
        return [invalid(path, "", "resource or service backend is required")]
    causes = named(f"{path}.service.name", text(service, "name"), names.label_1035)
    name, number = text(part(service, "port"), "name"), count(part(service, "port"), "number")
    if name and number:
        causes.append(invalid(path, "", "cannot set both port name & port number"))
    elif name:
        causes += each(f"{path}.service.port.name", name, names.port_name(name))
    elif number:
        causes += port(f"{path}.service.port.number", number)
    else:
        causes.append(required(path, "port name or number is required"))
    return causes


def _typed(ref: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if (group := ref.get("apiGroup")) is not None:
        causes += ruled(f"{path}.apiGroup", group, names.subdomain)
    causes += named(f"{path}.kind", text(ref, "kind"), names.path_segment)
    return causes + named(f"{path}.name", text(ref, "name"), names.path_segment)


def ingress_class(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    controller = text(spec, "controller")
    causes = [too_long("spec.controller", 250)] if len(controller.encode()) > 250 else []
    causes += domain_path("spec.controller", controller)
    parameters = spec.get("parameters")
    return causes if parameters is None else causes + _parameters(parameters, "spec.parameters")


def _parameters(ref: Obj, path: str) -> list[Cause]:
    causes = _typed(ref, path)
    scope, namespace = ref.get("scope"), ref.get("namespace")
    if scope is None:
        causes.append(required(f"{path}.scope"))
    elif scope not in {"Cluster", "Namespace"}:
        causes.append(not_supported(f"{path}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Namespace":
        detail = "`parameters.scope` is set to 'Namespace'"
        causes += (
            [required(f"{path}.namespace", detail)]
            if namespace is None
            else ruled(f"{path}.namespace", namespace, names.label)
        )
    elif namespace is not None:
        causes.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))
    return causes


def ingress_class_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    controller, was = (text(part(one, "spec"), "controller") for one in (new, old))
    return immutable("spec.controller", controller, was) + ingress_class(new)


def network_policy(obj: Obj) -> list[Cause]:
    return _policy(part(obj, "spec"), ())


def network_policy_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    known = [
        one
        for field, side in (("ingress", "from"), ("egress", "to"))
        for rule in items(part(old, "spec"), field)
        for peer in items(rule, side)
        for one in (text(part(peer, "ipBlock"), "cidr"), *items(part(peer, "ipBlock"), "except"))
    ]
    return _policy(part(new, "spec"), known)


def _policy(spec: Obj, known: Collection[str]) -> list[Cause]:
    causes = label_selector(spec.get("podSelector"), "spec.podSelector")
    for field, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(spec, field)):
            item_path = f"spec.{field}[{index}]"
            for at, one in enumerate(items(rule, "ports")):
                causes += _policy_port(one, f"{item_path}.ports[{at}]")
            for at, peer in enumerate(items(rule, side)):
                causes += _peer(peer, f"{item_path}.{side}[{at}]", known)
    types = items(spec, "policyTypes")
    if len(types) > 2:
        detail = "may not specify more than two policyTypes"
        return [*causes, invalid("spec.policyTypes", types, detail)]
    for index, kind in enumerate(types):
        causes += supported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return causes


def _policy_port(one: Obj, path: str) -> list[Cause]:
    causes = supported(f"{path}.protocol", one.get("protocol"), _PROTOCOLS)
    first, last = one.get("port"), one.get("endPort")
    if isinstance(first, int):
        causes += port(f"{path}.port", first)
        if last is not None:
            if last < first:
                detail = "must be greater than or equal to `port`"
                causes.append(invalid(f"{path}.endPort", first, detail))
            causes += port(f"{path}.endPort", last)
    elif isinstance(first, str):
        if last is not None:
            detail = "may not be specified when `port` is non-numeric"
            causes.append(invalid(f"{path}.endPort", last, detail))
        causes += each(f"{path}.port", first, names.port_name(first))
    elif last is not None:
        detail = "may not be specified when `port` is not specified"
        causes.append(invalid(f"{path}.endPort", last, detail))
    return causes


def _peer(peer: Obj, path: str, known: Collection[str]) -> list[Cause]:
    causes: list[Cause] = []
    found = [
        field for field in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(field) is not None
    ]
    for field in ("podSelector", "namespaceSelector"):
        causes += label_selector(peer.get(field), f"{path}.{field}")
    if "ipBlock" in found:
        causes += _block(peer["ipBlock"], f"{path}.ipBlock", known)
    if not found:
        causes.append(required(path, "must specify a peer"))
    elif "ipBlock" in found and len(found) > 1:
        causes.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return causes


def _block(block: Obj, path: str, known: Collection[str]) -> list[Cause]:
    whole = text(block, "cidr")
    if not whole:
        return [required(f"{path}.cidr")]
    causes = check_network(f"{path}.cidr", whole, known)
    around = network(whole)
    if around is None:
        return causes
    for index, one in enumerate(items(block, "except")):
        item_path = f"{path}.except[{index}]"
        causes += check_network(item_path, one, known)
        inside = network(one)
        if inside is None:
            continue
        within = inside.version == around.version and inside.network_address in around
        if not within or around.prefixlen >= inside.prefixlen:
            causes.append(invalid(item_path, one, "must be a strict subset of `cidr`"))
    return causes
