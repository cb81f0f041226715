"""
Matches volumes to claims.

A volume matches a claim of its class, mode and labels that requests at most its
capacity and access modes. Of those that match, the one with the fewest access
modes is taken, and of these the smallest, so that large volumes are left for large
claims.
"""

from __future__ import annotations

from collections.abc import Iterable

from lamina.objects import meta
from lamina.objects.quantities import thousandths
from lamina.objects.selectors import from_object
from lamina.objects.types import Obj

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def class_of(obj: Obj) -> str:
    """Return the storage class of a claim or a volume; no class is the class ""."""
    annotated = meta.annotations(obj).get(_OLD_CLASS)
    return annotated if annotated is not None else (obj.get("spec") or {}).get("storageClassName") or ""


def has_no_class(claim: Obj) -> bool:
    """Say whether a claim has no class, and gets the default one."""
    return _OLD_CLASS not in meta.annotations(claim) and claim["spec"].get("storageClassName") is None


def requested(claim: Obj) -> int:
    """Return the requested storage of a claim, in thousandths."""
    return thousandths(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or "0")


def size(volume: Obj) -> int:
    return thousandths(((volume.get("spec") or {}).get("capacity") or {}).get("storage") or "0")


def is_for(volume: Obj, claim: Obj) -> bool:
    """Say whether a volume's claimRef refers to this claim; without a uid the name decides."""
    named = (volume.get("spec") or {}).get("claimRef") or {}
    return (
        named.get("namespace") == meta.namespace(claim)
        and named.get("name") == meta.name(claim)
        and named.get("uid") in (None, "", meta.uid(claim))
    )


def mismatch(volume: Obj, claim: Obj) -> str | None:
    """Return why a volume does not match a claim; None where it does."""
    spec = volume.get("spec") or {}
    if size(volume) < requested(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if (spec.get("volumeMode") or "Filesystem") != (claim["spec"].get("volumeMode") or "Filesystem"):
        return "incompatible volumeMode"
    if not set(claim["spec"].get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return "incompatible accessMode"
    return None


def smallest_fit(volumes: Iterable[Obj], claim: Obj) -> Obj | None:
    """Return the volume for a claim of the available ones, None if none matches."""
    selector = claim["spec"].get("selector")
    wanted = from_object(selector) if selector is not None else None
    fitting = [
        volume
        for volume in volumes
        if not (volume.get("spec") or {}).get("claimRef")
        and (volume.get("status") or {}).get("phase") == "Available"
        and not meta.is_deleting(volume)
        and (wanted is None or wanted.matches(meta.labels(volume)))
        and mismatch(volume, claim) is None
    ]
    return min(fitting, key=_order, default=None)


def _order(volume: Obj) -> tuple[int, int, str]:
    return len(volume["spec"].get("accessModes") or ()), size(volume), meta.name(volume)
