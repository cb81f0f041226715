"""
The hub side of registration: the namespace, the lease, the conditions and the taints of a ManagedCluster.

An accepted cluster gets a namespace of its name, for its works, and a lease there, which
its agent renews. If the lease is not renewed for five times its duration, Available
becomes Unknown; a cluster that is not available is tainted, so that no placement newly
selects it.

A taint may delete all works of a cluster, and a stale cache lacks renewals: a lease that
seems to have expired is read live first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.events import on_change
from lamina.core.model.plan import Action, Create, Emit, Plan, Stage, change, set_status
from lamina.core.model.queries import Answers, Found, Read
from lamina.core.model.world import Change, World
from lamina.families.manifestwork.labels import CLUSTER, CLUSTER_GROUP, SET_LABEL
from lamina.families.manifestwork.placement.clusterset import DEFAULT_SET, EVERY_HUB_HAS
from lamina.objects import conditions, meta
from lamina.objects.times import micro_stamp, moment, stamp
from lamina.objects.types import Condition, GroupKind, Made, Obj, Ref

LEASE_NAME = "managed-cluster-lease"
UNREACHABLE = f"{CLUSTER_GROUP}/unreachable"
UNAVAILABLE = f"{CLUSTER_GROUP}/unavailable"
AVAILABLE = "ManagedClusterConditionAvailable"
ACCEPTED = "HubAcceptedManagedCluster"
NAMESPACE_LABEL = f"{CLUSTER_GROUP}/managedCluster"

LEASE = GroupKind("coordination.k8s.io", "Lease")
VERSION = f"{CLUSTER_GROUP}/v1"
_NAMESPACE = GroupKind("", "Namespace")
_GRACE = 5
_BY = "managedcluster"
_LEASE_STOPPED = "ManagedClusterLeaseUpdateStopped"


class View(Struct, frozen=True, kw_only=True):
    """A cluster, its namespace and its lease."""

    cluster: Obj
    namespace: Obj | None
    lease: Obj | None

    @property
    def is_accepted(self) -> bool:
        return bool((self.cluster.get("spec") or {}).get("hubAcceptsClient"))

    @property
    def conditions(self) -> Sequence[Condition]:
        found: Sequence[Condition] = (self.cluster.get("status") or {}).get("conditions") or ()
        return found


def cluster_ref(name: str, hub: str = "") -> Ref:
    """Return the ManagedCluster of a name, on the hub that a controller calls so."""
    return Ref(VERSION, CLUSTER.kind, "", name, hub)


def lease_ref(cluster: str, hub: str = "") -> Ref:
    """Return the lease of a cluster, in its namespace."""
    return Ref(f"{LEASE.group}/v1", LEASE.kind, cluster, LEASE_NAME, hub)


def registration(name: str, address: str = "") -> tuple[Made, ...]:
    """Return the sets that every hub has, and the accepted cluster, in the default set."""
    spec: Made = {"hubAcceptsClient": True, "leaseDurationSeconds": 60}
    if address:
        spec["managedClusterClientConfigs"] = [{"url": address}]
    metadata = {"name": name, "labels": {SET_LABEL: DEFAULT_SET}}
    cluster = {"apiVersion": VERSION, "kind": CLUSTER.kind, "metadata": metadata, "spec": spec}
    return (*EVERY_HUB_HAS.values(), cluster)


def gather(world: World, ref: Ref) -> View | None:
    cluster = world.get(ref)
    if cluster is None or meta.is_deleting(cluster):
        return None
    return View(
        cluster=cluster,
        namespace=world.get(Ref("v1", "Namespace", "", ref.name)),
        lease=world.get(lease_ref(ref.name)),
    )


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Return the next step of a cluster: its namespace, its lease, its conditions, its taints."""
    if not view.is_accepted and conditions.find(view.conditions, ACCEPTED) is None:
        return Plan(because="the hub has not accepted it")
    read = Read(lease_ref(meta.name(view.cluster)), whole=True)
    if isinstance(answer := answers.get(read), Found):
        view = replace(view, lease=answer.obj)
    expires = _expires(view)
    if expires is not None and expires <= now and answer is None and not _is_unknown(view):
        return Plan(queries=(read,), because="its lease seems to have expired")
    found = _conditions(view, expires, now)
    status = set_status(view.cluster, {**(view.cluster.get("status") or {}), "conditions": found})
    # In separate passes: the patch of the status changes the version that the taint would name.
    taints = _taints(view.cluster, found, now) if status is None else None
    stages = (
        Stage("create the namespace", tuple(_namespace(view))),
        Stage("create the lease", tuple(_lease(view, now))),
        Stage("report", (status,) if status is not None else ()),
        Stage("taint", (change(view.cluster, {"spec": {"taints": taints}}),) if taints is not None else ()),
        Stage("emit events", tuple(_events(view, found, now))),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        requeue_after=expires - now if expires is not None and expires > now else None,
        because=next((one.get("message", "") for one in found if one["type"] == AVAILABLE), ""),
    )


