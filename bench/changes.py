"""The requests of the fleet benchmarks: a replica set of works with three ConfigMaps each, and edits of it."""

from collections.abc import Mapping
from typing import Any

from bench.hub import SETS, WORKS
from bench.measured_server import BenchRequest

ALL: Mapping[str, Any] = {"type": "All", "failureStrategy": "AbortAll"}
TENTH: Mapping[str, Any] = {"type": "Progressive", "progressive": {"maxConcurrency": "10%"}}
HURRY: Mapping[str, Any] = {**ALL, "all": {"progressDeadline": "1s"}}


def _spec(value: str, strategy: Mapping[str, Any], phase: str) -> Mapping[str, Any]:
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"settings-{number}", "namespace": "default"},
            "data": {"value": value, "phase": phase},
        }
        for number in range(3)
    ]
    rule = {"condition": "Progressing", "type": "CEL", "celExpressions": ["object.data.phase != 'done'"]}
    which = {"group": "", "resource": "configmaps", "name": "settings-0", "namespace": "default"}
    return {
        "placementRefs": [{"name": "all", "rolloutStrategy": strategy}],
        "manifestWorkTemplate": {
            "workload": {"manifests": manifests},
            "manifestConfigs": [{"resourceIdentifier": which, "conditionRules": [rule]}],
        },
    }


def replica_set(value: str) -> Mapping[str, Any]:
    """Return the initial replica set, which rolls out to all clusters at once."""
    return {
        "apiVersion": f"{WORKS}/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "app"},
        "spec": _spec(value, ALL, "done"),
    }


def edit(value: str, strategy: Mapping[str, Any], phase: str = "done") -> BenchRequest:
    """Return an edit of the template and of the rollout strategy."""
    return BenchRequest("PATCH", f"{SETS}/app", {"spec": _spec(value, strategy, phase)})
