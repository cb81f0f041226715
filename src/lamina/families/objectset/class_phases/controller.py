"""
The controllers of ObjectSetPhases, as values: one for each class.

A class that has the name of another cluster lays its phases on that cluster. When the cluster
is removed, its objects are gone with it, so nothing has to be torn down: an ObjectSetPhase of
its class loses the finalizer that only its controller would remove, and the status that is
no longer true.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lamina.core.crd.kinds import DEFINITION, names_only
from lamina.core.model.complaints import reported_by
from lamina.core.model.controller import (
    DEFAULT_OPTIONS,
    AnyController,
    Controller,
    Options,
    Watch,
    no_keys,
    one_of,
    only,
)
from lamina.core.model.family import ClusterControllers
from lamina.core.model.finalizers import is_held, release
from lamina.core.model.plan import NOTHING, Plan, one_stage, set_status
from lamina.core.model.world import Change, World
from lamina.families.objectset import lineage
from lamina.families.objectset.api import parse_set
from lamina.families.objectset.class_phases import plan as phase_plan
from lamina.families.objectset.class_phases.view import PhaseClass, View, by_object_kind, gather, object_kind
from lamina.families.objectset.labels import (
    API_VERSION,
    DEFAULT_CLASS,
    MANAGER,
    PHASE_CLASS,
    PHASES,
    SETS,
    SLICES,
    TEARDOWN,
)
from lamina.families.objectset.watches import shared_facts
from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj, Ref


def phases(phase_class: PhaseClass, options: Options = DEFAULT_OPTIONS) -> Controller[View]:
    """
    Return the controller of the ObjectSetPhases of one class.

    With a cluster for their objects, nothing is decided before that cluster is bound and its
    kinds are known: a phase whose kinds seem not to be served would have nothing to delete.
    """
    cluster = phase_class.cluster
    elsewhere = Watch(
        selects=only(*DEFINITION),
        enqueue=partial(_phases_of_definition, phase_class),
        keep=names_only,
        cluster=cluster,
    )
    return Controller(
        name=f"objectsetphase-{phase_class.name}",
        watches=(
            Watch(selects=one_of(PHASES), api_version=API_VERSION, enqueue=partial(_of_class, phase_class)),
            Watch(
                selects=one_of(SETS), api_version=API_VERSION, derive=parse_set, enqueue=_phases_of_lineage
            ),
            Watch(selects=one_of(SLICES), api_version=API_VERSION, enqueue=no_keys),
            *((elsewhere,) if cluster else ()),
        ),
        gather=partial(gather, phase_class),
        queries=phase_plan.queries,
        plan=phase_plan.plan,
        complain=reported_by(MANAGER),
        manager=MANAGER,
        at_once=options.workers,
        period=options.flush,
        resync_on_discovery=True,
    )


def _phases_of_lineage(world: World, change: Change) -> Iterator[Ref]:
    """Yield the ObjectSetPhases of the lineage of a set that changed."""
    if change.preserves(shared_facts):
        return
    kind = lineage.PHASE_OF[change.kind.kind]
    for one in (change.obj, *lineage.siblings(world, change.obj)):
        yield from (meta.ref(phase) for phase in world.owned_by(meta.uid(one), kind))


def _of_class(phase_class: PhaseClass, world: World, change: Change) -> Iterator[Ref]:
    """Yield a changed ObjectSetPhase that is of a class, or was."""
    if any(meta.labels(obj).get(PHASE_CLASS) == phase_class.name for obj in change.versions):
        yield change.ref


def _phases_of_definition(phase_class: PhaseClass, world: World, change: Change) -> Iterator[Ref]:
    """Yield the ObjectSetPhases of a class with objects of a kind that their cluster serves now, or no longer."""
    spec = change.obj.get("spec") or {}
    defined = GroupKind(spec.get("group") or "", (spec.get("names") or {}).get("kind") or "")
    for kind in PHASES:
        for obj in world.by_index(kind, by_object_kind, object_kind(phase_class.name, defined)):
            yield meta.ref(obj)


# Classes of other clusters


def cluster_controllers(options: Options) -> ClusterControllers:
    """Return the controllers that lay phases on other clusters, one for each cluster."""
    return ClusterControllers(
        controllers=partial(_controllers_for, options),
        held=tuple((API_VERSION, one.kind) for one in PHASES),
        release=release_phase,
    )


def _controllers_for(options: Options, cluster: str) -> tuple[AnyController, ...]:
    """Return the controller of the class that has the name of a cluster."""
    phase_class = phase_class_of(cluster)
    return (phases(phase_class, options),) if phase_class is not None else ()


def phase_class_of(cluster: str) -> PhaseClass | None:
    """Return the class of the phases of a cluster; none where its name is that of the built-in class."""
    return PhaseClass(name=cluster, cluster=cluster) if cluster != DEFAULT_CLASS else None


def release_phase(cluster: str, obj: Obj) -> Plan:
    """Return the next step that frees an ObjectSetPhase whose cluster is gone: no status, then no finalizer."""
    if cluster == DEFAULT_CLASS or meta.labels(obj).get(PHASE_CLASS) != cluster:
        return NOTHING
    because = f"cluster {cluster} has been removed, and its objects with it"
    patch = set_status(obj, {})
    if patch is not None:
        return one_stage("clear the status", [patch], because=because)
    return release(obj, TEARDOWN, because=because) if is_held(obj, TEARDOWN) else NOTHING
