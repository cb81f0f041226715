"""
The built-in resources, and their discovery.

Names, short names, categories, scope, verbs and subresources are those of Kubernetes
1.35. Groups are in the order of discovery, versions with the preferred one first.
The behavior of kinds is defined elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct

from lamina.server.kinds.kind import Subresource

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""The verbs of stored objects, in the order of discovery."""

_CREATE: Final = ("create",)
_READ: Final = ("get",)
_CHANGE: Final = ("get", "patch", "update")


class Resource(Struct, frozen=True, kw_only=True):
    """
    One built-in resource in one version.

    `bucket` is the storage bucket and `storage` the stored group version:
    HorizontalPodAutoscalers of both versions are the same objects, and so are events
    of both groups. Reviews are not stored. `definition` is the name of the kind's
    OpenAPI definition.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    definition: str
    bucket: str
    storage: tuple[str, str]
    verbs: tuple[str, ...] = VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    stored: bool = True
    preferred: bool = True

    @property
    def list_kind(self) -> str:
        """Return the list kind; resources that are not stored have none."""
        return f"{self.kind}List" if self.stored else ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_hash(self) -> str:
        """Return the storageVersionHash of discovery; empty for resources that are not stored."""
        return storage_hash(*self.storage, self.kind) if self.stored else ""


class _GroupVersion(NamedTuple):
    """A group version, and the package of its definitions."""

    group: str
    version: str
    package: str
    preferred: bool = True

    def resource(
        self,
        kind: str,
        plural: str,
        scope: str,
        short_names: str = "",
        categories: str = "",
        subresources: str = "",
        *,
        verbs: tuple[str, ...] = VERBS,
        stored: bool = True,
        stored_as: tuple[str, str] | None = None,
    ) -> Resource:
        """Return one resource; multiple values in a string are separated by spaces."""
        group, version = stored_as or (self.group, self.version)
        return Resource(
            group=self.group,
            version=self.version,
            kind=kind,
            plural=plural,
            singular=kind.lower(),
            namespaced=scope == "Namespaced",
            definition=f"{self.package}.{kind}",
            bucket=f"{plural}.{group}" if group else plural,
            storage=(group, version),
            verbs=verbs if stored else _CREATE,
            short_names=tuple(short_names.split()),
            categories=tuple(categories.split()),
            subresources=tuple(self._subresource(kind, name) for name in subresources.split()),
            stored=stored,
            preferred=self.preferred,
        )

    def _subresource(self, kind: str, name: str) -> Subresource:
        group, version, body, verbs = _SUBRESOURCE_KINDS.get(name, (self.group, self.version, kind, _CHANGE))
        return Subresource(name=name, group=group, version=version, kind=body, verbs=verbs)


_SUBRESOURCE_KINDS: Final = {
    "scale": ("autoscaling", "v1", "Scale", _CHANGE),
    "eviction": ("policy", "v1", "Eviction", _CREATE),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", _CREATE),
    "binding": ("", "v1", "Binding", _CREATE),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "log": ("", "v1", "Pod", _READ),
}
"""Subresources whose body kind or verbs differ from the object's."""

