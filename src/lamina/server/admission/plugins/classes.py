"""Storage, ingress and runtime classes: defaults and validation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from lamina.objects.quantities import quantity
from lamina.objects.types import Made, Obj
from lamina.server.admission.plugins.lister import Denied, Lister

_STORAGE: Final = "storageclasses.storage.k8s.io"
_INGRESS: Final = "ingressclasses.networking.k8s.io"
_RUNTIME: Final = "runtimeclasses.node.k8s.io"
_STORAGE_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_OLD_STORAGE: Final = "volume.beta.kubernetes.io/storage-class"
_INGRESS_MARK: Final = "ingressclass.kubernetes.io/is-default-class"
_OLD_INGRESS: Final = "kubernetes.io/ingress.class"


def _annotations(obj: Obj) -> Obj:
    return obj["metadata"].get("annotations") or {}


def _default(found: Sequence[Obj], *marks: str) -> str | None:
    """Return the name of the default class: of several, the newest, then the first by name."""
    marked = [one for one in found if any(_annotations(one).get(mark) == "true" for mark in marks)]
    marked.sort(key=lambda one: str(one["metadata"]["name"]))
    marked.sort(key=lambda one: str(one["metadata"]["creationTimestamp"]), reverse=True)
    return marked[0]["metadata"]["name"] if marked else None


def set_storage_class(claim: Made, lookup: Lister, suffix: str) -> None:
    """Set the default storage class on a claim without one. An empty name means no class."""
    if claim["spec"].get("storageClassName") is not None or _OLD_STORAGE in _annotations(claim):
        return
    if name := _default(lookup.list(_STORAGE), *_STORAGE_MARKS):
        claim["spec"]["storageClassName"] = name


def set_ingress_class(ingress: Made, lookup: Lister, suffix: str) -> None:
    """Set the default ingress class on an ingress without one."""
    if ingress["spec"].get("ingressClassName") is not None or _OLD_INGRESS in _annotations(ingress):
        return
    if name := _default(lookup.list(_INGRESS), _INGRESS_MARK):
        ingress["spec"]["ingressClassName"] = name


def validate_resize(new: Obj, old: Obj | None, lookup: Lister) -> None:
    """Refuse to resize a claim whose class does not allow it."""
    if old is None or _size(new) <= _size(old):
        return
    if (old.get("status") or {}).get("phase") != "Bound":
        raise Denied("Only bound persistent volume claims can be expanded")
    name = _annotations(old).get(_OLD_STORAGE) or old["spec"].get("storageClassName") or ""
    found = lookup.get(_STORAGE, "", name) if name else None
    if found is None or not found.get("allowVolumeExpansion"):
        raise Denied(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
            "must support resize"
        )


def _size(claim: Obj) -> Fraction:
    requested = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    return quantity(requested or "0").amount


def set_runtime_class(pod: Made, lookup: Lister, suffix: str) -> None:
    """Set the overhead, node selector and tolerations of the runtime class on a Pod."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        return
    found = lookup.get(_RUNTIME, "", name)
    if found is None:
        raise Denied(f'pod rejected: RuntimeClass "{name}" not found')
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead:
        if spec.get("overhead") and dict(spec["overhead"]) != dict(overhead):
            raise Denied("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    scheduling = found.get("scheduling") or {}
    wanted = scheduling.get("nodeSelector") or {}
    chosen = spec.get("nodeSelector") or {}
    for key, value in sorted(wanted.items()):
        if chosen.get(key, value) != value:
            raise Denied(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {chosen[key]}"
            )
    if wanted:
        spec["nodeSelector"] = {**chosen, **wanted}
    tolerations = spec.get("tolerations") or []
    added = [dict(one) for one in scheduling.get("tolerations") or () if one not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def validate_runtime_class(new: Obj, old: Obj | None, lookup: Lister) -> None:
    """Refuse a new Pod with an overhead that is not its runtime class's."""
    spec = new["spec"]
    if old is not None or not spec.get("overhead"):
        return
    name = spec.get("runtimeClassName")
    found = lookup.get(_RUNTIME, "", name) if name else None
    if found is None or not (found.get("overhead") or {}).get("podFixed"):
        raise Denied("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
