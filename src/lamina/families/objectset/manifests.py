"""The objects of phases and slices, as core's phases write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lamina.core.ownership.handover import Adoption
from lamina.core.phases.condition_mapping import is_mappable
from lamina.core.phases.manifest import ConditionMapping, Manifest, located
from lamina.families.objectset.api import CollisionProtection, SetObject
from lamina.families.objectset.labels import DELETION_POLICY, PACKAGE
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj

_ADOPTIONS: Mapping[str, Adoption] = {
    CollisionProtection.PREVENT: Adoption.NEVER,
    CollisionProtection.IF_NO_CONTROLLER: Adoption.ORPHANS,
    CollisionProtection.NONE: Adoption.ANY,
}
"""What each collision protection lets a set take over."""
_SELF_MANAGED = "package-operator"


def forced_adoption(obj: Obj) -> Adoption | None:
    """Return what an object of Package Operator's own package adopts, and so does what a set of it copies its label to."""
    return Adoption.ANY if meta.labels(obj).get(PACKAGE) == _SELF_MANAGED else None


def manifests(
    phase: str, objects: Iterable[SetObject], *, namespace: str, kinds: Kinds, protection: str, part: str = ""
) -> Iterator[Manifest]:
    """Yield the objects of a phase or of one of its slices; `protection` is that of objects that state none."""
    for one in objects:
        key, kind = located(one.object, namespace, kinds)
        stated = one.collision_protection or protection or CollisionProtection.PREVENT
        adoption = forced_adoption(one.object) or _ADOPTIONS.get(stated)
        yield Manifest(
            phase=phase,
            obj=one.object,
            key=key,
            kind=kind,
            adoption=adoption,
            mappings=tuple(
                ConditionMapping(each.source_type, each.destination_type) for each in one.condition_mappings
            ),
            is_orphaned=meta.annotations(one.object).get(DELETION_POLICY) == "Orphan",
            part=part,
            problems=tuple(_problems(one, stated, adoption)),
        )


def _problems(one: SetObject, stated: str, adoption: Adoption | None) -> Iterator[str]:
    for mapping in one.condition_mappings:
        if not is_mappable(mapping.destination_type):
            yield (
                f'conditionMappings: destinationType "{mapping.destination_type}" is no condition type; '
                "use DOMAIN/Name, as my.org/Ready"
            )
    if adoption is None:
        known = ", ".join(_ADOPTIONS)
        yield f'collisionProtection: unknown value "{stated}", expected one of {known}'
