"""
The order of kinds: an object is applied after what it depends on.

    0  namespaces, definitions, priority and storage classes, volumes
    1  roles and their bindings
    2  network policies, quotas, limits, disruption budgets, service accounts
    3  secrets, config maps, volume claims
    4  services
    5  workloads
    6  API services and admission
    7  all other kinds
    8  objects of a kind that is not served
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from lamina.objects.types import GroupKind

Item = TypeVar("Item")

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
    """Return the rank of a kind; None is a kind that is not served."""
    return UNKNOWN if kind is None else RANKS.get(kind, OTHERS)


def by_rank(
    items: Iterable[Item], kind_of: Callable[[Item], GroupKind | None]
) -> list[tuple[int, tuple[Item, ...]]]:
    """Return items by the rank of their kind, in the order they are applied in."""
    ranks: dict[int, list[Item]] = {}
    for item in items:
        ranks.setdefault(rank(kind_of(item)), []).append(item)
    return [(number, tuple(ranks[number])) for number in sorted(ranks)]
