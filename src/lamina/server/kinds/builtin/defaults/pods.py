"""Defaults of Pods and pod templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Final

from lamina.objects.types import Made
from lamina.server.kinds.builtin.amounts import pod_total

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_IMAGE: Final = re.compile(
    rf"(?:(?P<host>{_HOST})/)?(?P<name>{_PART}(?:/{_PART})*)(?P<tag>:\w[\w.-]{{0,127}})?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")


@lru_cache(maxsize=1024)
def pull_policy(image: str) -> str:
    """Return the default pull policy: Always for `latest` or no tag, otherwise IfNotPresent."""
    match = None if _IDENTIFIER.fullmatch(image) else _IMAGE.fullmatch(image)
    if match is None:
        return "IfNotPresent"
    tag, digest = match["tag"], match["digest"]
    return "Always" if tag == ":latest" or not (tag or digest) else "IfNotPresent"


def _container(container: Made) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"


def _pod_spec(spec: Made) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")


def _pod(pod: Made) -> None:
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for container in containers:
        resources = container["resources"]
        if "limits" in resources:
            # In a pod, requests default to limits; a template is not changed.
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    if spec.get("resources") is not None:
        _whole_pod(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in containers:
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port["containerPort"]


def _whole_pod(spec: Made) -> None:
    """Set pod-level requests if the pod has any pod-level resources."""
    resources = spec["resources"]
    limits, requests = dict(resources.get("limits", {})), dict(resources.get("requests", {}))
    if not limits and not requests:
        return
    for name, amount in pod_total(spec, "limits").items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        resources["limits"] = limits
        for name, amount in pod_total(spec, "requests").items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if name in ("cpu", "memory") or name.startswith("hugepages-"):
                requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def _volume(volume: Made) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy(image.get("reference", ""))


def _probe(probe: Made) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)


def _http_get(action: Made) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _given(name: str, value: object, struct: Made) -> None:
    struct.setdefault(name, value)


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "core/v1.Pod": _pod,
    "core/v1.PodSpec": _pod_spec,
    "core/v1.Container": _container,
    "core/v1.EphemeralContainer": _container,
    "core/v1.Volume": _volume,
    "core/v1.Probe": _probe,
    "core/v1.HTTPGetAction": _http_get,
    "core/v1.SecretVolumeSource": partial(_given, "defaultMode", 0o644),
    "core/v1.ConfigMapVolumeSource": partial(_given, "defaultMode", 0o644),
    "core/v1.DownwardAPIVolumeSource": partial(_given, "defaultMode", 0o644),
    "core/v1.ProjectedVolumeSource": partial(_given, "defaultMode", 0o644),
    "core/v1.ServiceAccountTokenProjection": partial(_given, "expirationSeconds", 3600),
    "core/v1.ObjectFieldSelector": partial(_given, "apiVersion", "v1"),
    "core/v1.HostPathVolumeSource": partial(_given, "type", ""),
}
