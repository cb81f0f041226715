"""The objects that the spec of a set contains, with those of its slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lamina.core.model.world import World
from lamina.core.phases.contents import Contents
from lamina.core.phases.manifest import Manifest
from lamina.errors import SpecError
from lamina.families.objectset.api import SetObject, SetSpec, TemplatePhase, read_set, read_slice
from lamina.families.objectset.labels import API_VERSION, CLUSTER_SLICE, DEFAULT_CLASS, SLICE
from lamina.families.objectset.manifests import manifests
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Obj, Ref


def place_of(class_: str) -> str:
    """Return the class that names the cluster of the objects of a phase."""
    return "" if class_ == DEFAULT_CLASS else class_


def contents(obj: Obj, slices: Mapping[str, Obj], kinds: Kinds) -> Contents:
    """Return the objects that a set contains."""
    try:
        spec = read_set(obj)
        phases = [(phase.class_, manifests_of(obj, spec, phase, slices, kinds)) for phase in spec.phases]
    except SpecError:
        return Contents({}, is_complete=False)
    places = {one.key: place_of(class_) for class_, those in phases for one in those}
    return Contents(places, is_complete=not missing_slices(spec, slices))


def manifests_of(
    obj: Obj, spec: SetSpec, phase: TemplatePhase, slices: Mapping[str, Obj], kinds: Kinds
) -> tuple[Manifest, ...]:
    """Return the objects of one phase of a set, with those of its slices."""
    return tuple(
        one
        for slice_, objects in parts_of(phase, slices)
        for one in manifests(
            phase.name,
            objects,
            namespace=meta.namespace(obj),
            kinds=kinds,
            protection=spec.collision_protection,
            part=slice_,
        )
    )


def parts_of(phase: TemplatePhase, slices: Mapping[str, Obj]) -> Iterator[tuple[str, Sequence[SetObject]]]:
    """Yield the objects of a phase itself, and then those of each slice, with its name."""
    yield "", phase.objects
    for name in phase.slices:
        if name in slices:
            yield name, read_slice(slices[name]).objects


def missing_slices(spec: SetSpec, slices: Mapping[str, Obj]) -> tuple[str, ...]:
    """Return the names of slices that do not exist."""
    return tuple(dict.fromkeys(name for phase in spec.phases for name in phase.slices if name not in slices))


def slices_of(world: World, sets: Iterable[Obj]) -> dict[str, Obj]:
    """Return the slices that sets of one namespace name, as far as they exist, by name."""
    refs = dict.fromkeys(slice_ref(obj, name) for obj in sets for name in slice_names(obj))
    found = {ref.name: world.get(ref) for ref in refs}
    return {name: one for name, one in found.items() if one is not None}


def slice_names(obj: Obj) -> Iterator[str]:
    """Yield the names of the slices of a set, or of another object with phases in its spec."""
    for phase in (obj.get("spec") or {}).get("phases") or ():
        yield from phase.get("slices") or ()


def by_slice(obj: Obj) -> Iterator[str]:
    """Index a set by each of its slices."""
    for name in slice_names(obj):
        yield f"{meta.namespace(obj)}/{name}"


def slice_ref(obj: Obj, name: str) -> Ref:
    """Return the reference of a slice in the namespace of a set or deployment."""
    kind = SLICE if meta.namespace(obj) else CLUSTER_SLICE
    return Ref(API_VERSION, kind.kind, meta.namespace(obj), name)
