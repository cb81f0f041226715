"""Defaults of volumes, claims, storage classes and CSI drivers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from lamina.objects.types import Made


def _volume(volume: Made) -> None:
    volume["status"].setdefault("phase", "Pending")
    volume["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume["spec"].setdefault("volumeMode", "Filesystem")


def _claim(claim: Made) -> None:
    claim["status"].setdefault("phase", "Pending")


def _claim_spec(spec: Made) -> None:
    spec.setdefault("volumeMode", "Filesystem")


def _storage_class(storage_class: Made) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def _driver(driver: Made) -> None:
    spec = driver["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


RULES: Final[Mapping[str, Callable[[Made], None]]] = {
    "core/v1.PersistentVolume": _volume,
    "core/v1.PersistentVolumeClaim": _claim,
    "core/v1.PersistentVolumeClaimSpec": _claim_spec,
    "storage/v1.StorageClass": _storage_class,
    "storage/v1.CSIDriver": _driver,
}
