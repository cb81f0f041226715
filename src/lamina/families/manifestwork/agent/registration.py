"""
Registration of a cluster with its hub: its lease, its availability, its resources and its claims.

Once the hub has accepted the cluster, its agent renews the lease that the hub created,
and reports that the cluster has joined and is available, its version, the resources of
its nodes, and its ClusterClaims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.model.controller import Controller, Watch, only
from lamina.core.model.plan import Action, Patch, Plan, Stage, set_status
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.families.manifestwork.agent.labels import HUB, Agent
from lamina.families.manifestwork.labels import CLUSTER, CLUSTER_CLAIM
from lamina.families.manifestwork.placement.managedcluster import (
    AVAILABLE,
    LEASE,
    LEASE_NAME,
    VERSION,
    cluster_ref,
    lease_ref,
)
from lamina.objects import conditions, meta
from lamina.objects.quantities import thousandths
from lamina.objects.times import micro_stamp, moment
from lamina.objects.types import Condition, GroupKind, Made, Obj, Ref

_CONDITIONS = {
    "ManagedClusterJoined": ("ManagedClusterJoined", "Managed cluster joined"),
    AVAILABLE: ("ManagedClusterAvailable", "Managed cluster is available"),
}
_NODE = GroupKind("", "Node")


class View(Struct, frozen=True, kw_only=True):
    """A ManagedCluster, its lease, and what its status is computed from."""

    cluster: Obj
    lease: Obj | None
    nodes: tuple[Obj, ...]
    claims: tuple[Obj, ...]
    version: str

    @property
    def spec(self) -> Obj:
        return self.cluster.get("spec") or {}


def registration(agent: Agent, version: str = "") -> Controller[View]:
    """Return the controller that registers a cluster; `version` is the one that its server reports."""
    ref = cluster_ref(agent.cluster, HUB)

    def itself(world: World, change: Change) -> Iterable[Ref]:
        return (ref,)

    def on_change(world: World, change: Change) -> Iterable[Ref]:
        return () if change.before == change.after else (ref,)

    def gather(world: World, key: Ref) -> View | None:
        cluster = world.get(key)
        if cluster is None or meta.is_deleting(cluster):
            return None
        return View(
            cluster=cluster,
            lease=world.get(lease_ref(agent.cluster, HUB)),
            nodes=tuple(world.every(_NODE)),
            claims=tuple(world.every(CLUSTER_CLAIM)),
            version=version,
        )

    return Controller(
        name="registration-agent",
        watches=(
            Watch(
                selects=only(*CLUSTER), api_version=VERSION, cluster=HUB, named=agent.cluster, enqueue=itself
            ),
            Watch(
                selects=only(*LEASE), cluster=HUB, namespace=agent.cluster, named=LEASE_NAME, enqueue=itself
            ),
            Watch(selects=only(*_NODE), keep=_resources, enqueue=on_change),
            Watch(selects=only(*CLUSTER_CLAIM), enqueue=on_change),
        ),
        gather=gather,
        plan=plan,
        manager="registration-agent",
        at_once=1,
    )


def _resources(node: Obj) -> Obj:
    """Keep the resources of a node; its status changes every few seconds."""
    status = node.get("status") or {}
    metadata = meta.metadata(node)
    kept = {key: metadata[key] for key in ("name", "uid", "resourceVersion") if key in metadata}
    return {
        "apiVersion": node["apiVersion"],
        "kind": node["kind"],
        "metadata": kept,
        "spec": {"unschedulable": bool((node.get("spec") or {}).get("unschedulable"))},
        "status": {
            "allocatable": status.get("allocatable") or {},
            "capacity": status.get("capacity") or {},
            "version": (status.get("nodeInfo") or {}).get("kubeletVersion") or "",
        },
    }


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next report to the hub."""
    if not view.spec.get("hubAcceptsClient"):
        return Plan(because="the hub has not accepted it")
    renewed, again = _renewal(view, now)
    status = set_status(view.cluster, _status(view, now), cluster=HUB)
    # The lease first: a hub that finds it expired sets Available to Unknown.
    stages = (Stage("renew the lease", renewed), Stage("report", (status,) if status is not None else ()))
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        requeue_after=again,
        because="its lease and its status are up to date",
    )


def _renewal(view: View, now: datetime) -> tuple[tuple[Action, ...], timedelta | None]:
    """Return the renewal of the lease if it is due, and when the next one is."""
    period = timedelta(seconds=view.spec.get("leaseDurationSeconds") or 60)
    if view.lease is None:
        # The hub creates it, which enqueues the cluster.
        return (), None
    renewed = moment((view.lease.get("spec") or {}).get("renewTime"))
    if renewed is not None and renewed <= now < renewed + period:
        return (), renewed + period - now
    patch: Made = {"spec": {"renewTime": micro_stamp(now)}}
    ref = meta.ref(view.lease, HUB)
    return (Patch(ref=ref, uid=meta.uid(view.lease), version="", patch=patch),), period


def _status(view: View, now: datetime) -> Made:
    old: Obj = view.cluster.get("status") or {}
    status: Made = {**old, "conditions": joined_and_available(old, now)}
    version = view.version or max((one["status"]["version"] for one in view.nodes), default="")
    if version:
        status["version"] = {"kubernetes": version}
    schedulable = [one for one in view.nodes if not one["spec"]["unschedulable"]]
    claims = [
        {"name": meta.name(one), "value": (one.get("spec") or {}).get("value")}
        for one in sorted(view.claims, key=meta.name)
    ]
    measured = {
        "allocatable": _total(one["status"]["allocatable"] for one in schedulable),
        "capacity": _total(one["status"]["capacity"] for one in view.nodes),
        "clusterClaims": [one for one in claims if one["value"]],
    }
    kept = {field: value for field, value in status.items() if field not in measured}
    return {**kept, **{field: value for field, value in measured.items() if value}}


def joined_and_available(status: Obj, now: datetime) -> Sequence[Condition]:
    """Return the conditions of a cluster whose agent reports that it has joined and is available."""
    reported: Sequence[Condition] = status.get("conditions") or ()
    for name, (reason, message) in _CONDITIONS.items():
        reported = conditions.with_condition(reported, name, "True", now=now, reason=reason, message=message)
    return reported


def _total(amounts: Iterable[Mapping[str, object]]) -> Made:
    """Return the sum of the resources of all nodes, in whole units where it has no fraction."""
    total: dict[str, int] = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + thousandths(str(amount))
    return {
        name: str(thousand // 1000) if thousand % 1000 == 0 else f"{thousand}m"
        for name, thousand in sorted(total.items())
    }
