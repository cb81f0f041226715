"""What decides about the sets of one deployment or lineage, and what the status of their objects depends on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lamina.core.health.probe_spec import Probes, compile_probes
from lamina.core.phases.archive import RevisionFacts
from lamina.core.phases.manifest import Manifest
from lamina.core.phases.targets import RevisionObjects
from lamina.errors import SpecError
from lamina.families.objectset import lineage
from lamina.families.objectset.api import PROBES, read_set
from lamina.families.objectset.contents import contents, manifests_of, place_of
from lamina.families.objectset.reporting import read_controller_of
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj


class SetFacts(RevisionFacts, frozen=True, kw_only=True):
    """What decides about one set."""

    @property
    def name(self) -> str:
        return meta.name(self.obj)

    @property
    def state(self) -> str:
        return (self.obj.get("spec") or {}).get("lifecycleState") or "Active"

    @property
    def is_archived(self) -> bool:
        return lineage.is_archived(self.obj)

    @property
    def is_paused(self) -> bool:
        """Say whether the set reports, in its current generation, that it is paused."""
        return conditions.is_true_now(self.obj, "Paused")


def facts(sets: Iterable[Obj], slices: Mapping[str, Obj], kinds: Kinds) -> tuple[SetFacts, ...]:
    """Return what decides about sets, oldest first."""
    return tuple(
        SetFacts(
            obj=one,
            number=lineage.number(one),
            contents=contents(one, slices, kinds),
            controlled=frozenset(read_controller_of(one)),
            is_live=lineage.is_live(one),
            takes_over=(one.get("spec") or {}).get("lifecycleState") != "Paused",
            is_available=lineage.is_available(one),
            was_available=lineage.was_available(one),
            has_succeeded=lineage.has_succeeded(one),
            is_in_transition=conditions.find(conditions.of(one), "InTransition") is not None,
            is_reported=any(
                conditions.is_current(found, one)
                for found in conditions.of(one)
                if found.get("type") in ("Available", "InTransition")
            ),
        )
        for one in sorted(sets, key=lineage.in_order)
    )


def objects_of_sets(
    sets: Sequence[SetFacts], slices: Mapping[str, Obj], kinds: Kinds
) -> tuple[RevisionObjects, ...]:
    """Return what the status of the objects of some sets depends on."""
    return tuple(_objects(one, slices, kinds) for one in sets)


def _objects(one: SetFacts, slices: Mapping[str, Obj], kinds: Kinds) -> RevisionObjects:
    listed = list(_contents(one.obj, slices, kinds))
    return RevisionObjects(
        facts=one,
        manifests=tuple(manifest for _, manifest in listed),
        elsewhere=frozenset(manifest.key for class_, manifest in listed if place_of(class_)),
        is_over=one.is_archived,
        probes=_probes(one),
    )


def _contents(obj: Obj, slices: Mapping[str, Obj], kinds: Kinds) -> Iterator[tuple[str, Manifest]]:
    try:
        spec = read_set(obj)
        for phase in spec.phases:
            for one in manifests_of(obj, spec, phase, slices, kinds):
                yield phase.class_, one
    except SpecError:
        # The status says what is wrong with it.
        return


def _probes(one: SetFacts) -> Probes:
    try:
        return compile_probes(read_set(one.obj).availability_probes, PROBES)
    except SpecError:
        return Probes()
