"""
Which built-in resources are served, and what discovery says of each.

The facts are those of Kubernetes 1.35: names, short names, categories, scope,
verbs and subresources. Groups stand in the order in which a server lists them,
and the versions of a group with the preferred one first. What a kind does
beyond being stored is somebody else's business.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct

from lamina.server.kind import Subresource

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""What can be done with an object that is stored, in the order discovery gives."""

_CREATE: Final = ("create",)
_READ: Final = ("get",)
_CHANGE: Final = ("get", "patch", "update")


class Resource(Struct, frozen=True, kw_only=True):
    """
    One built-in resource in one version.

    `bucket` names what is stored together, `storage` the group and version it
    is stored as: HorizontalPodAutoscalers of both versions are one set of
    objects, and so are the events of both groups. Reviews are not stored.
    `definition` is the full name of the kind's OpenAPI definition.
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
        """Return the kind of a list of them; what is not stored is never listed."""
        return f"{self.kind}List" if self.stored else ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_hash(self) -> str:
        """Return what discovery calls storageVersionHash; empty for what is not stored."""
        return storage_hash(*self.storage, self.kind) if self.stored else ""


class _Family(NamedTuple):
    """A group version, and where its definitions live."""

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
        shares: tuple[str, str] | None = None,
    ) -> Resource:
        """Return one resource; words that come in several are separated by spaces."""
        group, version = shares or (self.group, self.version)
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
        group, version, body, verbs = _ELSEWHERE.get(name, (self.group, self.version, kind, _CHANGE))
        return Subresource(name=name, group=group, version=version, kind=body, verbs=verbs)


_ELSEWHERE: Final = {
    "scale": ("autoscaling", "v1", "Scale", _CHANGE),
    "eviction": ("policy", "v1", "Eviction", _CREATE),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", _CREATE),
    "binding": ("", "v1", "Binding", _CREATE),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "log": ("", "v1", "Pod", _READ),
}
"""Subresources whose body or verbs are not those of the object they belong to."""

_CORE = _Family("", "v1", "io.k8s.api.core.v1")
_REGISTRATION = _Family("apiregistration.k8s.io", "v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1")
_APPS = _Family("apps", "v1", "io.k8s.api.apps.v1")
_EVENTS = _Family("events.k8s.io", "v1", "io.k8s.api.events.v1")
_AUTHENTICATION = _Family("authentication.k8s.io", "v1", "io.k8s.api.authentication.v1")
_AUTHORIZATION = _Family("authorization.k8s.io", "v1", "io.k8s.api.authorization.v1")
_AUTOSCALING_V2 = _Family("autoscaling", "v2", "io.k8s.api.autoscaling.v2")
_AUTOSCALING_V1 = _Family("autoscaling", "v1", "io.k8s.api.autoscaling.v1", preferred=False)
_BATCH = _Family("batch", "v1", "io.k8s.api.batch.v1")
_CERTIFICATES = _Family("certificates.k8s.io", "v1", "io.k8s.api.certificates.v1")
_NETWORKING = _Family("networking.k8s.io", "v1", "io.k8s.api.networking.v1")
_POLICY = _Family("policy", "v1", "io.k8s.api.policy.v1")
_RBAC = _Family("rbac.authorization.k8s.io", "v1", "io.k8s.api.rbac.v1")
_STORAGE = _Family("storage.k8s.io", "v1", "io.k8s.api.storage.v1")
_ADMISSION = _Family("admissionregistration.k8s.io", "v1", "io.k8s.api.admissionregistration.v1")
_EXTENSIONS = _Family(
    "apiextensions.k8s.io", "v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
)
_SCHEDULING = _Family("scheduling.k8s.io", "v1", "io.k8s.api.scheduling.v1")
_COORDINATION = _Family("coordination.k8s.io", "v1", "io.k8s.api.coordination.v1")
_NODE = _Family("node.k8s.io", "v1", "io.k8s.api.node.v1")
_DISCOVERY = _Family("discovery.k8s.io", "v1", "io.k8s.api.discovery.v1")
_FLOWCONTROL = _Family("flowcontrol.apiserver.k8s.io", "v1", "io.k8s.api.flowcontrol.v1")

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
    _EVENTS.resource("Event", "events", _ONE, "ev", shares=("", "v1")),
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
        shares=("autoscaling", "v2"),
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
        shares=("apiextensions.k8s.io", "v1beta1"),
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
"""The package that holds the definitions of a group version."""

SHOWN_WHEN_DELETED: Final = frozenset(
    resource.definition
    for resource in CATALOGUE
    if resource.bucket
    in {
        *("persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas"),
        *("serviceaccounts", "services", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io"),
        *("storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io"),
    }
)
"""Definitions of the kinds whose object, and not a Status, is the answer to its deletion."""


def storage_hash(group: str, version: str, kind: str) -> str:
    """Return the mark by which clients see that two versions share one store, given what it is stored as."""
    digest = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


@cache
def is_builtin(group: str) -> bool:
    """Say whether a group is one that the server was born with."""
    return group in _GROUPS


_GROUPS: Final = frozenset(one.group for one in CATALOGUE)


_RANKS: Final = {known: rank for rank, known in enumerate(dict.fromkeys(one.group for one in CATALOGUE))}


def group_rank(group: str) -> int:
    """Return where a group stands in discovery; groups of custom resources come after all of these."""
    return _RANKS.get(group, len(_RANKS))
