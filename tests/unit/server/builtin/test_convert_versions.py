"""Conversion: autoscalers in two versions, events in two groups."""

from __future__ import annotations

import json
from typing import Any

from lamina.server.kinds.builtin.convert import (
    autoscaler_from_storage,
    autoscaler_to_storage,
    event_from_storage,
    event_to_storage,
)
from lamina.server.kinds.builtin.decode import decode
from lamina.server.kinds.builtin.defaults import default
from lamina.server.kinds.kind import Findings

PREFIX = "autoscaling.alpha.kubernetes.io"


def autoscaler(version: str, spec: dict[str, Any], **rest: Any) -> dict[str, Any]:
    key = f"autoscaling/{version}.HorizontalPodAutoscaler"
    target = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, **spec}
    made = decode(key, {"metadata": {"name": "a"}, "spec": target, **rest}, Findings())
    default(key, made)
    return made


METRICS = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s"},
            "metric": {"name": "m", "selector": {"matchLabels": {"b": "2", "a": "1"}}},
            "target": {"type": "Value", "value": "5"},
        },
    },
    {
        "type": "Pods",
        "pods": {"metric": {"name": "p"}, "target": {"type": "AverageValue", "averageValue": "1"}},
    },
    {
        "type": "External",
        "external": {"metric": {"name": "e"}, "target": {"type": "AverageValue", "averageValue": "2"}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 70},
        },
    },
]
STATUS = {
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "lastScaleTime": "2026-01-01T00:00:00Z",
    "currentMetrics": [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {"averageUtilization": 55, "averageValue": "250m"}},
        }
    ],
    "conditions": [
        {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R"}
    ],
}


def test_version_one_shows_the_use_of_cpu_and_keeps_the_rest_in_annotations() -> None:
    stored = autoscaler(
        "v2", {"metrics": METRICS, "behavior": {"scaleUp": {"selectPolicy": "Min"}}}, status=STATUS
    )

    shown = autoscaler_from_storage(stored)

    assert shown["spec"]["targetCPUUtilizationPercentage"] == 60
    assert "metrics" not in shown["spec"]
    assert shown["status"] == {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "lastScaleTime": "2026-01-01T00:00:00Z",
        "currentCPUUtilizationPercentage": 55,
    }
    annotations = shown["metadata"]["annotations"]
    assert set(annotations) == {
        f"{PREFIX}/metrics",
        f"{PREFIX}/behavior",
        f"{PREFIX}/current-metrics",
        f"{PREFIX}/conditions",
    }
    assert annotations[f"{PREFIX}/current-metrics"] == (
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":55,"currentAverageValue":"250m"}}]'
    )
    assert json.loads(annotations[f"{PREFIX}/metrics"])[0] == {
        "type": "Object",
        "object": {
            "target": {"kind": "Service", "name": "s"},
            "metricName": "m",
            "targetValue": "5",
            "selector": {"matchLabels": {"a": "1", "b": "2"}},
        },
    }


def test_an_autoscaler_survives_the_way_through_version_one() -> None:
    stored = autoscaler(
        "v2", {"metrics": METRICS, "behavior": {"scaleUp": {"selectPolicy": "Min"}}}, status=STATUS
    )
    kept = json.loads(json.dumps(stored))

    again = autoscaler_to_storage(autoscaler_from_storage(stored))

    # Version 1 puts CPU utilization last.
    first, *others = kept["spec"]["metrics"]
    assert again == {**kept, "spec": {**kept["spec"], "metrics": [*others, first]}}


def test_version_one_without_a_metric_means_eighty_percent_of_cpu() -> None:
    stored = autoscaler_to_storage(autoscaler("v1", {}))

    assert stored["spec"]["metrics"] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }
    ]
    assert autoscaler_from_storage(stored)["spec"]["targetCPUUtilizationPercentage"] == 80


def test_annotations_that_cannot_be_read_count_as_absent() -> None:
    annotations = {f"{PREFIX}/metrics": "no json", f"{PREFIX}/behavior": "[]", "own": "one"}

    stored = autoscaler_to_storage(autoscaler("v1", {}, metadata={"name": "a", "annotations": annotations}))

    assert stored["metadata"]["annotations"] == {"own": "one"}
    assert len(stored["spec"]["metrics"]) == 1
    assert "behavior" not in stored["spec"]


CORE = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "reason": "R",
    "message": "m",
    "source": {"component": "c", "host": "h"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:01Z",
    "count": 2,
    "type": "Normal",
    "eventTime": "2026-01-01T00:00:00.000001Z",
    "series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:02.000000Z"},
    "action": "A",
    "related": {"kind": "Node", "name": "n"},
    "reportingComponent": "r",
    "reportingInstance": "i",
}


def test_an_event_goes_by_other_names_in_the_newer_group() -> None:
    shown = event_from_storage(decode("core/v1.Event", json.loads(json.dumps(CORE)), Findings()))

    assert shown["regarding"] == {"kind": "Pod", "name": "p"}
    assert shown["note"] == "m"
    assert shown["deprecatedSource"] == {"component": "c", "host": "h"}
    assert shown["deprecatedCount"] == 2
    assert shown["reportingController"] == "r"
    assert shown["series"] == CORE["series"]


def test_an_event_survives_the_way_through_the_newer_group() -> None:
    for body in (CORE, {"metadata": {"name": "e"}}):
        stored = decode("core/v1.Event", json.loads(json.dumps(body)), Findings())

        assert event_to_storage(event_from_storage(json.loads(json.dumps(stored)))) == stored


def test_an_event_of_the_newer_group_survives_being_stored() -> None:
    shown = decode(
        "events/v1.Event",
        {"metadata": {"name": "e"}, "note": "n", "eventTime": "2026-01-01T00:00:00.000000Z", "regarding": {}},
        Findings(),
    )

    assert event_from_storage(event_to_storage(json.loads(json.dumps(shown)))) == shown
