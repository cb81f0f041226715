"""
Objects to send to a real server, and to us.

A case is a kind's path, a body to create, and bodies to change it with, each
sent to the object (PUT) or to one of its endpoints. Names begin with the name
of the case. Bodies are odd on purpose: zeros, nulls and empty things are what
decoding is about.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def _case(group: str, plural: str, kind: str, name: str, rest: Body, *updates: tuple[str, Body]) -> Case:
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

_LABELS = {"app": "web"}
_PLAIN: Body = {"containers": [{"name": "c", "image": "registry.example/app"}]}
_SELECTOR: Body = {"matchLabels": _LABELS}


def _template(spec: Body = _PLAIN, **metadata: Any) -> Body:
    return {"metadata": {"labels": _LABELS, **metadata}, "spec": spec}


_RICH: Body = {
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


def _workloads() -> Iterator[Case]:
    simple = {"selector": _SELECTOR, "template": _template()}
    rich = {
        "selector": _SELECTOR,
        "template": _template(_RICH, annotations={"pod.beta.kubernetes.io/init-containers": "[]"}),
    }
    yield _case(
        "apps", "deployments", "Deployment", "deployment-plain", {"spec": {**simple, "paused": True}},
        ("", {"spec": {**simple, "paused": True, "replicas": 0}}),
        ("", {"metadata": {"annotations": {"a": "b"}}, "spec": {**simple, "paused": True, "replicas": 0}}),
        ("status", {"metadata": {"labels": {"x": "y"}, "annotations": {"c": "d"}}, "spec": {"replicas": 9},
                    "status": {"replicas": 4, "conditions": [{"type": "T", "status": "True"}]}}),
    )  # fmt: skip
    yield _case(
        "apps", "deployments", "Deployment", "deployment-rich",
        {"spec": {**rich, "replicas": 0, "paused": True, "strategy": {"type": "Recreate"}, "minReadySeconds": 0},
         "status": {"replicas": 3}},
    )  # fmt: skip
    yield _case(
        "apps", "deployments", "Deployment", "deployment-paced",
        {"spec": {**simple, "paused": True, "strategy": {"rollingUpdate": {"maxSurge": 1}}}},
    )  # fmt: skip
    yield _case("apps", "replicasets", "ReplicaSet", "replicaset", {"spec": {**rich, "replicas": 0}})
    yield _case(
        "apps", "statefulsets", "StatefulSet", "statefulset-plain",
        {"spec": {**simple, "replicas": 0, "serviceName": "s",
                  "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {
                      "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1000Mi"}}}}]}},
    )  # fmt: skip
    yield _case(
        "apps", "statefulsets", "StatefulSet", "statefulset-ondelete",
        {"spec": {**simple, "replicas": 0, "updateStrategy": {"type": "OnDelete"}, "ordinals": {"start": 0},
                  "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}},
    )  # fmt: skip
    yield _case(
        "apps", "statefulsets", "StatefulSet", "statefulset-rolling",
        {"spec": {**simple, "replicas": 0,
                  "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}},
    )  # fmt: skip
    nowhere = {"selector": _SELECTOR, "template": _template({**_PLAIN, "nodeSelector": {"no": "where"}})}
    moved = {"selector": _SELECTOR, "template": _template({**_PLAIN, "nodeSelector": {"else": "where"}})}
    yield _case(
        "apps", "daemonsets", "DaemonSet", "daemonset", {"spec": nowhere},
        ("", {"metadata": {"annotations": {"a": "b"}}, "spec": nowhere}),
        ("", {"spec": moved}),
        ("", {"spec": {**moved, "minReadySeconds": 3}}),
        ("status", {"spec": moved, "status": {"numberReady": 1}}),
    )  # fmt: skip
    yield _case(
        "apps", "controllerrevisions", "ControllerRevision", "controllerrevision",
        {"data": {"spec": {"x": None, "y": []}}, "revision": 0},
    )  # fmt: skip
    job = {"restartPolicy": "Never", **_PLAIN}
    yield _case("batch", "jobs", "Job", "job-plain", {"spec": {"suspend": True, "template": {"spec": job}}})
    yield _case(
        "batch", "jobs", "Job", "job-labelled",
        {"spec": {"suspend": True, "parallelism": 2, "template": _template(job)}},
        ("status", {"spec": {"template": {"spec": {"containers": []}}}, "status": {"failed": 0}}),
    )  # fmt: skip
    yield _case(
        "batch", "jobs", "Job", "job-indexed",
        {"metadata": {"labels": {"own": "label"}},
         "spec": {"suspend": True, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
                  "template": {"spec": job}, "podFailurePolicy": {"rules": [
                      {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}},
    )  # fmt: skip
    yield _case(
        "batch", "jobs", "Job", "job-manual",
        {"spec": {"suspend": True, "manualSelector": True, "selector": {"matchLabels": {"own": "job"}},
                  "template": {"metadata": {"labels": {"own": "job"}}, "spec": job}}},
    )  # fmt: skip
    yield _case(
        "batch", "cronjobs", "CronJob", "cronjob",
        {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": job}}}}},
        ("", {"spec": {"schedule": "0 0 1 2 *", "jobTemplate": {"spec": {"template": {"spec": job}}},
                       "startingDeadlineSeconds": 0}}),
    )  # fmt: skip
    yield _case(
        "v1", "replicationcontrollers", "ReplicationController", "replicationcontroller",
        {"spec": {"replicas": 0, "template": _template()}},
    )  # fmt: skip
    yield _case("v1", "podtemplates", "PodTemplate", "podtemplate", {"template": _template(_RICH)})


def _pods() -> Iterator[Case]:
    quiet = {"automountServiceAccountToken": False}
    yield _case("v1", "pods", "Pod", "pod-plain", {"spec": {**_PLAIN, **quiet}})
    yield _case(
        "v1", "pods", "Pod", "pod-rich",
        {"metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {
            "container.apparmor.security.beta.kubernetes.io/d": "runtime/default"}},
         "spec": {**{name: part for name, part in _RICH.items() if name != "serviceAccount"}, **quiet,
                  "hostNetwork": False}},
    )  # fmt: skip
    yield _case(
        "v1", "pods", "Pod", "pod-hostnetwork",
        {"spec": {**quiet, "hostNetwork": True, "terminationGracePeriodSeconds": -5, "containers": [
            {"name": "c", "image": "localhost:5000/app", "ports": [{"containerPort": 80}]}]}},
    )  # fmt: skip
    yield _case(
        "v1", "pods", "Pod", "pod-guaranteed",
        {"spec": {**quiet, "priorityClassName": "system-node-critical", "containers": [
            {"name": "c", "image": "a:b", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]}},
    )  # fmt: skip
    yield _case(
        "v1", "pods", "Pod", "pod-whole",
        {"spec": {**quiet, "resources": {"limits": {"cpu": "2", "memory": "2Gi"}}, "containers": [
            {"name": "a", "image": "a:b", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "b", "image": "a:b", "resources": {"requests": {"cpu": "250m"}}}]}},
    )  # fmt: skip
    yield _case(
        "v1", "pods", "Pod", "pod-gated", {"spec": {**quiet, **_PLAIN, "schedulingGates": [{"name": "g/x"}]}}
    )
    yield _case(
        "v1", "pods", "Pod", "pod-told", {"spec": {**quiet, **_PLAIN}},
        ("status", {"metadata": {"labels": {"through": "status"}}, "spec": {"containers": []},
                    "status": {"phase": "Running", "podIP": "10.1.2.3", "hostIP": "10.0.0.9",
                               "startTime": "2026-01-01T02:00:00.5+02:00",
                               "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}],
                               "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": False,
                                                      "restartCount": 0, "state": {"waiting": {}}}]}}),
        ("status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}),
    )  # fmt: skip


def _core() -> Iterator[Case]:
    yield _case(
        "v1", "configmaps", "ConfigMap", "configmap",
        {"metadata": {"labels": {}, "annotations": {"a": None}}, "data": {"a": "", "b": None},
         "binaryData": {"x": "YWI"[:2] + "I=", "y": ""}, "immutable": False, "unknown": 1},
        ("", {"data": {}}),
    )  # fmt: skip
    yield _case("v1", "configmaps", "ConfigMap", "configmap-empty", {"data": {}, "binaryData": None})
    yield _case(
        "v1", "secrets", "Secret", "secret",
        {"data": {"a": "YQ==", "b": None}, "stringData": {"a": "text <é>", "c": ""}},
    )  # fmt: skip
    yield _case("v1", "secrets", "Secret", "secret-empty", {"type": ""})
    yield _case(
        "v1", "serviceaccounts", "ServiceAccount", "serviceaccount",
        {"secrets": [{"name": "s", "kind": "Secret"}], "imagePullSecrets": [{"name": "p"}],
         "automountServiceAccountToken": False},
    )  # fmt: skip
    yield _case(
        "v1", "namespaces", "Namespace", "golden-namespace",
        {"metadata": {"labels": {"a": "b"}}, "spec": {"finalizers": ["example.com/f"]},
         "status": {"phase": "Terminating"}},
        ("", {"metadata": {"labels": {"c": "d"}}, "spec": {"finalizers": []}}),
        ("status", {"spec": {}, "status": {"phase": "Active", "conditions": [
            {"type": "T", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
        ("finalize", {"spec": {"finalizers": ["kubernetes"]}, "status": {}}),
    )  # fmt: skip
    yield _case(
        "v1", "nodes", "Node", "golden-node",
        {"spec": {"podCIDR": "10.9.0.0/24", "unschedulable": True}, "status": {"capacity": {"cpu": "4000m"}}},
        ("", {"spec": {"podCIDR": "10.9.0.0/24"}, "status": {"capacity": {"cpu": "1"}}}),
        ("status", {"spec": {"unschedulable": True}, "status": {
            "capacity": {"cpu": "8", "memory": "32768Mi"}, "allocatable": {"cpu": "7500m"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}}),
    )  # fmt: skip
    yield _case(
        "v1", "endpoints", "Endpoints", "endpoints",
        {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}], "notReadyAddresses": []}]},
    )  # fmt: skip
    yield _case(
        "v1", "limitranges", "LimitRange", "limitrange",
        {"spec": {"limits": [
            {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "10m"},
             "default": {"memory": "512Mi"}},
            {"type": "Pod", "max": {"cpu": "4"}}]}},
    )  # fmt: skip
    yield _case(
        "v1", "resourcequotas", "ResourceQuota", "resourcequota",
        {"spec": {"hard": {"pods": 10, "requests.cpu": "1000m"}, "scopes": []}, "status": {"hard": {"pods": "1"}}},
    )  # fmt: skip
    yield _case(
        "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "claim",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5Gi"}},
                  "storageClassName": ""}},
        ("status", {"spec": {}, "status": {"phase": "Bound", "capacity": {"storage": "2048Mi"}}}),
    )  # fmt: skip
    yield _case(
        "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "claim-copied",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                  "storageClassName": "manual", "dataSource": {"kind": "PersistentVolumeClaim", "name": "claim"}}},
    )  # fmt: skip
    yield _case(
        "v1", "persistentvolumeclaims", "PersistentVolumeClaim", "claim-odd",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                  "storageClassName": "manual",
                  "dataSource": {"kind": "Other", "name": "x", "apiGroup": "example.com"}}},
    )  # fmt: skip
    yield _case(
        "v1", "persistentvolumes", "PersistentVolume", "golden-volume",
        {"spec": {"capacity": {"storage": "10240Mi"}, "accessModes": ["ReadWriteOnce"],
                  "storageClassName": "manual", "hostPath": {"path": "/d"}},
         "status": {"phase": "Bound"}},
    )  # fmt: skip
    yield _case(
        "v1", "events", "Event", "event",
        {"involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE}, "reason": "R", "message": "m",
         "type": "Normal", "count": 1, "source": {"component": "x"},
         "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:01.9Z"},
    )  # fmt: skip
    yield _case(
        "events", "events", "Event", "event-new",
        {"regarding": {"kind": "Pod", "name": "p", "namespace": NAMESPACE}, "reason": "R", "note": "n",
         "type": "Warning", "action": "A", "eventTime": "2026-01-01T00:00:00.123456Z",
         "reportingController": "example.com/c", "reportingInstance": "i",
         "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:05.000000Z"}},
    )  # fmt: skip


def _services() -> Iterator[Case]:
    web = [{"port": 80}]
    yield _case("v1", "services", "Service", "service-plain", {"spec": {"ports": web, "selector": {}}})
    yield _case(
        "v1", "services", "Service", "service-nodeport",
        {"spec": {"type": "NodePort", "selector": _LABELS, "sessionAffinity": "ClientIP",
                  "ports": [{"name": "a", "port": 80, "targetPort": "http"},
                            {"name": "b", "port": 81, "protocol": "UDP", "targetPort": 0}]}},
        ("", {"spec": {"type": "ClusterIP", "selector": _LABELS, "ports": [{"name": "a", "port": 80}]}}),
        ("", {"spec": {"type": "ExternalName", "externalName": "example.com"}}),
    )  # fmt: skip
    yield _case(
        "v1", "services", "Service", "service-balanced",
        {"spec": {"type": "LoadBalancer", "selector": _LABELS, "ports": web, "externalTrafficPolicy": "Local"}},
        ("status", {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}),
        ("", {"spec": {"type": "ClusterIP", "selector": _LABELS, "ports": web}}),
    )  # fmt: skip
    yield _case(
        "v1", "services", "Service", "service-headless",
        {"spec": {"clusterIP": "None", "ports": web, "selector": _LABELS, "publishNotReadyAddresses": True}},
    )  # fmt: skip
    yield _case("v1", "services", "Service", "service-bare", {"spec": {"clusterIP": "None"}})
    yield _case(
        "v1", "services", "Service", "service-external",
        {"spec": {"type": "ExternalName", "externalName": "example.com", "ports": web}},
    )  # fmt: skip
    yield _case(
        "v1", "services", "Service", "service-outside",
        {"spec": {"ports": web, "externalIPs": ["192.0.2.1"], "sessionAffinityConfig": {
            "clientIP": {"timeoutSeconds": 5}}}},
    )  # fmt: skip


def _networking() -> Iterator[Case]:
    yield _case(
        "networking", "ingresses", "Ingress", "ingress",
        {"spec": {"rules": [{"host": "example.com", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}],
            "tls": [{"hosts": []}]}},
        ("", {"spec": {"ingressClassName": "x", "defaultBackend": {"service": {
            "name": "s", "port": {"name": "http"}}}}}),
        ("status", {"spec": {}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
    )  # fmt: skip
    yield _case(
        "networking", "ingressclasses", "IngressClass", "golden-class",
        {"spec": {"controller": "example.com/c", "parameters": {"kind": "K", "name": "n", "apiGroup": "g.io"}}},
    )  # fmt: skip
    yield _case(
        "networking", "networkpolicies", "NetworkPolicy", "networkpolicy",
        {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}, {"port": "http", "protocol": "UDP"}]}]}},
        ("", {"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}}),
    )  # fmt: skip
    yield _case(
        "networking", "networkpolicies", "NetworkPolicy", "networkpolicy-all", {"spec": {"egress": [{}]}}
    )
    yield _case(
        "discovery", "endpointslices", "EndpointSlice", "endpointslice",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": False}}],
         "ports": [{"port": 80}, {"name": "b"}]},
        ("", {"addressType": "IPv4", "endpoints": [], "metadata": {"labels": {"a": "b"}}}),
        ("", {"addressType": "IPv4", "endpoints": [], "metadata": {"labels": {"a": "b"},
                                                                   "annotations": {"x": "y"}}}),
    )  # fmt: skip


def _autoscaling() -> Iterator[Case]:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    yield _case(
        "autoscaling2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-plain",
        {"spec": {"scaleTargetRef": target, "maxReplicas": 3}},
    )  # fmt: skip
    yield _case(
        "autoscaling2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-behaviour",
        {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "[]", "own": "one"}},
         "spec": {"scaleTargetRef": target, "maxReplicas": 3, "minReplicas": 2,
                  "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": "0.05"}},
                  "metrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {
                      "type": "AverageValue", "averageValue": "1000m"}}}]}},
    )  # fmt: skip
    yield _case(
        "autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-old",
        {"spec": {"scaleTargetRef": target, "maxReplicas": 3}},
    )  # fmt: skip
    metrics = (
        '[{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"m<1","targetValue":"5"}},'
        '{"type":"External","external":{"metricName":"e","targetAverageValue":"2000m"}},'
        '{"type":"ContainerResource","containerResource":{"name":"memory","targetAverageUtilization":60,'
        '"container":"c"}},'
        '{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]'
    )
    behavior = (
        '{"ScaleUp":{"StabilizationWindowSeconds":5,"SelectPolicy":"Min","Policies":'
        '[{"Type":"Pods","Value":1,"PeriodSeconds":15}]}}'
    )
    yield _case(
        "autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-annotated",
        {"metadata": {"annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": metrics,
            "autoscaling.alpha.kubernetes.io/behavior": behavior,
            "own": "one"}},
         "spec": {"scaleTargetRef": target, "maxReplicas": 3, "minReplicas": 2,
                  "targetCPUUtilizationPercentage": 70}},
    )  # fmt: skip


def _policies() -> Iterator[Case]:
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": ""}
    yield _case(
        "rbac", "roles", "Role", "role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": []}]},
    )  # fmt: skip
    yield _case("rbac", "clusterroles", "ClusterRole", "golden-role", {"rules": []})
    yield _case(
        "rbac", "clusterroles", "ClusterRole", "golden-aggregate",
        {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"no": "body"}}]}},
    )  # fmt: skip
    yield _case(
        "rbac", "rolebindings", "RoleBinding", "rolebinding",
        {"roleRef": role, "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"},
                                       {"kind": "ServiceAccount", "name": "s", "namespace": NAMESPACE}]},
    )  # fmt: skip
    yield _case("rbac", "clusterrolebindings", "ClusterRoleBinding", "golden-binding", {"roleRef": role})
    yield _case(
        "policy", "poddisruptionbudgets", "PodDisruptionBudget", "budget",
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"no": "body"}}}},
    )  # fmt: skip
    yield _case(
        "scheduling", "priorityclasses", "PriorityClass", "golden-priority",
        {"value": 0, "globalDefault": False, "description": "d"},
        ("", {"value": 0, "description": "e"}),
    )  # fmt: skip
    yield _case(
        "node", "runtimeclasses", "RuntimeClass", "golden-runtime",
        {"handler": "h", "overhead": {"podFixed": {"memory": "1024Ki"}}, "scheduling": {}},
    )  # fmt: skip
    yield _case(
        "coordination", "leases", "Lease", "lease",
        {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                  "renewTime": "2026-01-01T01:00:00.123456+01:00", "preferredHolder": "b"}},
    )  # fmt: skip
    yield _case("coordination", "leases", "Lease", "lease-empty", {})
    yield _case(
        "flowcontrol", "flowschemas", "FlowSchema", "golden-flow",
        {"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "rules": [
            {"subjects": [{"kind": "User", "user": {"name": "u"}}],
             "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/x"]}]}]}},
    )  # fmt: skip
    yield _case(
        "flowcontrol", "prioritylevelconfigurations", "PriorityLevelConfiguration", "golden-level",
        {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 0}}}}},
    )  # fmt: skip
    yield _case(
        "certificates", "certificatesigningrequests", "CertificateSigningRequest", "golden-csr",
        {"spec": {"request": REQUEST, "signerName": "example.com/signer", "usages": ["client auth"],
                  "username": "somebody else", "expirationSeconds": 3600}, "status": {"certificate": "YQ=="}},
        ("approval", {"spec": {}, "status": {"conditions": [
            {"type": "Approved", "status": "True", "reason": "R", "message": "m"}]}}),
        ("", {"metadata": {"labels": {"a": "b"}}, "spec": {"request": REQUEST, "signerName": "example.com/x"}}),
    )  # fmt: skip


def _storage() -> Iterator[Case]:
    yield _case(
        "storage", "storageclasses", "StorageClass", "golden-storage",
        {"provisioner": "example.com/p", "parameters": {}, "mountOptions": [], "allowVolumeExpansion": False},
    )  # fmt: skip
    yield _case(
        "storage", "csidrivers", "CSIDriver", "golden-driver", {"spec": {}},
        ("", {"spec": {"podInfoOnMount": True}}),
    )  # fmt: skip
    yield _case(
        "storage", "csinodes", "CSINode", "golden-csinode",
        {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n", "topologyKeys": []}]}},
    )  # fmt: skip
    yield _case(
        "storage", "volumeattachments", "VolumeAttachment", "golden-attachment",
        {"spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
         "status": {"attached": True}},
        ("status", {"metadata": {"labels": {"a": "b"}}, "spec": {"attacher": "x"}, "status": {"attached": True}}),
    )  # fmt: skip


def _extensions() -> Iterator[Case]:
    rules = [
        {"operations": ["CREATE"], "apiGroups": ["g.example.com"], "apiVersions": ["*"], "resources": ["x"]}
    ]
    webhook = {
        "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": rules,
        "clientConfig": {"service": {"namespace": "x", "name": "y"}},
    }  # fmt: skip
    yield _case(
        "admission", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "golden-validating",
        {"webhooks": [webhook]},
        ("", {"webhooks": []}),
    )  # fmt: skip
    yield _case(
        "admission", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", "golden-mutating",
        {"webhooks": [{**webhook, "clientConfig": {"url": "https://example.com/x", "caBundle": ""},
                       "failurePolicy": "Ignore"}]},
    )  # fmt: skip
    yield _case(
        "admission", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", "golden-policy",
        {"spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}],
                  "variables": []}},
    )  # fmt: skip
    yield _case(
        "admission", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", "golden-bound",
        {"spec": {"policyName": "golden-policy", "validationActions": ["Deny"], "matchResources": {},
                  "paramRef": {"name": "p", "parameterNotFoundAction": "Deny"}}},
    )  # fmt: skip
    schema = {
        "type": "object", "x-unknown": 1,
        "properties": {"spec": {"type": "object", "nullable": False, "properties": {
            "size": {"type": "integer", "default": 0, "minimum": 0.0, "maximum": 10.5},
            "note": {"type": "string", "enum": ["a", "b"], "default": None},
            "list": {"type": "array", "items": {"type": "string", "unknown": True}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "open": {"type": "object", "additionalProperties": True, "required": []},
            "free": {"x-kubernetes-preserve-unknown-fields": True}}}},
    }  # fmt: skip
    yield _case(
        "extensions", "customresourcedefinitions", "CustomResourceDefinition", "goldens.example.com",
        {"spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Golden", "plural": "goldens"},
                  "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                      "openAPIV3Schema": schema}, "subresources": {"status": {}},
                      "additionalPrinterColumns": []}]}},
    )  # fmt: skip
    yield _case(
        "registration", "apiservices", "APIService", "v1.golden.example.com",
        {"spec": {"group": "golden.example.com", "version": "v1", "groupPriorityMinimum": 100,
                  "versionPriority": 10, "service": {"namespace": "x", "name": "y"},
                  "insecureSkipTLSVerify": True}},
    )  # fmt: skip


REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITU1ITUNBUUF3RVRFUE1BMEdBMVVFQXd3R1oyOXNaR1Z1"
    "TUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowRApBUWNEUWdBRTJVQ3Fkb25YMU10VEhtNUtrZVhoMGFXamRlL01OU2hLbS85"
    "Z0pqNlhGcDBabDFzQlhYZDFLVTFZCitzQ3d1KzNDMjJCOTRpdjkxbTIzRldmTmtpeGVDNkFBTUFvR0NDcUdTTTQ5QkFNQ0Ew"
    "a0FNRVlDSVFEeHFZRnUKbFcrcEJyWlN4a0RBa0hzelJ3Nk1SUWNyRC9Zbk5vaTYrU3h0d1FJaEFKbWR6RUF6WWRNOGRnWFB5"
    "QXB5NmZNMgoxL25hcDBkS0dWTUxPeUttMHE1WgotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
"""A certificate signing request in PEM, in base64; its key is nowhere."""


def cases() -> Iterator[Case]:
    """Yield every case."""
    for group in (
        _workloads, _pods, _core, _services, _networking, _autoscaling, _policies, _storage, _extensions,
    ):  # fmt: skip
        yield from group()
