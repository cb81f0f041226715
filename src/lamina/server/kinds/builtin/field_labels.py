"""Selectable fields of built-in kinds, beyond name and namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lamina.objects.go_quote import quoted
from lamina.objects.types import Obj

Reader = Callable[[Obj], str]


def _at(*path: str) -> Reader:
    def read(obj: Obj) -> str:
        value: Any = obj
        for step in path:
            value = (value or {}).get(step)
        return value or ""

    return read


def _flag(*path: str) -> Reader:
    read = _at(*path)
    return lambda obj: "true" if read(obj) else "false"


def _number(*path: str) -> Reader:
    read = _at(*path)
    return lambda obj: str(read(obj) or 0)


def _addresses(obj: Obj) -> str:
    """Return a pod's first address, which both labels are compared with."""
    found = (obj.get("status") or {}).get("podIPs") or ()
    return (found[0].get("ip") if found else (obj.get("status") or {}).get("podIP")) or ""


def _source(obj: Obj) -> str:
    return _at("source", "component")(obj) or _at("reportingComponent")(obj)


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

_LABELS: Final[Mapping[tuple[str, str], Mapping[str, Reader]]] = {
    ("", "pods"): {
        "spec.nodeName": _at("spec", "nodeName"),
        "spec.host": _at("spec", "nodeName"),
        "spec.restartPolicy": _at("spec", "restartPolicy"),
        "spec.schedulerName": _at("spec", "schedulerName"),
        "spec.serviceAccountName": _at("spec", "serviceAccountName"),
        "spec.hostNetwork": _flag("spec", "hostNetwork"),
        "status.phase": _at("status", "phase"),
        "status.podIP": _addresses,
        "status.podIPs": _addresses,
        "status.nominatedNodeName": _at("status", "nominatedNodeName"),
    },
    ("", "events"): {
        **{f"involvedObject.{field}": _at("involvedObject", field) for field in _INVOLVED},
        "reason": _at("reason"),
        "reportingComponent": _at("reportingComponent"),
        "source": _source,
        "type": _at("type"),
    },
    ("", "nodes"): {"spec.unschedulable": _flag("spec", "unschedulable")},
    ("", "namespaces"): {"status.phase": _at("status", "phase")},
    ("", "secrets"): {"type": _at("type")},
    ("", "services"): {"spec.clusterIP": _at("spec", "clusterIP"), "spec.type": _at("spec", "type")},
    ("", "replicationcontrollers"): {"status.replicas": _number("status", "replicas")},
    ("batch", "jobs"): {"status.successful": _number("status", "succeeded")},
    ("certificates.k8s.io", "certificatesigningrequests"): {"spec.signerName": _at("spec", "signerName")},
    ("events.k8s.io", "events"): {
        **{f"regarding.{field}": _at("regarding", field) for field in _INVOLVED},
        "reason": _at("reason"),
        "reportingController": _at("reportingController"),
        "type": _at("type"),
    },
}


_WITHOUT_NAMESPACE: Final = frozenset({"nodes", "namespaces", "certificatesigningrequests"})
"""Cluster-scoped resources whose selectable fields do not include the namespace."""


def refusal(group: str, plural: str, label: str) -> str:
    """Return why a field is not selectable, empty if it is."""
    known = _LABELS.get((group, plural), {})
    if label in known or label == "metadata.name":
        return ""
    if label == "metadata.namespace" and plural not in _WITHOUT_NAMESPACE:
        return ""
    if not known:
        return f'{quoted(label)} is not a known field selector: only "metadata.name", "metadata.namespace"'
    if plural == "jobs":
        return f"field label {quoted(label)} not supported for Job"
    return f"field label not supported: {label}"


def field_labels_of(group: str, plural: str) -> Mapping[str, Reader]:
    """Return the reader of each selectable field, for objects in the resource's version."""
    return _LABELS.get((group, plural), {})
