"""The controller of sets, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamina.core.model.complaints import reported_by
from lamina.core.model.controller import DEFAULT_OPTIONS, Controller, Options, Watch, one_of
from lamina.core.model.world import Change, World
from lamina.families.objectset.api import parse_set
from lamina.families.objectset.labels import API_VERSION, GROUP, MANAGER, PHASES, SETS, SLICES
from lamina.families.objectset.lineage import PHASE_OF, is_archived, siblings
from lamina.families.objectset.owner_status import owner_state
from lamina.families.objectset.sets import plan as set_plan
from lamina.families.objectset.sets.view import View, gather
from lamina.families.objectset.watches import sets_of_slice, shared_facts
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref


def sets(options: Options = DEFAULT_OPTIONS) -> Controller[View]:
    """Return the controller of sets."""
    return Controller(
        name="objectset",
        watches=(
            Watch(selects=one_of(SETS), api_version=API_VERSION, derive=parse_set, enqueue=_set_changed),
            Watch(selects=one_of(PHASES), api_version=API_VERSION, enqueue=_phase_changed),
            Watch(selects=one_of(SLICES), api_version=API_VERSION, enqueue=sets_of_slice),
        ),
        gather=gather,
        queries=set_plan.queries,
        plan=set_plan.plan,
        complain=reported_by(MANAGER),
        manager=MANAGER,
        at_once=options.workers,
        period=options.flush,
        owner_state=owner_state,
        # An object of a kind that was installed since may be written now.
        resync_on_discovery=True,
    )


def _set_changed(world: World, change: Change) -> Iterator[Ref]:
    if not change.preserves(_own_facts):
        yield change.ref
    if not change.preserves(shared_facts):
        yield from (meta.ref(one) for one in siblings(world, change.obj) if not is_archived(one))


def _phase_changed(world: World, change: Change) -> Iterator[Ref]:
    """
    Yield the set whose ObjectSetPhase has that name, controlled by the set or not.

    One of another owner may be gone now, and the garbage collector removes the owner references of orphans.
    """
    key = f"{meta.namespace(change.obj)}/{meta.name(change.obj)}"
    for kind, phase in PHASE_OF.items():
        if phase == change.kind.group_kind:
            yield from (meta.ref(one) for one in world.by_index(GroupKind(GROUP, kind), by_phase, key))


def by_phase(obj: Obj) -> Iterator[str]:
    """Index a set by the names of the ObjectSetPhases of its phases with a class."""
    for one in (obj.get("spec") or {}).get("phases") or ():
        if one.get("class"):
            yield f"{meta.namespace(obj)}/{meta.name(obj)}-{one.get('name')}"


def _own_facts(obj: Obj) -> Any:
    """Return what of a set a plan for it depends on."""
    metadata = meta.metadata(obj)
    return (
        meta.uid(obj),
        meta.generation(obj),
        metadata.get("deletionTimestamp"),
        list(meta.finalizers(obj)),
        dict(meta.labels(obj)),
        list(meta.owner_refs(obj)),
        # What a cache showed of it may have been outdated when it was reported.
        obj.get("status"),
    )
