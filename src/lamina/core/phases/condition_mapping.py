"""Conditions of objects that are copied to their owner, and from there to its own owner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from lamina.core.model.condition_list import ConditionList
from lamina.core.phases.object_step import ObjectStep
from lamina.objects import conditions, meta
from lamina.objects.types import Condition, Obj

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_STATUSES = ("True", "False", "Unknown")
_TYPE = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
)
_LONGEST_TYPE = 316


def is_mappable(destination: str) -> bool:
    """Say whether a condition may be copied to a type: it has a prefix, which is a domain, and a slash."""
    return len(destination) <= _LONGEST_TYPE and _TYPE.fullmatch(destination) is not None


def is_mapped(condition: Condition) -> bool:
    """Say whether a condition was copied: its type has a prefix and a slash."""
    return "/" in str(condition.get("type"))


def mapped(steps: Iterable[ObjectStep]) -> Iterator[Condition]:
    """Yield the conditions of live objects under the types that their manifests map them to."""
    for one in steps:
        if one.live is None or not one.manifest.mappings:
            continue
        found = conditions.of(one.live)
        for mapping in one.manifest.mappings:
            source = conditions.find(found, mapping.source)
            if source is not None and _is_current(source, one.live):
                yield _copied(source, mapping.destination)


def passed_on(obj: Obj) -> Iterator[Condition]:
    """Yield the copied conditions of an owner that are about its current generation."""
    for one in conditions.of(obj):
        if is_mapped(one) and one.get("observedGeneration") == meta.generation(obj):
            yield _copied(one, one["type"])


def outdated(obj: Obj) -> Iterator[str]:
    """Yield the types of copied conditions that an owner has not reported for its generation yet."""
    for one in conditions.of(obj):
        if is_mapped(one) and one.get("observedGeneration") != meta.generation(obj):
            yield one["type"]


def set_mapped(made: ConditionList, copied: Iterable[Condition], outdated: Iterable[str] = ()) -> None:
    """Replace all conditions that were copied from objects; those that are `outdated` stay until they are reported."""
    wanted = {one["type"]: one for one in copied}
    kept = {*wanted, *outdated}
    made.remove(*(one["type"] for one in made.found if is_mapped(one) and one["type"] not in kept))
    for name, one in wanted.items():
        made.set(name, one["status"], one.get("reason") or "", one.get("message") or "")


def _is_current(condition: Condition, obj: Obj) -> bool:
    observed = condition.get("observedGeneration") or 0
    return not observed or observed == meta.generation(obj)


def _copied(source: Condition, name: str) -> Condition:
    """Return a condition under another type; what no schema of conditions allows is replaced."""
    status, reason = str(source.get("status")), str(source.get("reason") or "")
    return Condition(
        type=name,
        status=status if status in _STATUSES else "Unknown",
        reason=reason if _REASON.fullmatch(reason) else "Unspecified",
        message=str(source.get("message") or ""),
    )
