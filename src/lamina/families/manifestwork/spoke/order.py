"""
In which order manifests are applied: what others live in first, what guards them last.

    0  what everything else is in or made of: namespaces, definitions, classes, volumes
    1  roles and their bindings
    2  limits, budgets, accounts
    3  what is read and mounted
    4  services
    5  what runs
    6  what is asked before anything is written
    7  all other kinds
    8  what is no object of a kind that is known
"""

from __future__ import annotations

from lamina.objects.types import GroupKind

_RBAC, _ADMISSION, _STORAGE = "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "storage.k8s.io"
_RANKS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("scheduling.k8s.io", "PriorityClass"), ("", "Namespace"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"), (_STORAGE, "StorageClass"),
        ("", "PersistentVolume"), ("policy", "PodSecurityPolicy"),
    ),
    ((_RBAC, "ClusterRole"), (_RBAC, "ClusterRoleBinding"), (_RBAC, "Role"), (_RBAC, "RoleBinding")),
    (
        ("networking.k8s.io", "NetworkPolicy"), ("", "ResourceQuota"), ("", "LimitRange"),
        ("policy", "PodDisruptionBudget"), ("", "ServiceAccount"),
    ),
    (("", "Secret"), ("", "ConfigMap"), ("", "PersistentVolumeClaim")),
    (("", "Service"),),
    (
        ("apps", "DaemonSet"), ("", "Pod"), ("", "ReplicationController"), ("apps", "ReplicaSet"),
        ("apps", "Deployment"), ("autoscaling", "HorizontalPodAutoscaler"), ("apps", "StatefulSet"),
        ("batch", "Job"), ("batch", "CronJob"),
    ),
    (
        ("apiregistration.k8s.io", "APIService"), (_ADMISSION, "MutatingWebhookConfiguration"),
        (_ADMISSION, "ValidatingWebhookConfiguration"), (_ADMISSION, "ValidatingAdmissionPolicy"),
        (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    ),
)  # fmt: skip
RANKS = {GroupKind(*kind): rank for rank, kinds in enumerate(_RANKS) for kind in kinds}
OTHERS = len(_RANKS)
UNKNOWN = OTHERS + 1


def rank(kind: GroupKind | None) -> int:
    """Return when objects of a kind have their turn; None is what is of no kind that is known."""
    return UNKNOWN if kind is None else RANKS.get(kind, OTHERS)
