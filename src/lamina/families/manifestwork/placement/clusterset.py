"""
The sets that every hub has, and the conditions of sets and bindings: ClusterSetEmpty and Bound.

A cluster that joins is in the set `default`; the set `global` has all clusters. Each is created
where it is missing, and stays as it is otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import Create, Plan, one_stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.families.manifestwork.labels import CLUSTER, CLUSTER_GROUP, CLUSTER_SET, CLUSTER_SET_BINDING
from lamina.families.manifestwork.placement.filter import members
from lamina.objects import meta
from lamina.objects.conditions import with_condition
from lamina.objects.types import GroupKind, Made, Obj, Ref

_TOGETHER = timedelta(milliseconds=50)
_VERSION = f"{CLUSTER_GROUP}/v1beta2"
_NAMESPACE = GroupKind("", "Namespace")
_ALWAYS_THERE = "default"
"""A namespace that every cluster has: its first event is what starts a hub without any object."""
DEFAULT_SET = "default"
"""The set of the clusters that join."""
_SELECTORS: Mapping[str, Made] = {
    DEFAULT_SET: {"selectorType": "ExclusiveClusterSetLabel"},
    "global": {"selectorType": "LabelSelector", "labelSelector": {}},
}
EVERY_HUB_HAS: Mapping[str, Made] = {
    name: {
        "apiVersion": _VERSION,
        "kind": CLUSTER_SET.kind,
        "metadata": {"name": name},
        "spec": {"clusterSelector": selector},
    }
    for name, selector in _SELECTORS.items()
}
"""The sets that every hub has, by name."""


class View(Struct, frozen=True):
    """A set or a binding, and the condition it is to have."""

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
        message = f"its name has to be that of the set it binds, {name}"
        return View(obj, "Bound", "False", "ClusterSetNotBound", message)
    if world.get(Ref(_VERSION, CLUSTER_SET.kind, "", name)) is None:
        return View(obj, "Bound", "False", "ClusterSetNotFound", f"ManagedClusterSet {name} does not exist")
    return View(obj, "Bound", "True", "ClusterSetBound", "")


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the patch of a status that lacks the condition."""
    old: Obj = view.obj.get("status") or {}
    found = with_condition(
        old.get("conditions") or (),
        view.condition,
        view.status,
        reason=view.reason,
        message=view.message,
        now=now,
    )
    status = set_status(view.obj, {**old, "conditions": found})
    return one_stage("report", (status,) if status is not None else (), because=view.message)


def _every_set(world: World, change: Change) -> Iterable[Ref]:
    return () if change.preserves(meta.labels) else [meta.ref(one) for one in world.every(CLUSTER_SET)]


def _its_bindings(world: World, change: Change) -> Iterable[Ref]:
    name = meta.name(change.obj)
    return [meta.ref(one) for one in world.every(CLUSTER_SET_BINDING) if meta.name(one) == name]


SETS: Controller[View] = Controller(
    name="managedclustersets",
    watches=(
        Watch(selects=only(*CLUSTER_SET), enqueue=itself),
        Watch(selects=only(*CLUSTER), enqueue=_every_set, delay=_TOGETHER),
    ),
    gather=_set,
    plan=plan,
    manager="registration-controller",
)

BINDINGS: Controller[View] = Controller(
    name="managedclustersetbindings",
    watches=(
        Watch(selects=only(*CLUSTER_SET_BINDING), enqueue=itself),
        Watch(selects=only(*CLUSTER_SET), enqueue=_its_bindings),
    ),
    gather=_binding,
    plan=plan,
    manager="registration-controller",
)


# The sets that every hub has


def _missing(world: World, ref: Ref) -> Made | None:
    """Return a set that every hub has, where it is missing."""
    return EVERY_HUB_HAS.get(ref.name) if world.get(ref) is None else None


def _create(missing: Made, answers: Answers, now: datetime) -> Plan:
    because = f"every hub has a set {meta.name(missing)}"
    return one_stage("create the set", (Create(obj=missing),), because=because)


def _sets_that_are_always_there(world: World, change: Change) -> Iterable[Ref]:
    if meta.name(change.obj) != _ALWAYS_THERE or change.before is not None:
        return ()
    return [Ref(_VERSION, CLUSTER_SET.kind, "", name) for name in EVERY_HUB_HAS]


def _deleted(world: World, change: Change) -> Iterable[Ref]:
    return (change.ref,) if change.after is None and meta.name(change.obj) in EVERY_HUB_HAS else ()


DEFAULT_SETS: Controller[Made] = Controller(
    name="defaultclustersets",
    watches=(
        Watch(selects=only(*_NAMESPACE), enqueue=_sets_that_are_always_there, metadata_only=True),
        Watch(selects=only(*CLUSTER_SET), api_version=_VERSION, enqueue=_deleted),
    ),
    gather=_missing,
    plan=_create,
    manager="registration-controller",
)
