"""Defaults of the other core kinds, such as namespaces, secrets and nodes, and of small groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lamina.objects.types import Made

_RBAC: Final = "rbac.authorization.k8s.io"


def _namespace(namespace: Made) -> None:
    name = namespace["metadata"].get("name")
    if name:
        namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name


def _namespace_status(status: Made) -> None:
    status.setdefault("phase", "Active")


def _secret(secret: Made) -> None:
    secret.setdefault("type", "Opaque")


def _node_status(status: Made) -> None:
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])


def _limit_range_item(item: Made) -> None:
    if item.get("type") != "Container":
        return
    most = {**item.get("max", {}), **item.get("default", {})}
    asked = {**item.get("min", {}), **most, **item.get("defaultRequest", {})}
    if most:
        item["default"] = most
    if asked:
        item["defaultRequest"] = asked


def _role_binding(binding: Made) -> None:
    if not binding["roleRef"].get("apiGroup"):
        binding["roleRef"]["apiGroup"] = _RBAC


def _subject(subject: Made) -> None:
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _RBAC


def _priority_class(priority_class: Made) -> None:
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _token_request(spec: Made) -> None:
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = 3600


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "core/v1.Namespace": _namespace,
    "core/v1.NamespaceStatus": _namespace_status,
    "core/v1.Secret": _secret,
    "core/v1.NodeStatus": _node_status,
    "core/v1.LimitRangeItem": _limit_range_item,
    "rbac/v1.ClusterRoleBinding": _role_binding,
    "rbac/v1.RoleBinding": _role_binding,
    "rbac/v1.Subject": _subject,
    "scheduling/v1.PriorityClass": _priority_class,
    "authentication/v1.TokenRequestSpec": _token_request,
}