_CORE = _GroupVersion("", "v1", "io.k8s.api.core.v1")
_REGISTRATION = _GroupVersion(
    "apiregistration.k8s.io", "v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"
)
_APPS = _GroupVersion("apps", "v1", "io.k8s.api.apps.v1")
_EVENTS = _GroupVersion("events.k8s.io", "v1", "io.k8s.api.events.v1")
_AUTHENTICATION = _GroupVersion("authentication.k8s.io", "v1", "io.k8s.api.authentication.v1")
_AUTHORIZATION = _GroupVersion("authorization.k8s.io", "v1", "io.k8s.api.authorization.v1")
_AUTOSCALING_V2 = _GroupVersion("autoscaling", "v2", "io.k8s.api.autoscaling.v2")
_AUTOSCALING_V1 = _GroupVersion("autoscaling", "v1", "io.k8s.api.autoscaling.v1", preferred=False)
_BATCH = _GroupVersion("batch", "v1", "io.k8s.api.batch.v1")
_CERTIFICATES = _GroupVersion("certificates.k8s.io", "v1", "io.k8s.api.certificates.v1")
_NETWORKING = _GroupVersion("networking.k8s.io", "v1", "io.k8s.api.networking.v1")
_POLICY = _GroupVersion("policy", "v1", "io.k8s.api.policy.v1")
_RBAC = _GroupVersion("rbac.authorization.k8s.io", "v1", "io.k8s.api.rbac.v1")
_STORAGE = _GroupVersion("storage.k8s.io", "v1", "io.k8s.api.storage.v1")
_ADMISSION = _GroupVersion("admissionregistration.k8s.io", "v1", "io.k8s.api.admissionregistration.v1")
_EXTENSIONS = _GroupVersion(
    "apiextensions.k8s.io", "v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
)
_SCHEDULING = _GroupVersion("scheduling.k8s.io", "v1", "io.k8s.api.scheduling.v1")
_COORDINATION = _GroupVersion("coordination.k8s.io", "v1", "io.k8s.api.coordination.v1")
_NODE = _GroupVersion("node.k8s.io", "v1", "io.k8s.api.node.v1")
_DISCOVERY = _GroupVersion("discovery.k8s.io", "v1", "io.k8s.api.discovery.v1")
_FLOWCONTROL = _GroupVersion("flowcontrol.apiserver.k8s.io", "v1", "io.k8s.api.flowcontrol.v1")

_WITHOUT_COLLECTION = tuple(verb for verb in VERBS if verb != "deletecollection")
_POD_ENDPOINTS = "binding ephemeralcontainers eviction log resize status"
_ONE, _ALL = "Namespaced", "Cluster"

