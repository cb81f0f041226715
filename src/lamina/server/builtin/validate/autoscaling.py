"""HorizontalPodAutoscalers, and the scale of things."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.errors import Cause
from lamina.objects import names
from lamina.objects.types import Obj
from lamina.server.builtin.validate.parts import count, items, named, part, supported, text
from lamina.server.builtin.validate.resources import amount, container_resource_name
from lamina.server.fields import forbidden, invalid, not_negative, not_supported, required

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def scale(obj: Obj) -> list[Cause]:
    """Check the scale that is asked for."""
    return not_negative("spec.replicas", part(obj, "spec").get("replicas"))


def autoscaler(obj: Obj) -> list[Cause]:
    return _spec(_current(part(obj, "spec")), None)


def autoscaler_update(new: Obj, old: Obj, subresource: str) -> list[Cause]:
    if subresource == "status":
        status = part(new, "status")
        said = not_negative("status.currentReplicas", status.get("currentReplicas"))
        return said + not_negative("status.desiredReplicas", status.get("desiredReplicas"))
    return _spec(_current(part(new, "spec")), part(old, "spec"))


def _current(spec: Obj) -> Obj:
    """Return a spec of the first version as the second has it."""
    share = spec.get("targetCPUUtilizationPercentage")
    if share is None:
        return spec
    target = {"type": "Utilization", "averageUtilization": share}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    return {**spec, "metrics": [metric, *items(spec, "metrics")]}


def _spec(spec: Obj, before: Obj | None) -> list[Cause]:
    said: list[Cause] = []
    least, most = spec.get("minReplicas"), count(spec, "maxReplicas")
    bound = 0 if before is not None and before.get("minReplicas") == 0 else 1
    if least is not None and least < bound:
        said.append(invalid("spec.minReplicas", least, f"must be greater than or equal to {bound}"))
    if most < 1:
        said.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    if least is not None and most < least:
        said.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = part(spec, "scaleTargetRef")
    was = part(before or {}, "scaleTargetRef")
    same = before is not None and all(text(target, f) == text(was, f) for f in ("apiVersion", "kind"))
    core = text(target, "kind") == "ReplicationController"
    said += _reference(target, "spec.scaleTargetRef", any_version=same, core=core)
    said += _metrics(spec)
    for field in ("scaleUp", "scaleDown"):
        if (rules := part(spec, "behavior").get(field)) is not None:
            said += _behaviour(rules, f"spec.behavior.{field}")
    return said


def _reference(ref: Obj, path: str, *, any_version: bool = False, core: bool = False) -> list[Cause]:
    said = named(f"{path}.kind", text(ref, "kind"), names.path_segment)
    said += named(f"{path}.name", text(ref, "name"), names.path_segment)
    version = text(ref, "apiVersion")
    if any_version:
        return said
    if version.count("/") > 1:
        said.append(invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    elif not core and not version.rpartition("/")[0]:
        said.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return said


def _metrics(spec: Obj) -> list[Cause]:
    said: list[Cause] = []
    metrics = items(spec, "metrics")
    for index, metric in enumerate(metrics):
        said += _metric(metric, f"spec.metrics[{index}]")
    if spec.get("minReplicas") == 0 and not any(
        text(one, "type") in {"Object", "External"} for one in metrics
    ):
        told = "must specify at least one Object or External metric to support scaling to zero replicas"
        said.append(forbidden("spec.metrics", told))
    return said


def _metric(metric: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    kind = text(metric, "type")
    if not kind:
        said.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _SOURCES:
        said.append(not_supported(f"{path}.type", kind, _SOURCES))
    given = [
        f
        for f in ("object", "external", "pods", "resource", "containerResource")
        if metric.get(f) is not None
    ]
    if given:
        said += _RULES[given[0]](metric[given[0]], f"{path}.{given[0]}")
    expected = _SOURCES.get(kind)
    if expected is None:
        said.append(not_supported(f"{path}.type", kind, _SOURCES))
    elif expected not in given:
        told = "must populate information for the given metric source"
        said.append(required(f"{path}.{expected}", told))
    if len(given) != 1:
        told = "must populate the given metric source only"
        said += (forbidden(f"{path}.{field}", told) for field in given if field != expected)
    return said


def _target(target: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    kind = text(target, "type")
    if not kind:
        said.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in {"Utilization", "Value", "AverageValue"}:
        said.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and amount(value) <= 0:
            said.append(invalid(f"{path}.{field}", value, "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        said.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return said


def _identifier(source: Obj, path: str) -> list[Cause]:
    name = text(part(source, "metric"), "name")
    if not name:
        return [required(f"{path}.metric.name", "must specify a metric name")]
    return named(f"{path}.metric.name", name, names.path_segment)


def _object(source: Obj, path: str) -> list[Cause]:
    target = part(source, "target")
    said = _reference(part(source, "describedObject"), f"{path}.describedObject", core=True)
    said += _identifier(source, path) + _target(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        told = "must set either a target value or averageValue"
        said.append(required(f"{path}.target.averageValue", told))
    return said


def _external(source: Obj, path: str) -> list[Cause]:
    target = part(source, "target")
    said = _identifier(source, path) + _target(target, f"{path}.target")
    value, each_value = target.get("value"), target.get("averageValue")
    if value is None and each_value is None:
        told = "must set either a target value for metric or a per-pod target"
        said.append(required(f"{path}.target.averageValue", told))
    if value is not None and each_value is not None:
        told = "may not set both a target value for metric and a per-pod target"
        said.append(forbidden(f"{path}.target.value", told))
    return said


def _pods(source: Obj, path: str) -> list[Cause]:
    target = part(source, "target")
    said = _identifier(source, path) + _target(target, f"{path}.target")
    if target.get("averageValue") is None:
        told = "must specify a positive target averageValue"
        said.append(required(f"{path}.target.averageValue", told))
    return said


def _resource(source: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    if not text(source, "name"):
        said.append(required(f"{path}.name", "must specify a resource name"))
    return said + _raw_or_share(part(source, "target"), f"{path}.target")


def _container_resource(source: Obj, path: str) -> list[Cause]:
    name, container = text(source, "name"), text(source, "container")
    said = (
        container_resource_name(f"{path}.name", name)
        if name
        else [required(f"{path}.name", "must specify a resource name")]
    )
    said += (
        named(f"{path}.container", container, names.label)
        if container
        else [required(f"{path}.container", "must specify a container")]
    )
    return said + _raw_or_share(part(source, "target"), f"{path}.target")


def _raw_or_share(target: Obj, path: str) -> list[Cause]:
    said = _target(target, path)
    share, value = target.get("averageUtilization"), target.get("averageValue")
    if share is None and value is None:
        told = "must set either a target raw value or a target utilization"
        said.append(required(f"{path}.averageUtilization", told))
    if share is not None and value is not None:
        told = "may not set both a target raw value and a target utilization"
        said.append(forbidden(f"{path}.averageValue", told))
    return said


_RULES: dict[str, Callable[[Obj, str], list[Cause]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _behaviour(rules: Obj, path: str) -> list[Cause]:
    said: list[Cause] = []
    window: Any = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        told = "must be greater than or equal to zero"
        said.append(invalid(f"{path}.stabilizationWindowSeconds", window, told))
    if window is not None and window > 3600:
        told = "must be less than or equal to 3600"
        said.append(invalid(f"{path}.stabilizationWindowSeconds", window, told))
    said += supported(f"{path}.selectPolicy", rules.get("selectPolicy"), ("Disabled", "Max", "Min"))
    policies = items(rules, "policies")
    if not policies:
        said.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        here = f"{path}.policies[{index}]"
        said += supported(f"{here}.type", text(policy, "type"), ("Percent", "Pods"))
        for field in ("value", "periodSeconds"):
            if count(policy, field) <= 0:
                said.append(invalid(f"{here}.{field}", count(policy, field), "must be greater than zero"))
        if count(policy, "periodSeconds") > 1800:
            told = "must be less than or equal to 1800"
            said.append(invalid(f"{here}.periodSeconds", policy["periodSeconds"], told))
    tolerance = rules.get("tolerance")
    if tolerance is not None and amount(tolerance) < 0:
        said.append(invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0"))
    return said