def _namespace(view: View) -> Iterable[Action]:
    if view.is_accepted and view.namespace is None:
        name = meta.name(view.cluster)
        labels = {NAMESPACE_LABEL: name}
        yield Create(
            obj={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )


def _lease(view: View, now: datetime) -> Iterable[Action]:
    """Yield the creation of the lease of a cluster; it counts as renewed now."""
    if view.is_accepted and view.lease is None:
        name = meta.name(view.cluster)
        yield Create(
            obj={
                "apiVersion": f"{LEASE.group}/v1",
                "kind": LEASE.kind,
                "metadata": {
                    "name": LEASE_NAME,
                    "namespace": name,
                    "labels": {f"{CLUSTER_GROUP}/cluster-name": name},
                },
                "spec": {"holderIdentity": LEASE_NAME, "renewTime": micro_stamp(now)},
            }
        )


def _expires(view: View) -> datetime | None:
    """Return when the lease of a cluster expires."""
    renewed = moment(((view.lease or {}).get("spec") or {}).get("renewTime"))
    if renewed is None or not view.is_accepted:
        return None
    seconds = (view.cluster.get("spec") or {}).get("leaseDurationSeconds") or 60
    return renewed + timedelta(seconds=_GRACE * seconds)


def _is_unknown(view: View) -> bool:
    """Say whether the condition Available is Unknown already."""
    found = conditions.find(view.conditions, AVAILABLE)
    return found is not None and found["status"] == "Unknown"


def _conditions(view: View, expires: datetime | None, now: datetime) -> list[Condition]:
    """Return the conditions of a cluster: whether the hub accepts it, and Unknown once its lease has expired."""
    accepted = ("True", "HubClusterAdminAccepted", "Accepted by hub cluster admin")
    denied = ("False", "HubClusterAdminDenied", "Denied by hub cluster admin")
    status, reason, message = accepted if view.is_accepted else denied
    found = conditions.with_condition(
        view.conditions, ACCEPTED, status, reason=reason, message=message, now=now
    )
    if expires is None or expires > now or _is_unknown(view):
        return found
    message = "Registration agent stopped updating its lease."
    return conditions.with_condition(
        found, AVAILABLE, "Unknown", reason=_LEASE_STOPPED, message=message, now=now
    )


def _events(view: View, found: Sequence[Condition], now: datetime) -> Iterator[Emit]:
    """Yield the events of the conditions that change."""
    for after in found:
        if after["type"] in (ACCEPTED, AVAILABLE):
            before = conditions.find(view.conditions, after["type"])
            changed = on_change(view.cluster, before, after, by=_BY, now=now, warns=(_LEASE_STOPPED,))
            yield from (Emit(event=event) for event in changed)


def _taints(cluster: Obj, found: Sequence[Condition], now: datetime) -> list[Made] | None:
    """Return the taints a cluster should have, or None where it has them."""
    available = conditions.find(found, AVAILABLE)
    if available is None:
        return None
    due = {"Unknown": UNREACHABLE, "False": UNAVAILABLE}.get(available["status"])
    there = (cluster.get("spec") or {}).get("taints") or []
    wanted = [
        dict(one) for one in there if one.get("key") not in (UNREACHABLE, UNAVAILABLE) or one["key"] == due
    ]
    if due and not any(one.get("key") == due for one in wanted):
        wanted.append({"key": due, "effect": "NoSelect", "timeAdded": stamp(now)})
    return None if wanted == there else wanted


def _cluster_named(name: str) -> Iterable[Ref]:
    return (cluster_ref(name),) if name else ()


def _of_a_namespace(world: World, change: Change) -> Iterable[Ref]:
    # Only the creation and the deletion of a namespace of a cluster matter.
    both = change.before is not None and change.after is not None
    return () if both else _cluster_named(meta.labels(change.obj).get(NAMESPACE_LABEL, ""))


def _of_a_lease(world: World, change: Change) -> Iterable[Ref]:
    return _cluster_named(meta.namespace(change.obj))


CLUSTERS: Controller[View] = Controller(
    name="managedclusters",
    watches=(
        Watch(selects=only(*CLUSTER), api_version=VERSION, enqueue=itself),
        Watch(selects=only(*_NAMESPACE), enqueue=_of_a_namespace, metadata_only=True),
        Watch(selects=only(*LEASE), enqueue=_of_a_lease, named=LEASE_NAME),
    ),
    gather=gather,
    plan=plan,
    manager="registration-controller",
)
