"""
Fields with two names, kept in sync.

kube-apiserver's internal types hold each value once, and encode it under the old and
the new name. Decoding applies the same, struct by struct.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lamina.objects.types import Made

_INIT_CONTAINERS: Final = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


AUTOSCALER_ANNOTATIONS: Final = tuple(
    f"autoscaling.alpha.kubernetes.io/{name}"
    for name in (
        "metrics",
        "behavior",
        "current-metrics",
        "conditions",
        "scale-down-tolerance",
        "scale-up-tolerance",
    )
)
"""Annotations that hold the fields that autoscaling/v1 lacks."""


def drop_annotations(obj: Made, names: Iterable[str]) -> None:
    """Remove annotations from an object, and the map if it becomes empty."""
    annotations = obj["metadata"].get("annotations")
    if annotations:
        for name in names:
            annotations.pop(name, None)
        if not annotations:
            del obj["metadata"]["annotations"]


def _pod_spec(spec: Made) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _pod_template(template: Made) -> None:
    drop_annotations(template, _INIT_CONTAINERS)


def _pod(pod: Made) -> None:
    _pod_template(pod)
    if pod["spec"].get("terminationGracePeriodSeconds", 0) < 0:
        pod["spec"]["terminationGracePeriodSeconds"] = 1


def _pod_status(status: Made) -> None:
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        status["podIP"] = addresses[0].get("ip", "")


def _node_spec(spec: Made) -> None:
    block, blocks = spec.get("podCIDR"), spec.get("podCIDRs")
    if block and (not blocks or blocks[0] != block):
        spec["podCIDRs"] = [block]
    elif blocks and not block:
        spec["podCIDR"] = blocks[0]


def _secret(secret: Made) -> None:
    texts = secret.pop("stringData", None)
    if texts:
        data = secret.setdefault("data", {})
        for name, text in texts.items():
            data[name] = base64.b64encode(text.encode()).decode()


def _stateful_set_spec(spec: Made) -> None:
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"


def _autoscaler(autoscaler: Made) -> None:
    drop_annotations(autoscaler, AUTOSCALER_ANNOTATIONS)


ALIASES: Final[Mapping[str, Callable[[Made], None]]] = {
    "core/v1.PodSpec": _pod_spec,
    "core/v1.PodTemplateSpec": _pod_template,
    "core/v1.Pod": _pod,
    "core/v1.PodStatus": _pod_status,
    "core/v1.NodeSpec": _node_spec,
    "core/v1.Secret": _secret,
    "apps/v1.StatefulSetSpec": _stateful_set_spec,
    "autoscaling/v2.HorizontalPodAutoscaler": _autoscaler,
}
