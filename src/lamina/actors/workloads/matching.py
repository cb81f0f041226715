"""
Which volume a claim may have.

A volume fits a claim of its own class, mode and labels that asks for no more
than it has and for no way of access it lacks. Of those that fit, the one with
the fewest ways of access is taken, and of these the smallest, so that the large
ones are there for large claims.
"""

from __future__ import annotations

from collections.abc import Iterable

from lamina.objects import meta
from lamina.objects.quantities import thousandths
from lamina.objects.selectors import from_object
from lamina.objects.types import Obj

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def class_of(obj: Obj) -> str:
    """Return the storage class a claim or a volume names; none is a class too."""
    said = meta.annotations(obj).get(_OLD_CLASS)
    return said if said is not None else (obj.get("spec") or {}).get("storageClassName") or ""


def has_no_say(claim: Obj) -> bool:
    """Say whether a claim leaves it to others which class it is of."""
    return _OLD_CLASS not in meta.annotations(claim) and claim["spec"].get("storageClassName") is None


def asked(claim: Obj) -> int:
    """Return how much a claim asks for, in thousandths."""
    return thousandths(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or "0")


def size(volume: Obj) -> int:
    return thousandths(((volume.get("spec") or {}).get("capacity") or {}).get("storage") or "0")


def is_for(volume: Obj, claim: Obj) -> bool:
    """Say whether a volume names this claim; one that names no uid means whoever has the name."""
    named = (volume.get("spec") or {}).get("claimRef") or {}
    return (
        named.get("namespace") == meta.namespace(claim)
        and named.get("name") == meta.name(claim)
        and named.get("uid") in (None, "", meta.uid(claim))
    )


def misfit(volume: Obj, claim: Obj) -> str | None:
    """Return why a claim cannot have the volume it asks for by name; None where it can."""
    spec = volume.get("spec") or {}
    if size(volume) < asked(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if (spec.get("volumeMode") or "Filesystem") != (claim["spec"].get("volumeMode") or "Filesystem"):
        return "incompatible volumeMode"
    if not set(claim["spec"].get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return "incompatible accessMode"
    return None


def smallest_fit(volumes: Iterable[Obj], claim: Obj) -> Obj | None:
    """Return the volume that a claim gets of those nobody has, if one fits it."""
    selector = claim["spec"].get("selector")
    wanted = from_object(selector) if selector is not None else None
    fitting = [
        volume
        for volume in volumes
        if not (volume.get("spec") or {}).get("claimRef")
        and (volume.get("status") or {}).get("phase") == "Available"
        and not meta.is_deleting(volume)
        and (wanted is None or wanted.matches(meta.labels(volume)))
        and misfit(volume, claim) is None
    ]
    return min(fitting, key=_order, default=None)


def _order(volume: Obj) -> tuple[int, int, str]:
    return len(volume["spec"].get("accessModes") or ()), size(volume), meta.name(volume)
