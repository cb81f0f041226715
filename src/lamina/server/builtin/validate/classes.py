"""Small kinds of one rule or two: Leases, PriorityClasses, RuntimeClasses, APIServices."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.parts import count, items, part, port, ruled, supported, text
from lamina.server.builtin.validate.resources import requirements
from lamina.server.builtin.validate.scheduling import tolerations
from lamina.server.fields import duplicate, forbidden, immutable, invalid, not_supported, required
from lamina.server.metadata import check_labels

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-node-critical": 2 * _HIGHEST + 1000, "system-cluster-critical": 2 * _HIGHEST}


def lease(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    said: list[Cause] = []
    seconds, moves, strategy = (spec.get(f) for f in ("leaseDurationSeconds", "leaseTransitions", "strategy"))
    if seconds is not None and seconds <= 0:
        said.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if moves is not None and moves < 0:
        said.append(invalid("spec.leaseTransitions", moves, "must be greater than or equal to 0"))
    if strategy is not None:
        if "/" in strategy:
            said += ruled("spec.strategy.strategy", strategy, names.qualified)
        elif strategy != "OldestEmulationVersion":
            said.append(not_supported("spec.strategy.strategy", strategy, ("OldestEmulationVersion",)))
    if text(spec, "preferredHolder") and not strategy:
        said.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return said


def lease_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return lease(new)


def priority_class(obj: Obj) -> list[Cause]:
    name, value = text(part(obj, "metadata"), "name"), count(obj, "value")
    said: list[Cause] = []
    if name.startswith("system-"):
        wrong = ""
        if name not in _SYSTEM:
            wrong = f"{name} is not a known system priority class"
        elif value != _SYSTEM[name]:
            wrong = f"value of {name} PriorityClass must be {_SYSTEM[name]}"
        elif obj.get("globalDefault"):
            wrong = f"globalDefault of {name} PriorityClass must be false"
        if wrong:
            told = "priority class names with 'system-' prefix are reserved for system use only. error:"
            said.append(forbidden("metadata.name", f"{told} {wrong}"))
    elif value > _HIGHEST:
        told = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        said.append(forbidden("value", told))
    policies = ("PreemptLowerPriority", "Never")
    return said + supported("preemptionPolicy", obj.get("preemptionPolicy"), policies)


def priority_class_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    said: list[Cause] = []
    if count(new, "value") != count(old, "value"):
        said.append(forbidden("value", "may not be changed in an update."))
    return said + immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def runtime_class(obj: Obj) -> list[Cause]:
    said = ruled("handler", text(obj, "handler"), names.label)
    if (overhead := obj.get("overhead")) is not None:
        said += requirements({"limits": part(overhead, "podFixed")}, "overhead")
    scheduling = part(obj, "scheduling")
    said += check_labels(part(scheduling, "nodeSelector"), "scheduling.nodeSelector")
    found = items(scheduling, "tolerations")
    said += tolerations(found, "scheduling.tolerations")
    seen: list[list[str]] = []
    for index, one in enumerate(found):
        key = [text(one, field) for field in ("key", "operator", "value", "effect")]
        if key in seen:
            shown = dict(zip(("Key", "Operator", "Value", "Effect"), key, strict=True))
            whole = {**shown, "TolerationSeconds": one.get("tolerationSeconds")}
            said.append(duplicate(f"scheduling.tolerations[{index}]", whole))
        seen.append(key)
    return said


def runtime_class_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return runtime_class(new) + immutable("handler", text(new, "handler"), text(old, "handler"))


def api_service(obj: Obj) -> list[Cause]:
    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    group, version = text(spec, "group"), text(spec, "version")
    said: list[Cause] = []
    wanted = f"{version}.{group}"
    if name != wanted and not names.path_segment(name):
        said.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"'))
    if not group and version != "v1":
        told = "only v1 may have an empty group and it better be legacy kube"
        said.append(required("spec.group", told))
    if group:
        said += ruled("spec.group", group, names.subdomain)
    said += ruled("spec.version", version, names.label_1035)
    for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = count(spec, field)
        if not 0 < value <= most:
            said.append(invalid(f"spec.{field}", value, f"must be positive and less than {most}"))
    service, bundle, insecure = spec.get("service"), text(spec, "caBundle"), spec.get("insecureSkipTLSVerify")
    if service is None:
        if bundle:
            size = len(bundle) * 3 // 4 - bundle.count("=", -2)
            told = "local APIServices may not have a caBundle"
            said.append(invalid("spec.caBundle", f"{size} bytes", told))
        if insecure:
            told = "local APIServices may not have insecureSkipTLSVerify"
            said.append(invalid("spec.insecureSkipTLSVerify", True, told))
        return said
    said += (required(f"spec.service.{field}") for field in ("namespace", "name") if not text(service, field))
    number = count(service, "port")
    if wrong := port("spec.service.port", number):
        rules = ", ".join(names.port_number(number))
        said.append(invalid(wrong[0].field, number, f"port is not valid: {rules}"))
    if insecure and bundle:
        said.append(invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return said


def api_service_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return api_service(new)
    said: list[Cause] = []
    for index, one in enumerate(items(part(new, "status"), "conditions")):
        where = f"status.conditions[{index}].status"
        said += supported(where, text(one, "status"), ("True", "False", "Unknown"))
    return said
