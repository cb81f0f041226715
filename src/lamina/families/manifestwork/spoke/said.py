"""What a work's status says so far: of it as a whole, and of each of its manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.families.manifestwork.spoke.manifest import Manifest
from lamina.objects import conditions
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj

_NAMED = ("group", "version", "kind", "resource", "name", "namespace")
_LONGEST = 32768


class Said(Struct, frozen=True):
    """What is said of each manifest so far."""

    entries: Mapping[tuple[str, ...], tuple[Obj, ...]]
    """By what they are about; without a name, or with the same one, there may be several."""

    def entry(self, manifest: Manifest) -> Obj:
        """Return what is said of a manifest: where it was before, or, if it has moved, where only it can be meant."""
        alike = self.entries.get(manifest.about, ())
        for one in alike:
            if (one["resourceMeta"].get("ordinal") or 0) == manifest.ordinal:
                return one
        return alike[0] if len(alike) == 1 and manifest.name else {}

    def conditions(self, manifest: Manifest) -> Sequence[Condition]:
        found: Sequence[Condition] = self.entry(manifest).get("conditions") or ()
        return found


def said(status: Obj) -> Said:
    """Return what a status says of manifests."""
    entries: dict[tuple[str, ...], tuple[Obj, ...]] = {}
    for one in (status.get("resourceStatus") or {}).get("manifests") or ():
        if one.get("resourceMeta"):
            about = _about(one["resourceMeta"])
            entries[about] = (*entries.get(about, ()), one)
    return Said(entries)


def _about(meta: Obj) -> tuple[str, ...]:
    return tuple(meta.get(key) or "" for key in _NAMED)


def resource_meta(manifest: Manifest) -> Made:
    """Return what the status of a work says a manifest is about."""
    return {"ordinal": manifest.ordinal, **dict(zip(_NAMED, manifest.about, strict=True))}


def find_at(said: Sequence[Condition], name: str, generation: int) -> Condition | None:
    """Return a condition if it is about this generation; one that is about another says nothing."""
    found = conditions.find(said, name)
    return found if found is not None and found.get("observedGeneration") == generation else None


def condition(
    said: Sequence[Condition],
    name: str,
    status: str,
    reason: str,
    message: str,
    *,
    now: datetime,
    generation: int,
    restarts: bool = False,
) -> Condition:
    """
    Return a condition that keeps its time while its status stays the same.

    One that `restarts` counts anew with each generation it is about.
    """
    old = conditions.find(said, name)
    keeps = old is not None and old["status"] == status
    if restarts and old is not None and old.get("observedGeneration") != generation:
        keeps = False
    since = old.get("lastTransitionTime") if old is not None and keeps else None
    return Condition(
        type=name,
        status=status,
        reason=reason,
        message=message[:_LONGEST],
        lastTransitionTime=since or stamp(now),
        observedGeneration=generation,
    )
