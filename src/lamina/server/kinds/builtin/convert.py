"""
Conversion of kinds between their stored and another version.

Autoscalers are stored as autoscaling/v2. Version 1 has one metric, CPU utilization;
it keeps everything else in annotations as JSON, so that no field is lost. Events are
stored as core/v1; events.k8s.io has the same objects with other field names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin.aliases import AUTOSCALER_ANNOTATIONS
from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.builtin.decode_scalars import TypeMismatch
from lamina.server.kinds.builtin.defaults import default
from lamina.server.kinds.builtin.defaults.autoscaling import CPU_PERCENT, cpu_metric
from lamina.server.kinds.builtin.structs import fields, is_struct, meaning
from lamina.server.kinds.kind import Findings

_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS, *_ = AUTOSCALER_ANNOTATIONS

Conversion = Callable[[Made], Made]


def autoscaler_from_storage(stored: Made) -> Made:
    """Convert a stored autoscaler to version 1."""
    spec, status, metadata = stored["spec"], stored["status"], {**stored["metadata"]}
    shown_spec = {
        name: spec[name] for name in ("scaleTargetRef", "minReplicas", "maxReplicas") if name in spec
    }
    shown_status = {
        name: status[name]
        for name in ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
        if name in status
    }
    kept: dict[str, str] = {}
    others: list[Made] = []
    for metric in spec.get("metrics") or ():
        if (percent := _cpu_percent(metric, "target")) is None:
            others.append(_metric_v1(metric, "target"))
        else:
            shown_spec.setdefault("targetCPUUtilizationPercentage", percent)
    current = status.get("currentMetrics") or ()
    for metric in current:
        if (percent := _cpu_percent(metric, "current")) is not None:
            shown_status["currentCPUUtilizationPercentage"] = percent
    if others:
        kept[_METRICS] = _text("autoscaling/v1.MetricSpec", others)
    if current:
        kept[_CURRENT] = _text("autoscaling/v1.MetricStatus", [_metric_v1(one, "current") for one in current])
    if spec.get("behavior") is not None:
        kept[_BEHAVIOR] = _escaped(_behavior_kept(spec["behavior"]))
    if status.get("conditions"):
        conditions = [dict(condition) for condition in status["conditions"]]
        kept[_CONDITIONS] = _text("autoscaling/v1.HorizontalPodAutoscalerCondition", conditions)
    if kept:
        metadata["annotations"] = {**metadata.get("annotations", {}), **kept}
    shown = {**stored, "metadata": metadata, "spec": shown_spec, "status": shown_status}
    return decode("autoscaling/v1.HorizontalPodAutoscaler", shown, Findings())


def autoscaler_to_storage(shown: Made) -> Made:
    """Convert an autoscaler of version 1 to the stored version."""
    spec, status, metadata = {**shown["spec"]}, {**shown["status"]}, {**shown["metadata"]}
    annotations = metadata.get("annotations") or {}
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [cpu_metric(percent)] if percent is not None else []
    if (others := _read(annotations, _METRICS)) is not None:
        metrics = [*(_metric_v2(metric, "target") for metric in others), *metrics]
    spec["metrics"] = metrics or [cpu_metric(CPU_PERCENT)]
    if (behavior := _behavior_read(annotations)) is not None:
        spec["behavior"] = behavior
    percent = status.pop("currentCPUUtilizationPercentage", None)
    if percent is not None:
        value = {"name": "cpu", "current": {"averageUtilization": percent}}
        status["currentMetrics"] = [{"type": "Resource", "resource": value}]
    if (current := _read(annotations, _CURRENT)) is not None:
        status["currentMetrics"] = [_metric_v2(metric, "current") for metric in current]
    if (conditions := _read(annotations, _CONDITIONS)) is not None:
        status["conditions"] = conditions
    if annotations:
        metadata["annotations"] = dict(annotations)
    stored = {**shown, "metadata": metadata, "spec": spec, "status": status}
    made = decode("autoscaling/v2.HorizontalPodAutoscaler", stored, Findings())
    default("autoscaling/v2.HorizontalPodAutoscaler", made)
    return made


def _cpu_percent(metric: Obj, side: str) -> int | None:
    resource = metric.get("resource")
    if metric.get("type") != "Resource" or resource is None or resource.get("name") != "cpu":
        return None
    percent: int | None = resource[side].get("averageUtilization")
    return percent


def _metric_v1(metric: Obj, side: str) -> Made:
    """Convert a metric from version 2 to version 1; `side` is target or current."""
    made: Made = {"type": metric["type"]}
    for kind, inner in metric.items():
        if not isinstance(inner, Mapping):
            continue
        amount = inner[side]
        known = inner.get("metric") or {}
        value, average = f"{side}Value", f"{side}AverageValue"
        if kind == "object":
            made[kind] = {
                "target": inner["describedObject"],
                "metricName": known["name"],
                value: amount.get("value", "0"),
                "selector": known.get("selector"),
                "averageValue": amount.get("averageValue"),
            }
        elif kind == "pods":
            made[kind] = {
                "metricName": known["name"],
                average: amount.get("averageValue", "0"),
                "selector": known.get("selector"),
            }
        elif kind == "external":
            made[kind] = {
                "metricName": known["name"],
                "metricSelector": known.get("selector"),
                value: amount.get("value"),
                average: amount.get("averageValue"),
            }
        else:
            made[kind] = {
                "name": inner["name"],
                f"{side}AverageUtilization": amount.get("averageUtilization"),
                average: amount.get("averageValue"),
                "container": inner.get("container"),
            }
            if kind == "resource":
                del made[kind]["container"]
    return made


def _metric_v2(metric: Obj, side: str) -> Made:
    """Convert a metric from version 1 to version 2."""
    made: Made = {"type": metric.get("type", "")}
    for kind, inner in metric.items():
        if not isinstance(inner, Mapping):
            continue
        selector = inner.get("metricSelector") if kind == "external" else inner.get("selector")
        known = {"name": inner.get("metricName", ""), "selector": selector}
        value, average = inner.get(f"{side}Value"), inner.get(f"{side}AverageValue")
        percent = inner.get(f"{side}AverageUtilization")
        if kind == "object":
            average = inner.get("averageValue")
            made[kind] = {"describedObject": inner.get("target"), "metric": known}
            wanted = "Value" if average is None else "AverageValue"
        elif kind == "pods":
            made[kind] = {"metric": known}
            wanted = "AverageValue"
        elif kind == "external":
            made[kind] = {"metric": known}
            wanted = "AverageValue" if value is None else "Value"
        else:
            made[kind] = {name: inner[name] for name in ("name", "container") if name in inner}
            wanted = "AverageValue" if percent is None else "Utilization"
        amount = {"value": value, "averageValue": average, "averageUtilization": percent}
        made[kind][side] = {"type": wanted, **amount} if side == "target" else amount
    return made


def _behavior_kept(behavior: Obj) -> Made:
    """Return a behavior with the names of the annotation, which are those of Go's fields."""
    return {
        side[0].upper() + side[1:]: rules
        and {
            "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
            "SelectPolicy": rules.get("selectPolicy"),
            "Policies": [
                {"Type": one["type"], "Value": one["value"], "PeriodSeconds": one["periodSeconds"]}
                for one in rules.get("policies") or ()
            ]
            or None,
            "Tolerance": rules.get("tolerance"),
        }
        for side in ("scaleUp", "scaleDown")
        for rules in (behavior.get(side),)
    }


