"""The default kinds of a simulated cluster, and a builder of objects."""

from __future__ import annotations

from typing import Any

from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made

ALL_VERBS = frozenset(("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"))
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "creationTimestamp", "managedFields")


def kind(
    api_version: str, name: str, plural: str, *, namespaced: bool = True, subresources: tuple[str, ...] = ()
) -> Kind:
    """Return a kind with all verbs."""
    return Kind(api_version, name, plural, namespaced, ALL_VERBS, frozenset(subresources))


CONFIG_MAP = kind("v1", "ConfigMap", "configmaps")
SECRET = kind("v1", "Secret", "secrets")
POD = kind("v1", "Pod", "pods")
ACCOUNT = kind("v1", "ServiceAccount", "serviceaccounts")
EVENT = kind("v1", "Event", "events")
NAMESPACE = kind("v1", "Namespace", "namespaces", namespaced=False)
ROLE = kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
DEFINITION = kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
NODE = kind("v1", "Node", "nodes", namespaced=False)
SERVICE = kind("v1", "Service", "services")
ENDPOINTS = kind("v1", "Endpoints", "endpoints")
ENDPOINT_SLICE = kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
VOLUME = kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
VOLUME_CLAIM = kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
STORAGE_CLASS = kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
REPLICATION_CONTROLLER = kind("v1", "ReplicationController", "replicationcontrollers")
DEPLOYMENT = kind("apps/v1", "Deployment", "deployments")
REPLICA_SET = kind("apps/v1", "ReplicaSet", "replicasets")
STATEFUL_SET = kind("apps/v1", "StatefulSet", "statefulsets")
DAEMON_SET = kind("apps/v1", "DaemonSet", "daemonsets")
CONTROLLER_REVISION = kind("apps/v1", "ControllerRevision", "controllerrevisions")
JOB = kind("batch/v1", "Job", "jobs")
CRON_JOB = kind("batch/v1", "CronJob", "cronjobs")
BUDGET = kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
WIDGET = kind("ex.example.com/v1", "Widget", "widgets")
"""A custom kind, for tests in which the kind does not matter."""
KINDS = Kinds(
    (
        CONFIG_MAP, SECRET, POD, ACCOUNT, EVENT, NAMESPACE, ROLE, DEFINITION, NODE, SERVICE, ENDPOINTS,
        ENDPOINT_SLICE, VOLUME, VOLUME_CLAIM, STORAGE_CLASS, REPLICATION_CONTROLLER, DEPLOYMENT, REPLICA_SET,
        STATEFUL_SET, DAEMON_SET, CONTROLLER_REVISION, JOB, CRON_JOB, BUDGET, WIDGET,
    )
)  # fmt: skip


def make(what: Kind, name: str, namespace: str = "default", **fields: Any) -> Made:
    """Return an object of a kind; fields of the metadata are given by their own names."""
    metadata = {"name": name} | ({"namespace": namespace} if what.namespaced else {})
    metadata |= {key: value for key, value in fields.items() if key in _METADATA}
    body = {key: value for key, value in fields.items() if key not in _METADATA}
    return {"apiVersion": what.api_version, "kind": what.kind, "metadata": metadata, **body}
