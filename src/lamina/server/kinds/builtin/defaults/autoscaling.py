"""Defaults of HorizontalPodAutoscalers, in both versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lamina.objects.types import Made

CPU_PERCENT: Final = 80
"""The default target of CPU utilization."""


def cpu_metric(percent: int) -> Made:
    """Return the metric of a target CPU utilization."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _v1(autoscaler: Made) -> None:
    # The conversion sets the metric, because only it reads the ones in annotations.
    autoscaler["spec"].setdefault("minReplicas", 1)


def _v2(autoscaler: Made) -> None:
    spec = autoscaler["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_PERCENT)]
    behavior = spec.get("behavior")
    if behavior is not None:
        behavior["scaleUp"] = {**_scale_up(), **(behavior.get("scaleUp") or {})}
        behavior["scaleDown"] = {**_scale_down(), **(behavior.get("scaleDown") or {})}


def _scale_up() -> dict[str, Any]:
    return {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    }


def _scale_down() -> dict[str, Any]:
    return {
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    }


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "autoscaling/v1.HorizontalPodAutoscaler": _v1,
    "autoscaling/v2.HorizontalPodAutoscaler": _v2,
}
