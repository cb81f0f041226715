"""Pods and pod templates."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, invalid, required, too_long
from lamina.server.kinds.builtin.pod_validation_cache import PodValidationCache, content_of
from lamina.server.kinds.builtin.validate.addresses import check_address
from lamina.server.kinds.builtin.validate.containers import (
    Containers,
    all_containers,
    file_key_volumes,
    image_has_no_padding,
)
from lamina.server.kinds.builtin.validate.parts import (
    chosen,
    count,
    items,
    named,
    part,
    relative_path,
    ruled,
    text,
)
from lamina.server.kinds.builtin.validate.resources import amount, pod_resource_name, requirements
from lamina.server.kinds.builtin.validate.scheduling import affinity, spread_constraints, tolerations
from lamina.server.kinds.builtin.validate.security import operating_system, pod_security
from lamina.server.kinds.builtin.validate.volumes import volumes
from lamina.server.kinds.metadata import check_annotations, check_labels

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_MIRROR = "kubernetes.io/config.mirror"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_LARGEST = 2**31 - 1


def pod_spec(spec: Obj, path: str, *, pod_name: str = "", is_pod: bool = False) -> list[Cause]:
    """Validate a pod's spec; a template has no `pod_name`."""
    causes: list[Cause] = []
    if spec.get("terminationGracePeriodSeconds") is None:
        causes.append(required(f"{path}.terminationGracePeriodSeconds"))
    mountable, problem = volumes(spec, pod_name, f"{path}.volumes", is_pod=is_pod)
    causes += problem
    claims = {text(claim, "name") for claim in items(spec, "resourceClaims") if text(claim, "name")}
    causes += _resource_claims(spec, f"{path}.resourceClaims")
    causes += Containers(spec, mountable, claims).check(path)
    causes += _whole_resources(spec, f"{path}.resources")
    causes += _host_network_ports(spec, path, is_pod=is_pod)
    causes += chosen(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTARTS)
    causes += chosen(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    if selector := spec.get("nodeSelector"):
        causes += check_labels(selector, f"{path}.nodeSelector")
    causes += pod_security(spec, f"{path}.securityContext")
    if spec.get("affinity") is not None:
        causes += affinity(spec["affinity"], f"{path}.affinity")
    causes += _dns_config(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(items(spec, "readinessGates")):
        causes += ruled(
            f"{path}.readinessGates[{index}].conditionType", text(gate, "conditionType"), names.qualified
        )
    causes += _gates(spec, f"{path}.schedulingGates")
    if constraints := items(spec, "topologySpreadConstraints"):
        causes += spread_constraints(constraints, f"{path}.topologySpreadConstraints")
    causes += _host_process(spec, path)
    causes += _host_users(spec, path)
    causes += _host_name(spec, path)
    causes += _names(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST:
        causes.append(
            invalid(f"{path}.activeDeadlineSeconds", deadline, names.inclusive_range_error(1, _LARGEST))
        )
    for field in ("hostname", "subdomain"):
        if name := text(spec, field):
            causes += ruled(f"{path}.{field}", name, names.label)
    if found := items(spec, "tolerations"):
        causes += tolerations(found, f"{path}.tolerations")
    causes += _host_aliases(spec, f"{path}.hostAliases")
    if name := text(spec, "priorityClassName"):
        causes += ruled(f"{path}.priorityClassName", name, names.subdomain)
    if (runtime := spec.get("runtimeClassName")) is not None:
        causes += ruled(f"{path}.runtimeClassName", runtime, names.subdomain)
    if (policy := spec.get("preemptionPolicy")) is not None:
        causes += chosen(f"{path}.preemptionPolicy", policy, _PREEMPTION)
    if overhead := spec.get("overhead"):
        causes += requirements({"limits": overhead}, f"{path}.overhead")
    causes += operating_system(spec, path)
    return causes + file_key_volumes(spec, path)


def _names(spec: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for field in ("serviceAccountName", "nodeName"):
        if name := text(spec, field):
            causes += ruled(f"{path}.{field}", name, names.subdomain)
    return causes


def _resource_claims(spec: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, claim in enumerate(items(spec, "resourceClaims")):
        item_path = f"{path}[{index}]"
        name = text(claim, "name")
        if name in seen:
            causes.append(duplicate(f"{item_path}.name", name))
        else:
            causes += named(f"{item_path}.name", name, names.label)
            if name:
                seen.add(name)
        given, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": given, "ResourceClaimTemplateName": template}
        if given is not None and template is not None:
            rule = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            causes.append(invalid(item_path, shown, rule))
        if given is None and template is None:
            rule = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            causes.append(invalid(item_path, shown, rule))
        if given is not None:
            causes += ruled(f"{item_path}.resourceClaimName", given, names.subdomain)
        if template is not None:
            causes += ruled(f"{item_path}.resourceClaimTemplateName", template, names.subdomain)
    return causes


def _whole_resources(spec: Obj, path: str) -> list[Cause]:
    """Validate pod-level resources against those of the containers."""
    resources = spec.get("resources")
    if not resources:
        return []
    if text(part(spec, "os"), "name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    causes = requirements({**resources, "claims": None}, path, (), pod_resource_name)
    if resources.get("claims"):
        causes.insert(0, forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    limits, requests = part(resources, "limits"), part(resources, "requests")
    containers = items(spec, "containers")
    for name, value in requests.items():
        asked = (part(part(container, "resources"), "requests").get(name) for container in containers)
        total = sum((amount(one or "0") for one in asked), Fraction(0))
        if total > amount(value):
            rule = f"must be greater than or equal to aggregate container requests of {_written(total)}"
            causes.append(invalid(f"{path}.requests[{name}]", value, rule))
    for index, container in enumerate(containers):
        for name, value in part(part(container, "resources"), "limits").items():
            if name in limits and amount(value) > amount(limits[name]):
                rule = f"must be less than or equal to pod limits of {limits[name]}"
                causes.append(invalid(f"{path}.containers[{index}][{name}].limits", value, rule))
    return causes


def _written(total: Fraction) -> str:
    return str(total) if total.denominator == 1 else f"{total.numerator * 1000 // total.denominator}m"


def _host_network_ports(spec: Obj, path: str, *, is_pod: bool) -> list[Cause]:
    if not spec.get("hostNetwork"):
        return []
    rule = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}.containers[{index}].ports[{at}].hostPort", count(one, "hostPort"), rule)
        for index, container in enumerate(items(spec, "containers"))
        for at, one in enumerate(items(container, "ports"))
        if (is_pod or count(one, "hostPort")) and count(one, "hostPort") != count(one, "containerPort")
    ]


def _dns_config(spec: Obj, path: str) -> list[Cause]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not items(config, "nameservers"):
            rule = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", rule)]
    if config is None:
        return []
    causes: list[Cause] = []
    servers, searches = items(config, "nameservers"), items(config, "searches")
    if len(servers) > 3:
        causes.append(invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, server in enumerate(servers):
        causes += check_address(f"{path}.nameservers[{index}]", server)
    if len(searches) > 32:
        causes.append(invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        rule = "must not have more than 2048 characters (including spaces) in the search list"
        causes.append(invalid(f"{path}.searches", searches, rule))
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            causes += ruled(f"{path}.searches[{index}]", domain, names.subdomain_with_underscore)
    causes += (
        required(f"{path}.options[{index}]", "must not be empty")
        for index, option in enumerate(items(config, "options"))
        if not text(option, "name")
    )
    return causes


def _gates(spec: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, gate in enumerate(items(spec, "schedulingGates")):
        name = text(gate, "name")
        causes += ruled(f"{path}[{index}]", name, names.qualified)
        if name in seen:
            causes.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return causes


def _host_process(spec: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    whole = part(part(spec, "securityContext"), "windowsOptions").get("hostProcess")
    on = total = 0
    for container, item_path in all_containers(spec, path):
        total += 1
        own = part(part(container, "securityContext"), "windowsOptions").get("hostProcess")
        if whole is not None and own is not None and whole != own:
            shown = "true" if whole else "false"
            rule = f"pod hostProcess value must be identical if both are specified, was {shown}"
            causes.append(invalid(f"{item_path}.securityContext.windowsOptions.hostProcess", own, rule))
        on += bool(whole if own is None else own)
    if on and on != total:
        rule = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        causes.append(invalid(path, "", rule))
    if on and not spec.get("hostNetwork"):
        rule = "hostNetwork must be true if pod contains any hostProcess containers"
        causes.append(invalid(f"{path}.hostNetwork", False, rule))
    return causes


def _host_users(spec: Obj, path: str) -> list[Cause]:
    if spec.get("hostUsers") is not False:
        return []
    rule = "when `hostUsers` is false"
    causes = [
        forbidden(f"{path}.{shown}", rule)
        for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
        if spec.get(field)
    ]
    causes += (
        forbidden(f"{item_path}.volumeDevices", rule)
        for container, item_path in all_containers(spec, path)
        if items(container, "volumeDevices")
    )
    return causes


def _host_name(spec: Obj, path: str) -> list[Cause]:
    name = spec.get("hostnameOverride")
    if name is None:
        return []
    item_path = f"{path}.hostnameOverride"
    causes = [
        forbidden(item_path, f"may not be specified when {field} is true")
        for field in ("setHostnameAsFQDN", "hostNetwork")
        if spec.get(field)
    ]
    if len(name.encode()) > 64:
        causes.append(too_long(item_path, 64))
    return causes + ruled(item_path, name, names.subdomain)


def _host_aliases(spec: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, alias in enumerate(items(spec, "hostAliases")):
        causes += check_address(f"{path}[{index}].ip", text(alias, "ip"))
        for at, host in enumerate(items(alias, "hostnames")):
            causes += ruled(f"{path}[{index}].hostnames[{at}]", host, names.subdomain)
    return causes


def pod_annotations(meta: Obj, spec: Obj, path: str) -> list[Cause]:
    """Validate the annotations that have a meaning in pods."""
    found = part(meta, "annotations")
    if not found:
        return []
    causes: list[Cause] = []
    if _MIRROR in found and not text(spec, "nodeName"):
        rule = "must set spec.nodeName if mirror pod annotation is set"
        causes.append(invalid(f"{path}[{_MIRROR}]", found[_MIRROR], rule))
    if _COST in found and not _is_small_integer(found[_COST]):
        causes.append(invalid(f"{path}[{_COST}]", found[_COST], "must be a 32bit integer"))
    for key, value in found.items():
        if key == _SECCOMP or key.startswith(_CONTAINER_SECCOMP):
            causes += _seccomp_annotation(f"{path}.{key}", value)
        if key.startswith(_APP_ARMOR):
            name = key.removeprefix(_APP_ARMOR)
            if name not in {text(container, "name") for container, _ in all_containers(spec, "")}:
                causes.append(invalid(f"{path}[{key}]", name, "container not found"))
            if value not in {"", "runtime/default", "unconfined"} and not value.startswith("localhost/"):
                causes.append(invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"'))
    return causes


def _is_small_integer(value: str) -> bool:
    digits = value.removeprefix("-") if value != "-0" else ""
    plain = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") and len(digits) < 11
    return plain and -(2**31) <= int(value) <= _LARGEST


def _seccomp_annotation(path: str, value: str) -> list[Cause]:
    if value in {"runtime/default", "docker/default", "unconfined"}:
        return []
    if value.startswith("localhost/"):
        return relative_path(path, value.removeprefix("localhost/"))
    return [invalid(path, value, "must be a valid seccomp profile")]


def template(found: Obj, path: str) -> list[Cause]:
    """Validate a pod template."""
    meta, spec = part(found, "metadata"), part(found, "spec")
    causes = check_labels(part(meta, "labels"), f"{path}.labels")
    causes += check_annotations(part(meta, "annotations"), f"{path}.annotations")
    causes += pod_annotations(meta, spec, f"{path}.annotations")
    causes += pod_spec(spec, f"{path}.spec")
    if items(spec, "ephemeralContainers"):
        rule = "ephemeral containers not allowed in pod template"
        causes.append(forbidden(f"{path}.spec.ephemeralContainers", rule))
    return causes


def pod(found: Obj) -> list[Cause]:
    """Validate a pod that is not a template."""
    meta, spec = part(found, "metadata"), part(found, "spec")
    causes = pod_annotations(meta, spec, "metadata.annotations")
    causes += pod_spec(spec, "spec", pod_name=text(meta, "name"), is_pod=True)
    if not text(spec, "serviceAccountName"):
        rule = "must not be specified when serviceAccountName is not set"
        causes += (
            forbidden(f"spec.volumes[{index}].projected.sources[{at}].serviceAccountToken", rule)
            for index, volume in enumerate(items(spec, "volumes"))
            for at, source in enumerate(items(part(volume, "projected"), "sources"))
            if source.get("serviceAccountToken") is not None
        )
    for field in ("containers", "initContainers"):
        for index, container in enumerate(items(spec, field)):
            causes += image_has_no_padding(container, f"spec.{field}[{index}]")
    return causes


def create(found: Obj) -> list[Cause]:
    content = content_of(found)
    if content in _SOUND:
        return []
    causes = pod(found)
    spec = part(found, "spec")
    if items(spec, "ephemeralContainers"):
        causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if text(spec, "nodeName") and items(spec, "schedulingGates"):
        rule = "cannot be set until all schedulingGates have been cleared"
        causes.append(forbidden("spec.nodeName", rule))
    if not causes:
        _SOUND.add(content)
    return causes


_SOUND: Final = PodValidationCache()
