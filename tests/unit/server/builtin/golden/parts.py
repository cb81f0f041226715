"""What cases are made of: where each kind is served, and pods to put into everything that has pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One object's story; `updates` are (endpoint, body) pairs, the endpoint empty for the object itself."""

    name: str
    path: str
    definition: str
    body: Body
    updates: tuple[tuple[str, Body], ...] = ()


_CORE = "io.k8s.api.core.v1"
_PACKAGES = {
    "v1": ("api/v1", _CORE),
    "apps": ("apis/apps/v1", "io.k8s.api.apps.v1"),
    "batch": ("apis/batch/v1", "io.k8s.api.batch.v1"),
    "autoscaling": ("apis/autoscaling/v1", "io.k8s.api.autoscaling.v1"),
    "autoscaling2": ("apis/autoscaling/v2", "io.k8s.api.autoscaling.v2"),
    "networking": ("apis/networking.k8s.io/v1", "io.k8s.api.networking.v1"),
    "policy": ("apis/policy/v1", "io.k8s.api.policy.v1"),
    "rbac": ("apis/rbac.authorization.k8s.io/v1", "io.k8s.api.rbac.v1"),
    "storage": ("apis/storage.k8s.io/v1", "io.k8s.api.storage.v1"),
    "scheduling": ("apis/scheduling.k8s.io/v1", "io.k8s.api.scheduling.v1"),
    "node": ("apis/node.k8s.io/v1", "io.k8s.api.node.v1"),
    "discovery": ("apis/discovery.k8s.io/v1", "io.k8s.api.discovery.v1"),
    "certificates": ("apis/certificates.k8s.io/v1", "io.k8s.api.certificates.v1"),
    "coordination": ("apis/coordination.k8s.io/v1", "io.k8s.api.coordination.v1"),
    "events": ("apis/events.k8s.io/v1", "io.k8s.api.events.v1"),
    "admission": ("apis/admissionregistration.k8s.io/v1", "io.k8s.api.admissionregistration.v1"),
    "flowcontrol": ("apis/flowcontrol.apiserver.k8s.io/v1", "io.k8s.api.flowcontrol.v1"),
    "extensions": (
        "apis/apiextensions.k8s.io/v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    ),
    "registration": (
        "apis/apiregistration.k8s.io/v1",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
    ),
}
NAMESPACE = "golden"


def case(group: str, plural: str, kind: str, name: str, rest: Body, *updates: tuple[str, Body]) -> Case:
    """Return a case in the golden namespace, or at cluster scope for the plurals listed below."""
    prefix, package = _PACKAGES[group]
    path = f"/{prefix}/{plural}" if plural in _CLUSTER else f"/{prefix}/namespaces/{NAMESPACE}/{plural}"
    changes = tuple((endpoint, _named(name, body)) for endpoint, body in updates)
    return Case(name, path, f"{package}.{kind}", _named(name, rest), changes)


def _named(name: str, rest: Body) -> Body:
    return {**rest, "metadata": {"name": name, **rest.get("metadata", {})}}


_CLUSTER = {
    "namespaces", "nodes", "persistentvolumes", "ingressclasses", "clusterroles", "clusterrolebindings",
    "storageclasses", "csidrivers", "csinodes", "volumeattachments", "priorityclasses", "runtimeclasses",
    "certificatesigningrequests", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
    "validatingadmissionpolicies", "validatingadmissionpolicybindings", "flowschemas",
    "prioritylevelconfigurations", "customresourcedefinitions", "apiservices",
}  # fmt: skip

LABELS = {"app": "web"}
PLAIN: Body = {"containers": [{"name": "c", "image": "registry.example/app"}]}
SELECTOR: Body = {"matchLabels": LABELS}


def template(spec: Body = PLAIN, **metadata: Any) -> Body:
    return {"metadata": {"labels": LABELS, **metadata}, "spec": spec}


RICH: Body = {
    "serviceAccount": "builder",
    "automountServiceAccountToken": False,
    "hostNetwork": True,
    "hostPID": False,
    "nodeSelector": {},
    "terminationGracePeriodSeconds": 0,
    "imagePullSecrets": [{"name": "pull"}, {}],
    "securityContext": {"runAsUser": 0, "fsGroup": 2000, "sysctls": [], "supplementalGroups": [1]},
    "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["tier"],
        }
    ],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "host",
                        "labelSelector": {},
                        "matchLabelKeys": ["tier"],
                        "mismatchLabelKeys": ["app"],
                    },
                }
            ]
        },
        "nodeAffinity": {},
    },
    "volumes": [
        {"name": "empty"},
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
        {"name": "config", "configMap": {"name": "settings", "items": [{"key": "a", "path": "b"}]}},
        {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0, "optional": False}},
        {"name": "path", "hostPath": {"path": "/data"}},
        {
            "name": "down",
            "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]},
        },
        {
            "name": "projected",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token"}},
                    {"configMap": {"name": "c"}},
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "cpu",
                                    "resourceFieldRef": {"resource": "limits.cpu", "containerName": "c"},
                                }
                            ]
                        }
                    },
                ]
            },
        },
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data", "readOnly": False}},
        {
            "name": "ephemeral",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "0.5Gi"}},
                    }
                }
            },
        },
        {"name": "image", "image": {"reference": "registry.example/data:v1"}},
        {"name": "iscsi", "iscsi": {"targetPortal": "p", "iqn": "iqn.2001-04.com.example:s", "lun": 0}},
        {
            "name": "disk",
            "azureDisk": {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/c/d.vhd"},
        },
    ],
    "initContainers": [
        {
            "name": "init",
            "image": "registry.example/init:latest",
            "restartPolicy": "Always",
            "command": [],
            "env": [
                {"name": "EMPTY", "value": ""},
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {
                    "name": "CPU",
                    "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "containerName": "c"}},
                },
                {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "envFrom": [{"prefix": "P_", "configMapRef": {"name": "settings"}}],
        }
    ],
    "containers": [
        {
            "name": "c",
            "image": "registry.example/app:v1",
            "stdin": False,
            "tty": True,
            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "hostPort": 53}],
            "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": 0.1}},
            "livenessProbe": {"httpGet": {"port": 80}, "timeoutSeconds": 0},
            "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5},
            "startupProbe": {"grpc": {"port": 9000}},
            "lifecycle": {"postStart": {"httpGet": {"port": "http", "path": "/up"}}, "stopSignal": "SIGUSR1"},
            "volumeMounts": [{"name": "memory", "mountPath": "/m", "readOnly": False}],
            "securityContext": {"privileged": False, "capabilities": {"add": [], "drop": ["ALL"]}},
        },
        {"name": "d", "image": "registry.example/app@sha256:" + "0" * 64, "terminationMessagePolicy": "File"},
    ],
}