CATALOGUE: Final = (
    _CORE.resource("Binding", "bindings", _ONE, stored=False),
    _CORE.resource("ConfigMap", "configmaps", _ONE, "cm"),
    _CORE.resource("Endpoints", "endpoints", _ONE, "ep"),
    _CORE.resource("Event", "events", _ONE, "ev"),
    _CORE.resource("LimitRange", "limitranges", _ONE, "limits"),
    _CORE.resource("Namespace", "namespaces", _ALL, "ns", "", "finalize status", verbs=_WITHOUT_COLLECTION),
    _CORE.resource("Node", "nodes", _ALL, "no", "", "status"),
    _CORE.resource("PersistentVolumeClaim", "persistentvolumeclaims", _ONE, "pvc", "", "status"),
    _CORE.resource("PersistentVolume", "persistentvolumes", _ALL, "pv", "", "status"),
    _CORE.resource("Pod", "pods", _ONE, "po", "all", _POD_ENDPOINTS),
    _CORE.resource("PodTemplate", "podtemplates", _ONE),
    _CORE.resource("ReplicationController", "replicationcontrollers", _ONE, "rc", "all", "scale status"),
    _CORE.resource("ResourceQuota", "resourcequotas", _ONE, "quota", "", "status"),
    _CORE.resource("Secret", "secrets", _ONE),
    _CORE.resource("ServiceAccount", "serviceaccounts", _ONE, "sa", "", "token"),
    _CORE.resource("Service", "services", _ONE, "svc", "all", "status"),
    _REGISTRATION.resource("APIService", "apiservices", _ALL, "", "api-extensions", "status"),
    _APPS.resource("ControllerRevision", "controllerrevisions", _ONE),
    _APPS.resource("DaemonSet", "daemonsets", _ONE, "ds", "all", "status"),
    _APPS.resource("Deployment", "deployments", _ONE, "deploy", "all", "scale status"),
    _APPS.resource("ReplicaSet", "replicasets", _ONE, "rs", "all", "scale status"),
    _APPS.resource("StatefulSet", "statefulsets", _ONE, "sts", "all", "scale status"),
    _EVENTS.resource("Event", "events", _ONE, "ev", stored_as=("", "v1")),
    _AUTHENTICATION.resource("SelfSubjectReview", "selfsubjectreviews", _ALL, stored=False),
    _AUTHENTICATION.resource("TokenReview", "tokenreviews", _ALL, stored=False),
    _AUTHORIZATION.resource("LocalSubjectAccessReview", "localsubjectaccessreviews", _ONE, stored=False),
    _AUTHORIZATION.resource("SelfSubjectAccessReview", "selfsubjectaccessreviews", _ALL, stored=False),
    _AUTHORIZATION.resource("SelfSubjectRulesReview", "selfsubjectrulesreviews", _ALL, stored=False),
    _AUTHORIZATION.resource("SubjectAccessReview", "subjectaccessreviews", _ALL, stored=False),
    _AUTOSCALING_V2.resource(
        "HorizontalPodAutoscaler", "horizontalpodautoscalers", _ONE, "hpa", "all", "status"
    ),
    _AUTOSCALING_V1.resource(
        "HorizontalPodAutoscaler", "horizontalpodautoscalers", _ONE, "hpa", "all", "status",
        stored_as=("autoscaling", "v2"),
    ),
    _BATCH.resource("CronJob", "cronjobs", _ONE, "cj", "all", "status"),
    _BATCH.resource("Job", "jobs", _ONE, "", "all", "status"),
    _CERTIFICATES.resource(
        "CertificateSigningRequest", "certificatesigningrequests", _ALL, "csr", "", "approval status"
    ),
    _NETWORKING.resource("IngressClass", "ingressclasses", _ALL),
    _NETWORKING.resource("Ingress", "ingresses", _ONE, "ing", "", "status"),
    _NETWORKING.resource("NetworkPolicy", "networkpolicies", _ONE, "netpol"),
    _POLICY.resource("PodDisruptionBudget", "poddisruptionbudgets", _ONE, "pdb", "", "status"),
    _RBAC.resource("ClusterRoleBinding", "clusterrolebindings", _ALL),
    _RBAC.resource("ClusterRole", "clusterroles", _ALL),
    _RBAC.resource("RoleBinding", "rolebindings", _ONE),
    _RBAC.resource("Role", "roles", _ONE),
    _STORAGE.resource("CSIDriver", "csidrivers", _ALL),
    _STORAGE.resource("CSINode", "csinodes", _ALL),
    _STORAGE.resource("StorageClass", "storageclasses", _ALL, "sc"),
    _STORAGE.resource("VolumeAttachment", "volumeattachments", _ALL, "", "", "status"),
    _ADMISSION.resource(
        "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", _ALL, "", "api-extensions"
    ),
    _ADMISSION.resource(
        "ValidatingAdmissionPolicy", "validatingadmissionpolicies", _ALL, "", "api-extensions", "status"
    ),
    _ADMISSION.resource(
        "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", _ALL, "", "api-extensions"
    ),
    _ADMISSION.resource(
        "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", _ALL, "", "api-extensions"
    ),
    _EXTENSIONS.resource(
        "CustomResourceDefinition", "customresourcedefinitions", _ALL, "crd crds", "api-extensions", "status",
        stored_as=("apiextensions.k8s.io", "v1beta1"),
    ),
    _SCHEDULING.resource("PriorityClass", "priorityclasses", _ALL, "pc"),
    _COORDINATION.resource("Lease", "leases", _ONE),
    _NODE.resource("RuntimeClass", "runtimeclasses", _ALL),
    _DISCOVERY.resource("EndpointSlice", "endpointslices", _ONE),
    _FLOWCONTROL.resource("FlowSchema", "flowschemas", _ALL, "", "", "status"),
    _FLOWCONTROL.resource(
        "PriorityLevelConfiguration", "prioritylevelconfigurations", _ALL, "", "", "status"
    ),
)  # fmt: skip

PACKAGES: Final = {
    (resource.group, resource.version): resource.definition.rpartition(".")[0] for resource in CATALOGUE
}
"""The package of the definitions of a group version."""

DELETE_RETURNS_OBJECT: Final = frozenset(
    resource.definition
    for resource in CATALOGUE
    if resource.bucket
    in {
        *("persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas"),
        *("serviceaccounts", "services", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io"),
        *("storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io"),
    }
)
"""Definitions of kinds whose delete returns the object instead of a Status."""


def storage_hash(group: str, version: str, kind: str) -> str:
    """Return the hash by which clients recognize versions with the same storage, given the stored type."""
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


@cache
def is_builtin(group: str) -> bool:
    """Return whether a group is built in."""
    return group in _GROUPS


_GROUPS: Final = frozenset(one.group for one in CATALOGUE)


_RANKS: Final = {known: rank for rank, known in enumerate(dict.fromkeys(one.group for one in CATALOGUE))}


def group_rank(group: str) -> int:
    """Return the position of a group in discovery; groups of CRDs come last."""
    return _RANKS.get(group, len(_RANKS))
