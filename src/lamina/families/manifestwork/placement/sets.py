"""What is said of sets of clusters and of who may use them: whether anybody is in one, whether it is there."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.plan import Plan, one_stage, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World
from lamina.families.manifestwork.names import CLUSTER, CLUSTER_GROUP, CLUSTER_SET, CLUSTER_SET_BINDING
from lamina.families.manifestwork.placement.eligible import members
from lamina.objects import meta
from lamina.objects.conditions import with_condition
from lamina.objects.types import Obj, Ref

_TOGETHER = timedelta(milliseconds=50)


class View(Struct, frozen=True):
    """A set or a binding, and what is to be said of it."""

    obj: Obj
    condition: str
    status: str
    reason: str
    message: str


def _set(world: World, ref: Ref) -> View | None:
    obj = world.get(ref)
    if obj is None or meta.is_deleting(obj):
        return None
    count = len(members(obj, world.every(CLUSTER)))
    if not count:
        return View(obj, "ClusterSetEmpty", "True", "NoClusterMatched", "No ManagedCluster selected")
    return View(obj, "ClusterSetEmpty", "False", "ClustersSelected", f"{count} ManagedClusters selected")


def _binding(world: World, ref: Ref) -> View | None:
    obj = world.get(ref)
    if obj is None or meta.is_deleting(obj):
        return None
    name = (obj.get("spec") or {}).get("clusterSet") or ""
    if name != meta.name(obj):
        told = f"its name has to be that of the set it binds, {name}"
        return View(obj, "Bound", "False", "ClusterSetNotBound", told)
    if world.get(Ref(f"{CLUSTER_GROUP}/v1beta2", CLUSTER_SET.kind, "", name)) is None:
        return View(obj, "Bound", "False", "ClusterSetNotFound", f"ManagedClusterSet {name} is not there")
    return View(obj, "Bound", "True", "ClusterSetBound", "")


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Say it, where it is not said yet."""
    old: Obj = view.obj.get("status") or {}
    said = with_condition(
        old.get("conditions") or (),
        view.condition,
        view.status,
        reason=view.reason,
        message=view.message,
        now=now,
    )
    status = set_status(view.obj, {**old, "conditions": said})
    return one_stage("say so", (status,) if status is not None else (), because=view.message)


def _every_set(world: World, change: Change) -> Iterable[Ref]:
    before, after = change.before, change.after
    if before is not None and after is not None and meta.labels(before) == meta.labels(after):
        return ()
    return [meta.ref(one) for one in world.every(CLUSTER_SET)]


def _its_bindings(world: World, change: Change) -> Iterable[Ref]:
    name = meta.name(change.obj)
    return [meta.ref(one) for one in world.every(CLUSTER_SET_BINDING) if meta.name(one) == name]


SETS: Controller[View] = Controller(
    name="managedclustersets",
    watches=(
        Watch(selects=only(*CLUSTER_SET), concerns=itself),
        Watch(selects=only(*CLUSTER), concerns=_every_set, delay=_TOGETHER),
    ),
    gather=_set,
    plan=plan,
    manager="registration-controller",
)

BINDINGS: Controller[View] = Controller(
    name="managedclustersetbindings",
    watches=(
        Watch(selects=only(*CLUSTER_SET_BINDING), concerns=itself),
        Watch(selects=only(*CLUSTER_SET), concerns=_its_bindings),
    ),
    gather=_binding,
    plan=plan,
    manager="registration-controller",
)
