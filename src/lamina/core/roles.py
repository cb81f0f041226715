"""Roles with their bindings, and the service account that they are bound to, as objects of rbac.authorization.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from lamina.core.rbac import Rights
from lamina.objects.types import Made

GROUP: Final = "rbac.authorization.k8s.io"


class Subject(Struct, frozen=True, kw_only=True):
    """What a role is bound to: a ServiceAccount, or a User or Group of the API server."""

    kind: str
    name: str
    namespace: str = ""

    def written(self) -> Made:
        """Return it as an entry of `subjects`."""
        if self.namespace:
            return {"kind": self.kind, "namespace": self.namespace, "name": self.name}
        return {"apiGroup": GROUP, "kind": self.kind, "name": self.name}


def service_account(subject: Subject) -> Made:
    """Return a ServiceAccount."""
    metadata = {"name": subject.name, "namespace": subject.namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def role(rights: Rights, name: str, namespace: str = "", labels: Mapping[str, str] | None = None) -> Made:
    """Return a Role, or without a namespace a ClusterRole."""
    metadata = _metadata(name, namespace)
    if labels:
        metadata["labels"] = dict(labels)
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "rules": rights.rules()}


def bound(rights: Rights, name: str, subject: Subject, namespace: str = "") -> list[Made]:
    """Return a role and its binding to a subject, both in a namespace or both for the cluster."""
    made = role(rights, name, namespace)
    return [made, binding(made, [subject])]


def binding(bound_role: Made, subjects: Sequence[Subject], name: str = "") -> Made:
    """Return the binding of a role to subjects, in the namespace of the role; it has the name of the role by default."""
    kind, metadata = bound_role["kind"], bound_role["metadata"]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(name or metadata["name"], metadata.get("namespace", "")),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": metadata["name"]},
        "subjects": [one.written() for one in subjects],
    }


def _metadata(name: str, namespace: str) -> Made:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}
