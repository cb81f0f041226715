"""
How a cluster makes itself known to its hub: that it is there, and what it is like.

Once the hub has accepted it, its agent renews the lease that the hub gave it, says that
it has joined and is available, and which version it runs, what its nodes have to give,
and what it claims of itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lamina.core.controller import Controller, Watch, only
from lamina.core.plan import Action, Patch, Plan, Stage, set_status
from lamina.core.questions import Answers
from lamina.core.world import Change, World
from lamina.families.manifestwork.names import CLUSTER, CLUSTER_CLAIM, CLUSTER_GROUP
from lamina.families.manifestwork.placement.clusters import AVAILABLE, LEASE_NAME
from lamina.families.manifestwork.spoke.names import HUB, Agent
from lamina.objects import conditions, meta
from lamina.objects.quantities import thousandths
from lamina.objects.times import micro_stamp, moment
from lamina.objects.types import GroupKind, Made, Obj, Ref

JOINED = "ManagedClusterJoined"

_VERSION = f"{CLUSTER_GROUP}/v1"
_LEASE = GroupKind("coordination.k8s.io", "Lease")
_NODE = GroupKind("", "Node")


class View(Struct, frozen=True, kw_only=True):
    """A cluster as its hub has it, its lease, and what there is to tell of it."""

    cluster: Obj
    lease: Obj | None
    nodes: tuple[Obj, ...]
    claims: tuple[Obj, ...]
    version: str

    @property
    def spec(self) -> Obj:
        return self.cluster.get("spec") or {}


def registration(agent: Agent, version: str = "") -> Controller[View]:
    """Return the controller that makes a cluster known to its hub; `version` is the one its server says it has."""
    ref = Ref(_VERSION, CLUSTER.kind, "", agent.cluster, HUB)

    def itself(world: World, change: Change) -> Iterable[Ref]:
        return (ref,)

    def on_news(world: World, change: Change) -> Iterable[Ref]:
        return () if change.before == change.after else (ref,)

    def gather(world: World, key: Ref) -> View | None:
        cluster = world.get(key)
        if cluster is None or meta.is_deleting(cluster):
            return None
        return View(
            cluster=cluster,
            lease=world.get(Ref("coordination.k8s.io/v1", _LEASE.kind, agent.cluster, LEASE_NAME, HUB)),
            nodes=tuple(world.every(_NODE)),
            claims=tuple(world.every(CLUSTER_CLAIM)),
            version=version,
        )

    return Controller(
        name="registration-agent",
        watches=(
            Watch(
                selects=only(*CLUSTER),
                api_version=_VERSION,
                cluster=HUB,
                named=agent.cluster,
                concerns=itself,
            ),
            Watch(
                selects=only(*_LEASE),
                cluster=HUB,
                namespace=agent.cluster,
                named=LEASE_NAME,
                concerns=itself,
            ),
            Watch(selects=only(*_NODE), keep=_amounts, concerns=on_news),
            Watch(selects=only(*CLUSTER_CLAIM), concerns=on_news),
        ),
        gather=gather,
        plan=plan,
        manager="registration-agent",
        at_once=1,
    )


def _amounts(node: Obj) -> Obj:
    """Keep what a node has to give; that it is still there it says every few seconds."""
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
    """Decide what is told to the hub."""
    if not view.spec.get("hubAcceptsClient"):
        return Plan(because="the hub has not accepted it")
    renewed, again = _renewal(view, now)
    status = set_status(view.cluster, _status(view, now), cluster=HUB)
    # The lease first: a hub that sees an old one would take back what is said of it.
    stages = (
        Stage("renew its lease", renewed),
        Stage("say so", (status,) if status is not None else ()),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        look_again=again,
        because="it is there, and says what it is like",
    )


def _renewal(view: View, now: datetime) -> tuple[tuple[Action, ...], timedelta | None]:
    """Return the renewal of a lease that is due, and when the next one is."""
    period = timedelta(seconds=view.spec.get("leaseDurationSeconds") or 60)
    if view.lease is None:
        # The hub gives it one, and we hear of that.
        return (), None
    renewed = moment((view.lease.get("spec") or {}).get("renewTime"))
    if renewed is not None and renewed <= now < renewed + period:
        return (), renewed + period - now
    patch: Made = {"spec": {"renewTime": micro_stamp(now)}}
    ref = meta.ref(view.lease, HUB)
    return (Patch(ref=ref, uid=meta.uid(view.lease), version="", patch=patch),), period


def _status(view: View, now: datetime) -> Made:
    old: Obj = view.cluster.get("status") or {}
    said = conditions.with_condition(
        old.get("conditions") or (),
        JOINED,
        "True",
        reason="ManagedClusterJoined",
        message="Managed cluster joined",
        now=now,
    )
    said = conditions.with_condition(
        said,
        AVAILABLE,
        "True",
        reason="ManagedClusterAvailable",
        message="Managed cluster is available",
        now=now,
    )
    told: Made = {**old, "conditions": said}
    version = view.version or max((one["status"]["version"] for one in view.nodes), default="")
    if version:
        told["version"] = {"kubernetes": version}
    schedulable = [one["status"] for one in view.nodes if not one["spec"]["unschedulable"]]
    for field, those in (
        ("allocatable", schedulable),
        ("capacity", [one["status"] for one in view.nodes]),
    ):
        if total := _total([one[field] for one in those]):
            told[field] = total
        else:
            told.pop(field, None)
    claims = [
        {"name": meta.name(one), "value": (one.get("spec") or {}).get("value")}
        for one in sorted(view.claims, key=meta.name)
    ]
    if claims := [one for one in claims if one["value"]]:
        told["clusterClaims"] = claims
    else:
        told.pop("clusterClaims", None)
    return told


def _total(amounts: Sequence[Mapping[str, object]]) -> Made:
    """Return what all nodes have together, in whole units where there are only such."""
    total: dict[str, int] = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, 0) + thousandths(str(amount))
    return {
        name: str(thousand // 1000) if thousand % 1000 == 0 else f"{thousand}m"
        for name, thousand in sorted(total.items())
    }
