"""HorizontalPodAutoscalers and Scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.field_errors import forbidden, invalid, not_negative, not_supported, required
from lamina.server.kinds.builtin.validate.parts import count, items, named, part, supported, text
from lamina.server.kinds.builtin.validate.resources import amount, container_resource_name

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def scale(obj: Obj) -> list[Cause]:
    """Validate a Scale."""
    return not_negative("spec.replicas", part(obj, "spec").get("replicas"))


def autoscaler(obj: Obj) -> list[Cause]:
    return _spec(_current(part(obj, "spec")), None)


def autoscaler_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        status = part(new, "status")
        causes = not_negative("status.currentReplicas", status.get("currentReplicas"))
        return causes + not_negative("status.desiredReplicas", status.get("desiredReplicas"))
    return _spec(_current(part(new, "spec")), part(old, "spec"))


def _current(spec: Obj) -> Obj:
    """Return a spec of version 1 in version 2."""
    share = spec.get("targetCPUUtilizationPercentage")
    if share is None:
        return spec
    target = {"type": "Utilization", "averageUtilization": share}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    return {**spec, "metrics": [metric, *items(spec, "metrics")]}


def _spec(spec: Obj, before: Obj | None) -> list[Cause]:
    causes: list[Cause] = []
    minimum, maximum = spec.get("minReplicas"), count(spec, "maxReplicas")
    bound = 0 if before is not None and before.get("minReplicas") == 0 else 1
    if minimum is not None and minimum < bound:
        causes.append(invalid("spec.minReplicas", minimum, f"must be greater than or equal to {bound}"))
    if maximum < 1:
        causes.append(invalid("spec.maxReplicas", maximum, "must be greater than 0"))
    if minimum is not None and maximum < minimum:
        causes.append(invalid("spec.maxReplicas", maximum, "must be greater than or equal to `minReplicas`"))
    target = part(spec, "scaleTargetRef")
    was = part(before or {}, "scaleTargetRef")
    same = before is not None and all(text(target, f) == text(was, f) for f in ("apiVersion", "kind"))
    core = text(target, "kind") == "ReplicationController"
    causes += _reference(target, "spec.scaleTargetRef", any_version=same, core=core)
    causes += _metrics(spec)
    for field in ("scaleUp", "scaleDown"):
        if (rules := part(spec, "behavior").get(field)) is not None:
            causes += _behaviour(rules, f"spec.behavior.{field}")
    return causes


def _reference(ref: Obj, path: str, *, any_version: bool = False, core: bool = False) -> list[Cause]:
    causes = named(f"{path}.kind", text(ref, "kind"), names.path_segment)
    causes += named(f"{path}.name", text(ref, "name"), names.path_segment)
    version = text(ref, "apiVersion")
    if any_version:
        return causes
    if version.count("/") > 1:
        causes.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    elif not core and not version.rpartition("/")[0]:
        causes.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return causes


def _metrics(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    metrics = items(spec, "metrics")
    for index, metric in enumerate(metrics):
        causes += _metric(metric, f"spec.metrics[{index}]")
    if spec.get("minReplicas") == 0 and not any(
        text(one, "type") in {"Object", "External"} for one in metrics
    ):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        causes.append(forbidden("spec.metrics", detail))
    return causes


def _metric(metric: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    kind = text(metric, "type")
    if not kind:
        causes.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        causes.append(not_supported(f"{path}.type", kind, _SOURCES))
    given = [
        f
        for f in ("object", "external", "pods", "resource", "containerResource")
        if metric.get(f) is not None
    ]
    if given:
        causes += _RULES[given[0]](metric[given[0]], f"{path}.{given[0]}")
    expected = _SOURCES.get(kind)
    if expected is None:
        causes.append(not_supported(f"{path}.type", kind, _SOURCES))
    elif expected not in given:
        detail = "must populate information for the given metric source"
        causes.append(required(f"{path}.{expected}", detail))
    if len(given) != 1:
        detail = "must populate the given metric source only"
        causes += (forbidden(f"{path}.{field}", detail) for field in given if field != expected)
    return causes


def _target(target: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    kind = text(target, "type")
    if not kind:
        causes.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in {"Utilization", "Value", "AverageValue"}:
        causes.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and amount(value) <= 0:
            causes.append(invalid(f"{path}.{field}", value, "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        causes.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return causes


def _identifier(source: Obj, path: str) -> list[Cause]:
    name = text(part(source, "metric"), "name")
    if not name:
        return [required(f"{path}.metric.name", "must specify a metric name")]
    return named(f"{path}.metric.name", name, names.path_segment)


def _object(source: Obj, path: str) -> list[Cause]:
    target = part(source, "target")
    causes = _reference(part(source, "describedObject"), f"{path}.describedObject", core=True)
    causes += _identifier(source, path) + _target(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        detail = "must set either a target value or averageValue"
        causes.append(required(f"{path}.target.averageValue", detail))
    return causes


def _external(source: Obj, path: str) -> list[Cause]:
    target = part(source, "target")
    causes = _identifier(source, path) + _target(target, f"{path}.target")
    value, each_value = target.get("value"), target.get("averageValue")
    if value is None and each_value is None:
        detail = "must set either a target value for metric or a per-pod target"
        causes.append(required(f"{path}.target.averageValue", detail))
    if value is not None and each_value is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        causes.append(forbidden(f"{path}.target.value", detail))
    return causes


def _pods(source: Obj, path: str) -> list[Cause]:
    target = part(source, "target")
    causes = _identifier(source, path) + _target(target, f"{path}.target")
    if target.get("averageValue") is None:
        detail = "must specify a positive target averageValue"
        causes.append(required(f"{path}.target.averageValue", detail))
    return causes


def _resource(source: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    if not text(source, "name"):
        causes.append(required(f"{path}.name", "must specify a resource name"))
    return causes + _raw_or_share(part(source, "target"), f"{path}.target")


def _container_resource(source: Obj, path: str) -> list[Cause]:
    name, container = text(source, "name"), text(source, "container")
    causes = (
        container_resource_name(f"{path}.name", name)
        if name
        else [required(f"{path}.name", "must specify a resource name")]
    )
    causes += (
        named(f"{path}.container", container, names.label)
        if container
        else [required(f"{path}.container", "must specify a container")]
    )
    return causes + _raw_or_share(part(source, "target"), f"{path}.target")


def _raw_or_share(target: Obj, path: str) -> list[Cause]:
    causes = _target(target, path)
    share, value = target.get("averageUtilization"), target.get("averageValue")
    if share is None and value is None:
        detail = "must set either a target raw value or a target utilization"
        causes.append(required(f"{path}.averageUtilization", detail))
    if share is not None and value is not None:
        detail = "may not set both a target raw value and a target utilization"
        causes.append(forbidden(f"{path}.averageValue", detail))
    return causes


_RULES: dict[str, Callable[[Obj, str], list[Cause]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _behaviour(rules: Obj, path: str) -> list[Cause]:
    causes: list[Cause] = []
    window: Any = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        detail = "must be greater than or equal to zero"
        causes.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    if window is not None and window > 3600:
        detail = "must be less than or equal to 3600"
        causes.append(invalid(f"{path}.stabilizationWindowSeconds", window, detail))
    causes += supported(f"{path}.selectPolicy", rules.get("selectPolicy"), ("Disabled", "Max", "Min"))
    policies = items(rules, "policies")
    if not policies:
        causes.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        item_path = f"{path}.policies[{index}]"
        causes += supported(f"{item_path}.type", text(policy, "type"), ("Percent", "Pods"))
        for field in ("value", "periodSeconds"):
            if count(policy, field) <= 0:
                causes.append(
                    invalid(f"{item_path}.{field}", count(policy, field), "must be greater than zero")
                )
        if count(policy, "periodSeconds") > 1800:
            detail = "must be less than or equal to 1800"
            causes.append(invalid(f"{item_path}.periodSeconds", policy["periodSeconds"], detail))
    tolerance = rules.get("tolerance")
    if tolerance is not None and amount(tolerance) < 0:
        causes.append(invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0"))
    return causes
