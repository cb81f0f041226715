"""
Pods: fields that are set on create and update, beyond defaults.

Some belong to kube-apiserver's admission plugins, as far as they need only the Pod:
service account, priority, and the two default tolerations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lamina.objects.types import Made, Obj
from lamina.server.kinds.builtin.amounts import qos_class

_NODE_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_TOKEN_VOLUME: Final = "kube-api-access-"
_TOKEN_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_MIRROR: Final = "kubernetes.io/config.mirror"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


def admit_pod(pod: Made) -> None:
    """Set the fields that admission sets on a new Pod."""
    spec = pod["spec"]
    if not spec.get("serviceAccountName") and _MIRROR not in (pod["metadata"].get("annotations") or {}):
        spec["serviceAccountName"] = spec["serviceAccount"] = "default"
    add_default_tolerations(spec)
    name = spec.get("priorityClassName")
    if not name or name in _SYSTEM_PRIORITIES:
        spec.setdefault("priority", _SYSTEM_PRIORITIES.get(name or "", 0))
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def mount_account_token(pod: Made, suffix: str) -> None:
    """
    Mount the service account token into the containers of a new Pod, unless Pod or account opts out.

    `suffix` makes the volume's name unique: five random letters. Mirror pods have no
    token.
    """
    spec = pod["spec"]
    if spec.get("automountServiceAccountToken") is False or _MIRROR in (
        pod["metadata"].get("annotations") or {}
    ):
        return
    known = [
        volume["name"] for volume in spec.get("volumes") or () if volume["name"].startswith(_TOKEN_VOLUME)
    ]
    name = known[0] if known else f"{_TOKEN_VOLUME}{suffix}"
    needed = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == _TOKEN_PATH for mount in mounts):
            mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
            container["volumeMounts"] = [*mounts, mount]
            needed = True
    if needed and not known:
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": _token_sources()}]


def _token_sources() -> Made:
    where = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": where}]}},
        ],
        "defaultMode": 0o644,
    }


def create_pod(pod: Made, stamp: str) -> None:
    """Set the initial fields of a Pod; `stamp` is its creation time."""
    admit_pod(pod)
    spec = pod["spec"]
    drop_unallocated(spec)
    status: Made = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [{**_GATED, "lastProbeTime": None, "lastTransitionTime": stamp}]
    pod["status"] = status
    labels = pod["metadata"].get("labels") or {}
    for selector in _selectors_to_extend(spec, labels):
        selector[0].setdefault("matchExpressions", []).extend(selector[1])
    _profile_containers(pod)


def update_pod(pod: Made, old: Obj) -> None:
    """Restore fields that the main endpoint of a Pod does not change."""
    spec, before = pod["spec"], old["spec"]
    add_default_tolerations(spec)
    for name in ("priority", "preemptionPolicy"):
        if name not in spec and name in before:
            spec[name] = before[name]
    drop_unallocated(spec)


def update_status(pod: Made, old: Obj) -> None:
    """Restore fields that the status endpoint of a Pod does not change."""
    status, before = pod["status"], old.get("status") or {}
    pod["metadata"].pop("deletionTimestamp", None)
    _restore(pod["metadata"], old["metadata"], "ownerReferences")
    if "deletionTimestamp" in old["metadata"]:
        pod["metadata"]["deletionTimestamp"] = old["metadata"]["deletionTimestamp"]
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and name in before:
            status[name] = before[name]
    seen: dict[Any, list[int]] = {}
    for condition in before.get("conditions") or ():
        seen.setdefault(condition.get("type"), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        waiting = seen.get(condition.get("type"))
        generation = waiting.pop(0) if waiting else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation
    for name in ("resources", "allocatedResources", "extendedResourceClaimStatus"):
        if name not in before:
            status.pop(name, None)
    for name in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(name) or ():
            container.pop("allocatedResourcesStatus", None)


def update_ephemeral_containers(pod: Made, old: Obj) -> None:
    """Restore everything but the ephemeral containers."""
    added = pod["spec"].get("ephemeralContainers")
    pod["spec"] = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    if added:
        pod["spec"]["ephemeralContainers"] = added
    _restore_all(pod, old)


def resize_pod(pod: Made, old: Obj) -> None:
    """Restore everything but container resources, unless containers are added, removed or renamed."""
    spec, before = pod["spec"], old["spec"]
    resized: dict[str, list[Made]] = {}
    for group in ("containers", "initContainers"):
        ours, theirs = spec.get(group) or [], before.get(group) or []
        if [one["name"] for one in ours] != [one["name"] for one in theirs]:
            return
        if ours:
            resized[group] = [
                _with(_without(known, "resizePolicy"), wanted, "resources", "resizePolicy")
                for known, wanted in zip(theirs, ours, strict=True)
            ]
    pod["spec"] = {**before, **resized}
    _restore_all(pod, old)


def drop_unallocated(spec: Made) -> None:
    """Drop the fields of disabled feature gates, silently as in kube-apiserver."""
    spec.pop("workloadRef", None)
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            source.pop("clusterTrustBundle", None)
            source.pop("podCertificate", None)
    for container in _containers(spec):
        lifecycle = container.get("lifecycle")
        if lifecycle and lifecycle.pop("stopSignal", None) is not None and not lifecycle:
            del container["lifecycle"]


def _containers(spec: Obj) -> Iterator[Made]:
    for group in ("containers", "initContainers", "ephemeralContainers"):
        yield from spec.get(group) or ()


def add_default_tolerations(spec: Made) -> None:
    """Add the default tolerations: five minutes on a node that is not ready or unreachable."""
    held = [
        toleration.get("key", "")
        for toleration in spec.get("tolerations") or ()
        if toleration.get("effect", "") in ("", "NoExecute")
    ]
    for taint in _NODE_TAINTS:
        if taint not in held and "" not in held:
            toleration = {
                "key": taint,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            spec.setdefault("tolerations", []).append(toleration)


def _selectors_to_extend(spec: Obj, labels: Obj) -> Iterator[tuple[Made, list[Made]]]:
    """Yield selectors that use matchLabelKeys, each with the expressions these are expanded to."""
    terms: list[Any] = list(spec.get("topologySpreadConstraints") or ())
    for side in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(side) or {}
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [weighted["podAffinityTerm"] for weighted in preferred]
        terms += affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    for term in terms:
        if term.get("labelSelector") is None:
            continue
        expressions = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term.get(keys) or ()
            if key in labels
        ]
        if expressions:
            yield term["labelSelector"], expressions


def _profile_containers(pod: Made) -> None:
    """Copy AppArmor annotations to fields."""
    spec = pod["spec"]
    annotations = pod["metadata"].get("annotations") or {}
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container in _containers(spec):
        annotation = annotations.get(f"{_APP_ARMOR}{container['name']}")
        profile = profile_of(annotation) if annotation else None
        if profile is None or (container.get("securityContext") or {}).get("appArmorProfile"):
            continue
        if profile != (spec.get("securityContext") or {}).get("appArmorProfile"):
            container.setdefault("securityContext", {})["appArmorProfile"] = profile


def profile_of(annotation: str) -> Made | None:
    """Return the AppArmor profile of an annotation; None for an invalid one."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    if annotation.startswith("localhost/") and annotation.removeprefix("localhost/").strip():
        return {"type": "Localhost", "localhostProfile": annotation.removeprefix("localhost/")}
    return None


def _restore(metadata: Made, before: Obj, *names: str) -> None:
    for name in names:
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)


def _restore_all(pod: Made, old: Obj) -> None:
    pod["status"] = old.get("status", {})
    _restore(pod["metadata"], old["metadata"], "labels", "annotations", "finalizers", "ownerReferences")


def _without(container: Obj, *names: str) -> Made:
    return {name: value for name, value in container.items() if name not in names}


def _with(container: Made, wanted: Obj, *names: str) -> Made:
    return {**container, **{name: wanted[name] for name in names if name in wanted}}
