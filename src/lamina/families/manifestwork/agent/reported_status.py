"""The status that a work has: its conditions, and the entry of each of its manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamina.families.manifestwork.agent.manifest import Manifest
from lamina.objects import conditions
from lamina.objects.times import stamp
from lamina.objects.types import Condition, Made, Obj

_NAMED = ("group", "version", "kind", "resource", "name", "namespace")
_LONGEST = 32768


class Reported(Struct, frozen=True):
    """The status entries of manifests."""

    entries: Mapping[tuple[str, ...], tuple[Obj, ...]]
    """By the object they are about; objects without a name, or with the same one, may have several."""

    def entry(self, manifest: Manifest) -> Obj:
        """Return the entry of a manifest: at its position, or, if it has moved, the only one of its object."""
        alike = self.entries.get(manifest.about, ())
        for one in alike:
            if (one["resourceMeta"].get("ordinal") or 0) == manifest.ordinal:
                return one
        return alike[0] if len(alike) == 1 and manifest.name else {}

    def conditions(self, manifest: Manifest) -> Sequence[Condition]:
        found: Sequence[Condition] = self.entry(manifest).get("conditions") or ()
        return found


def reported(status: Obj) -> Reported:
    """Return the entries of a status."""
    entries: dict[tuple[str, ...], tuple[Obj, ...]] = {}
    for one in (status.get("resourceStatus") or {}).get("manifests") or ():
        if one.get("resourceMeta"):
            about = _about(one["resourceMeta"])
            entries[about] = (*entries.get(about, ()), one)
    return Reported(entries)


def _about(meta: Obj) -> tuple[str, ...]:
    return tuple(meta.get(key) or "" for key in _NAMED)


def resource_meta(manifest: Manifest) -> Made:
    """Return the resourceMeta of a manifest."""
    return {"ordinal": manifest.ordinal, **dict(zip(_NAMED, manifest.about, strict=True))}


def find_at(reported: Sequence[Condition], name: str, generation: int) -> Condition | None:
    """Return a condition if it is about this generation."""
    found = conditions.find(reported, name)
    return found if found is not None and found.get("observedGeneration") == generation else None


def condition(
    reported: Sequence[Condition],
    name: str,
    status: str,
    reason: str,
    message: str,
    *,
    now: datetime,
    generation: int,
) -> Condition:
    """
    Return a condition, which keeps its transition time while its status stays the same.

    Applied gets a new transition time with each generation.
    """
    old = conditions.find(reported, name)
    keeps = old is not None and old["status"] == status
    if name == "Applied" and old is not None and old.get("observedGeneration") != generation:
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