def _behavior_read(annotations: Obj) -> Made | None:
    try:
        kept = orjson.loads(annotations.get(_BEHAVIOR) or "null")
        lowered = _lowercase_keys(kept) if isinstance(kept, dict) else {}
        made = decode("autoscaling/v2.HorizontalPodAutoscalerBehavior", lowered, Findings())
    except (orjson.JSONDecodeError, TypeMismatch):
        return None
    return made or None


def _lowercase_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[:1].lower() + name[1:]: _lowercase_keys(inner) for name, inner in value.items()}
    return [_lowercase_keys(inner) for inner in value] if isinstance(value, list) else value


_STRUCTS: Final = {
    _METRICS: "autoscaling/v1.MetricSpec",
    _CURRENT: "autoscaling/v1.MetricStatus",
    _CONDITIONS: "autoscaling/v1.HorizontalPodAutoscalerCondition",
}


def _read(annotations: Obj, name: str) -> list[Made] | None:
    """Return the content of an annotation; an invalid one counts as absent."""
    try:
        kept = orjson.loads(annotations[name])
        return [decode(_STRUCTS[name], one, Findings()) for one in kept] if isinstance(kept, list) else None
    except (KeyError, orjson.JSONDecodeError, TypeMismatch):
        return None


def _text(key: str, values: list[Made]) -> str:
    """Return structs as JSON in Go's encoding."""
    return _escaped([_in_order(key, decode(key, value, Findings())) for value in values])


def _in_order(go_type: str, value: Any) -> Any:
    known = meaning(go_type.removeprefix("*"))
    if isinstance(value, dict) and is_struct(known):
        return {
            field.name: _in_order(field.type, value[field.name])
            for field in fields(known)
            if field.name in value
        }
    if isinstance(value, dict):
        return {name: value[name] for name in sorted(value)}
    if isinstance(value, list):
        return [_in_order(known.removeprefix("[]"), one) for one in value]
    return value


def _escaped(value: Any) -> str:
    text = orjson.dumps(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


_EVENT_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES: Final = {shown: stored for stored, shown in _EVENT_NAMES.items()}


def event_from_storage(stored: Made) -> Made:
    """Convert a stored event to events.k8s.io."""
    shown = {_EVENT_NAMES.get(name, name): _deep_copy(value) for name, value in stored.items()}
    return decode("events/v1.Event", shown, Findings())


def event_to_storage(shown: Made) -> Made:
    """Convert an event of events.k8s.io to the stored version."""
    stored = {_CORE_NAMES.get(name, name): _deep_copy(value) for name, value in shown.items()}
    return decode("core/v1.Event", stored, Findings())


def _deep_copy(value: Any) -> Any:
    return {**value} if isinstance(value, dict) else value


FROM_STORAGE: Final[Mapping[str, Conversion]] = {
    "autoscaling/v1.HorizontalPodAutoscaler": autoscaler_from_storage,
    "events/v1.Event": event_from_storage,
}
TO_STORAGE: Final[Mapping[str, Conversion]] = {
    "autoscaling/v1.HorizontalPodAutoscaler": autoscaler_to_storage,
    "events/v1.Event": event_to_storage,
}
