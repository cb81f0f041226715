"""Small kinds with few rules: Leases, PriorityClasses, RuntimeClasses, APIServices."""

from __future__ import annotations

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import duplicate, forbidden, immutable, invalid, not_supported, required
from lamina.server.kinds.builtin.validate.parts import count, items, part, port, ruled, supported, text
from lamina.server.kinds.builtin.validate.resources import requirements
from lamina.server.kinds.builtin.validate.scheduling import tolerations
from lamina.server.kinds.metadata import check_labels

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-node-critical": 2 * _HIGHEST + 1000, "system-cluster-critical": 2 * _HIGHEST}


def lease(obj: Obj) -> list[Cause]:
    spec = part(obj, "spec")
    causes: list[Cause] = []
    seconds, moves, strategy = (spec.get(f) for f in ("leaseDurationSeconds", "leaseTransitions", "strategy"))
    if seconds is not None and seconds <= 0:
        causes.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if moves is not None and moves < 0:
        causes.append(invalid("spec.leaseTransitions", moves, "must be greater than or equal to 0"))
    if strategy is not None:
        if "/" in strategy:
            causes += ruled("spec.strategy.strategy", strategy, names.qualified)
        elif strategy != "OldestEmulationVersion":
            causes.append(not_supported("spec.strategy.strategy", strategy, ("OldestEmulationVersion",)))
    if text(spec, "preferredHolder") and not strategy:
        causes.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return causes


def lease_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return lease(new)


def priority_class(obj: Obj) -> list[Cause]:
    name, value = text(part(obj, "metadata"), "name"), count(obj, "value")
    causes: list[Cause] = []
    if name.startswith("system-"):
        message = ""
        if name not in _SYSTEM:
            message = f"{name} is not a known system priority class"
        elif value != _SYSTEM[name]:
            message = f"value of {name} PriorityClass must be {_SYSTEM[name]}"
        elif obj.get("globalDefault"):
            message = f"globalDefault of {name} PriorityClass must be false"
        if message:
            detail = "priority class names with 'system-' prefix are reserved for system use only. error:"
            causes.append(forbidden("metadata.name", f"{detail} {message}"))
    elif value > _HIGHEST:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        causes.append(forbidden("value", detail))
    policies = ("PreemptLowerPriority", "Never")
    return causes + supported("preemptionPolicy", obj.get("preemptionPolicy"), policies)


def priority_class_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    causes: list[Cause] = []
    if count(new, "value") != count(old, "value"):
        causes.append(forbidden("value", "may not be changed in an update."))
    return causes + immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def runtime_class(obj: Obj) -> list[Cause]:
    causes = ruled("handler", text(obj, "handler"), names.label)
    if (overhead := obj.get("overhead")) is not None:
        causes += requirements({"limits": part(overhead, "podFixed")}, "overhead")
    scheduling = part(obj, "scheduling")
    causes += check_labels(part(scheduling, "nodeSelector"), "scheduling.nodeSelector")
    found = items(scheduling, "tolerations")
    causes += tolerations(found, "scheduling.tolerations")
    seen: list[list[str]] = []
    for index, one in enumerate(found):
        key = [text(one, field) for field in ("key", "operator", "value", "effect")]
        if key in seen:
            shown = dict(zip(("Key", "Operator", "Value", "Effect"), key, strict=True))
            whole = {**shown, "TolerationSeconds": one.get("tolerationSeconds")}
            causes.append(duplicate(f"scheduling.tolerations[{index}]", whole))
        seen.append(key)
    return causes


def runtime_class_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    return runtime_class(new) + immutable("handler", text(new, "handler"), text(old, "handler"))


def api_service(obj: Obj) -> list[Cause]:
    spec, name = part(obj, "spec"), text(part(obj, "metadata"), "name")
    group, version = text(spec, "group"), text(spec, "version")
    causes: list[Cause] = []
    wanted = f"{version}.{group}"
    if name != wanted and not names.path_segment(name):
        causes.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"'))
    if not group and version != "v1":
        detail = "only v1 may have an empty group and it better be legacy kube"
        causes.append(required("spec.group", detail))
    if group:
        causes += ruled("spec.group", group, names.subdomain)
    causes += ruled("spec.version", version, names.label_1035)
    for field, maximum in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = count(spec, field)
        if not 0 < value <= maximum:
            causes.append(invalid(f"spec.{field}", value, f"must be positive and less than {maximum}"))
    service, bundle, insecure = spec.get("service"), text(spec, "caBundle"), spec.get("insecureSkipTLSVerify")
    if service is None:
        if bundle:
            size = len(bundle) * 3 // 4 - bundle.count("=", -2)
            detail = "local APIServices may not have a caBundle"
            causes.append(invalid("spec.caBundle", f"{size} bytes", detail))
        if insecure:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            causes.append(invalid("spec.insecureSkipTLSVerify", True, detail))
        return causes
    causes += (
        required(f"spec.service.{field}") for field in ("namespace", "name") if not text(service, field)
    )
    number = count(service, "port")
    if message := port("spec.service.port", number):
        rules = ", ".join(names.port_number(number))
        causes.append(invalid(message[0].field, number, f"port is not valid: {rules}"))
    if insecure and bundle:
        causes.append(invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return causes


def api_service_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource != "status":
        return api_service(new)
    causes: list[Cause] = []
    for index, one in enumerate(items(part(new, "status"), "conditions")):
        where = f"status.conditions[{index}].status"
        causes += supported(where, text(one, "status"), ("True", "False", "Unknown"))
    return causes
