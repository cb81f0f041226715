"""Table rows of storage kinds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lamina.objects.types import Obj
from lamina.server.kinds.builtin.columns.cells import NONE, UNSET, age, is_deleting, name_of
from lamina.server.kinds.builtin.validate.parts import items, part, text

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _modes(found: Sequence[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def _class(obj: Obj) -> str:
    old = part(part(obj, "metadata"), "annotations").get(_CLASS)
    return old if old is not None else text(part(obj, "spec"), "storageClassName")


def volume(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        part(spec, "capacity").get("storage") or "0",
        _modes(items(spec, "accessModes")),
        text(spec, "persistentVolumeReclaimPolicy"),
        "Terminating" if is_deleting(obj) else text(status, "phase"),
        "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}",
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        text(status, "reason"),
        age(obj, now),
        _or_unset(spec.get("volumeMode")),
    ]


def _or_unset(value: str | None) -> str:
    return UNSET if value is None else value


def claim(obj: Obj, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    bound = text(spec, "volumeName")
    return [
        name_of(obj),
        "Terminating" if is_deleting(obj) else text(status, "phase"),
        bound,
        (part(status, "capacity").get("storage") or "0") if bound else "",
        _modes(items(status, "accessModes")) if bound else "",
        _class(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        age(obj, now),
        _or_unset(spec.get("volumeMode")),
    ]


def storage_class(obj: Obj, now: datetime) -> list[Any]:
    annotations = part(part(obj, "metadata"), "annotations")
    chosen = any(annotations.get(key) == "true" for key in _DEFAULT)
    return [
        f"{name_of(obj)} (default)" if chosen else name_of(obj),
        text(obj, "provisioner"),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def attachment(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    return [
        name_of(obj),
        text(spec, "attacher"),
        text(part(spec, "source"), "persistentVolumeName"),
        text(spec, "nodeName"),
        bool(part(obj, "status").get("attached")),
        age(obj, now),
    ]


def driver(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    requests = spec.get("tokenRequests")
    return [
        name_of(obj),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(text(one, "audience") for one in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(items(spec, "volumeLifecycleModes")) or NONE,
        age(obj, now),
    ]


def node(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(items(part(obj, "spec"), "drivers")), age(obj, now)]
