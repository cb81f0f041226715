"""The core of the API, and services."""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.server.builtin.golden.parts import LABELS, NAMESPACE, Case, case


def core() -> Iterator[Case]:
    yield case(
        "v1", "configmaps", "ConfigMap", "configmap",
        {"metadata": {"labels": {}, "annotations": {"a": None}}, "data": {"a": "", "b": None},
         "binaryData": {"x": "YWI=", "y": ""}, "immutable": False, "unknown": 1},
        ("", {"data": {}}),
    )  # fmt: skip
    yield case("v1", "configmaps", "ConfigMap", "configmap-empty", {"data": {}, "binaryData": None})
    yield case(
        "v1", "secrets", "Secret", "secret",
        {"data": {"a": "YQ==", "b": None}, "stringData": {"a": "text <é>", "c": ""}},
    )  # fmt: skip
    yield case("v1", "secrets", "Secret", "secret-empty", {"type": ""})
    yield case(
        "v1", "serviceaccounts", "ServiceAccount", "serviceaccount",
        {"secrets": [{"name": "s", "kind": "Secret"}], "imagePullSecrets": [{"name": "p"}],
         "automountServiceAccountToken": False},
    )  # fmt: skip
    yield case(
        "v1", "namespaces", "Namespace", "golden-namespace",
        {"metadata": {"labels": {"a": "b"}}, "spec": {"finalizers": ["example.com/f"]},
         "status": {"phase": "Terminating"}},
        ("", {"metadata": {"labels": {"c": "d"}}, "spec": {"finalizers": []}}),
        ("status", {"spec": {}, "status": {"phase": "Active", "conditions": [
            {"type": "T", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
        ("finalize", {"spec": {"finalizers": ["kubernetes"]}, "status": {}}),
    )  # fmt: skip
    yield case(
        "v1", "nodes", "Node", "golden-node",
        {"spec": {"podCIDR": "10.9.0.0/24", "unschedulable": True}, "status": {"capacity": {"cpu": "4000m"}}},
        ("", {"spec": {"podCIDR": "10.9.0.0/24"}, "status": {"capacity": {"cpu": "1"}}}),
        ("status", {"spec": {"unschedulable": True}, "status": {
            "capacity": {"cpu": "8", "memory": "32768Mi"}, "allocatable": {"cpu": "7500m"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}}),
    )  # fmt: skip
    yield case(
        "v1", "endpoints", "Endpoints", "endpoints",
        {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}], "notReadyAddresses": []}]},
    )  # fmt: skip
    yield case(
        "v1", "limitranges", "LimitRange", "limitrange",
        {"spec": {"limits": [
            {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "10m"},
             "default": {"memory": "512Mi"}},
            {"type": "Pod", "max": {"cpu": "4"}}]}},
    )  # fmt: skip
    yield case(
        "v1", "resourcequotas", "ResourceQuota", "resourcequota",
        {"spec": {"hard": {"pods": 10, "requests.cpu": "1000m"}, "scopes": []}, "status": {"hard": {"pods": "1"}}},
    )  # fmt: skip
    yield case(
        "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "claim",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5Gi"}},
                  "storageClassName": ""}},
        ("status", {"spec": {}, "status": {"phase": "Bound", "capacity": {"storage": "2048Mi"}}}),
    )  # fmt: skip
    yield case(
        "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "claim-copied",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                  "storageClassName": "manual", "dataSource": {"kind": "PersistentVolumeClaim", "name": "claim"}}},
    )  # fmt: skip
    yield case(
        "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "claim-odd",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                  "storageClassName": "manual",
                  "dataSource": {"kind": "Other", "name": "x", "apiGroup": "example.com"}}},
    )  # fmt: skip
    yield case(
        "v1", "persistentvolumes", "PersistentVolume", "golden-volume",
        {"spec": {"capacity": {"storage": "10240Mi"}, "accessModes": ["ReadWriteOnce"],
                  "storageClassName": "manual", "hostPath": {"path": "/d"}},
         "status": {"phase": "Bound"}},
    )  # fmt: skip
    yield case(
        "v1", "events", "Event", "event",
        {"involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE}, "reason": "R", "message": "m",
         "type": "Normal", "count": 1, "source": {"component": "x"},
         "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:01.9Z"},
    )  # fmt: skip
    yield case(
        "events", "events", "Event", "event-new",
        {"regarding": {"kind": "Pod", "name": "p", "namespace": NAMESPACE}, "reason": "R", "note": "n",
         "type": "Warning", "action": "A", "eventTime": "2026-01-01T00:00:00.123456Z",
         "reportingController": "example.com/c", "reportingInstance": "i",
         "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:05.000000Z"}},
    )  # fmt: skip


def services() -> Iterator[Case]:
    web = [{"port": 80}]
    yield case("v1", "services", "Service", "service-plain", {"spec": {"ports": web, "selector": {}}})
    yield case(
        "v1", "services", "Service", "service-nodeport",
        {"spec": {"type": "NodePort", "selector": LABELS, "sessionAffinity": "ClientIP",
                  "ports": [{"name": "a", "port": 80, "targetPort": "http"},
                            {"name": "b", "port": 81, "protocol": "UDP", "targetPort": 0}]}},
        ("", {"spec": {"type": "ClusterIP", "selector": LABELS, "ports": [{"name": "a", "port": 80}]}}),
        ("", {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    )  # fmt: skip
    yield case(
        "v1", "services", "Service", "service-balanced",
        {"spec": {"type": "LoadBalancer", "selector": LABELS, "ports": web, "externalTrafficPolicy": "Local"}},
        ("status", {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}),
        ("", {"spec": {"type": "ClusterIP", "selector": LABELS, "ports": web}}),
    )  # fmt: skip
    yield case(
        "v1", "services", "Service", "service-headless",
        {"spec": {"clusterIP": "None", "ports": web, "selector": LABELS, "publishNotReadyAddresses": True}},
    )  # fmt: skip
    yield case("v1", "services", "Service", "service-bare", {"spec": {"clusterIP": "None"}})
    yield case(
        "v1", "services", "Service", "service-external",
        {"spec": {"type": "ExternalName", "externalName": "example.com", "ports": web}},
    )  # fmt: skip
    yield case(
        "v1", "services", "Service", "service-outside",
        {"spec": {"ports": web, "externalIPs": ["192.0.2.1"], "sessionAffinityConfig": {
            "clientIP": {"timeoutSeconds": 5}}}},
    )  # fmt: skip
