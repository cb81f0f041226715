"""
What the hub does for a cluster that registers with it.

Once it is accepted it has a namespace of its name, where its works go, and a
lease there, which its agent renews. One whose lease is not renewed for five
times as long as it promised is no longer known to be available; one that is not
available is tainted, so that nobody new is sent there.

Whoever is tainted may lose all that was sent to it, and a hub that is shown the past
hears of no renewal either: a lease that seems to have run out is read for real.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.controller import Controller, Watch, itself, only
from lamina.core.events import normal, warning
from lamina.core.plan import Action, Create, Emit, Plan, Stage, change, set_status
from lamina.core.questions import Answers, Found, Read
from lamina.core.world import Change, World
from lamina.families.manifestwork.names import CLUSTER, CLUSTER_GROUP
from lamina.objects import conditions, meta
from lamina.objects.times import micro_stamp, moment, stamp
from lamina.objects.types import Condition, GroupKind, Made, Obj, Ref

LEASE_NAME = "managed-cluster-lease"
UNREACHABLE = f"{CLUSTER_GROUP}/unreachable"
UNAVAILABLE = f"{CLUSTER_GROUP}/unavailable"
AVAILABLE = "ManagedClusterConditionAvailable"
ACCEPTED = "HubAcceptedManagedCluster"
NAMESPACE_LABEL = f"{CLUSTER_GROUP}/managedCluster"

_VERSION = f"{CLUSTER_GROUP}/v1"
_NAMESPACE = GroupKind("", "Namespace")
_LEASE = GroupKind("coordination.k8s.io", "Lease")
_GRACE = 5
_BY = "managedcluster"


class View(Struct, frozen=True, kw_only=True):
    """A cluster, and whether its namespace and its lease are there."""

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


def gather(world: World, ref: Ref) -> View | None:
    cluster = world.get(ref)
    if cluster is None or meta.is_deleting(cluster):
        return None
    return View(
        cluster=cluster,
        namespace=world.get(Ref("v1", "Namespace", "", ref.name)),
        lease=world.get(_lease_ref(ref.name)),
    )


def _lease_ref(cluster: str) -> Ref:
    return Ref("coordination.k8s.io/v1", "Lease", cluster, LEASE_NAME)


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Decide what a cluster needs: a namespace, a lease, what is said of it, and its taints."""
    if not view.is_accepted and conditions.find(view.conditions, ACCEPTED) is None:
        return Plan(because="the hub has not accepted it")
    read = Read(_lease_ref(meta.name(view.cluster)), whole=True)
    if isinstance(answer := answers.get(read), Found):
        view = replace(view, lease=answer.obj)
    ends = _ends(view)
    if ends is not None and ends <= now and answer is None and not _is_unknown(view):
        return Plan(asks=(read,), because="its lease seems to have run out")
    said, told = _conditions(view, ends, now)
    status = set_status(view.cluster, {**(view.cluster.get("status") or {}), "conditions": said})
    # One after the other: a taint that names the version before its status was written is refused.
    taints = _taints(view.cluster, said, now) if status is None else None
    stages = (
        Stage("give it a namespace", tuple(_namespace(view))),
        Stage("give it a lease", tuple(_lease(view, now))),
        Stage("say so", (status,) if status is not None else ()),
        Stage("taint", (change(view.cluster, {"spec": {"taints": taints}}),) if taints is not None else ()),
        Stage("tell", told),
    )
    return Plan(
        stages=tuple(stage for stage in stages if stage.actions),
        look_again=ends - now if ends is not None and ends > now else None,
        because=next((one.get("message", "") for one in said if one["type"] == AVAILABLE), ""),
    )


def _namespace(view: View) -> Iterable[Action]:
    if view.is_accepted and view.namespace is None:
        name = meta.name(view.cluster)
        labels = {NAMESPACE_LABEL: name}
        yield Create(
            obj={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )


def _lease(view: View, now: datetime) -> Iterable[Action]:
    """Yield the lease of a cluster that has none; its agent has from now on as long as from any renewal."""
    if view.is_accepted and view.lease is None:
        name = meta.name(view.cluster)
        yield Create(
            obj={
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": LEASE_NAME,
                    "namespace": name,
                    "labels": {f"{CLUSTER_GROUP}/cluster-name": name},
                },
                "spec": {"holderIdentity": LEASE_NAME, "renewTime": micro_stamp(now)},
            }
        )


def _ends(view: View) -> datetime | None:
    """Return until when a cluster is believed to be there."""
    renewed = moment(((view.lease or {}).get("spec") or {}).get("renewTime"))
    if renewed is None or not view.is_accepted:
        return None
    seconds = (view.cluster.get("spec") or {}).get("leaseDurationSeconds") or 60
    return renewed + timedelta(seconds=_GRACE * seconds)


def _is_unknown(view: View) -> bool:
    """Say whether it is said already that nobody knows of a cluster whether it is available."""
    said = conditions.find(view.conditions, AVAILABLE)
    return said is not None and said["status"] == "Unknown"


def _conditions(view: View, ends: datetime | None, now: datetime) -> tuple[list[Condition], tuple[Emit, ...]]:
    said, told = list(view.conditions), []
    reason, message = ("HubClusterAdminAccepted", "Accepted by hub cluster admin")
    if not view.is_accepted:
        reason, message = ("HubClusterAdminDenied", "Denied by hub cluster admin")
    wanted = "True" if view.is_accepted else "False"
    old = conditions.find(said, ACCEPTED)
    said = conditions.with_condition(said, ACCEPTED, wanted, reason=reason, message=message, now=now)
    if old is None or old["status"] != wanted:
        told.append(Emit(event=normal(view.cluster, reason, message, by=_BY, now=now)))
    if ends is not None and ends <= now:
        reason, message = "ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease."
        if not _is_unknown(view):
            said = conditions.with_condition(
                said, AVAILABLE, "Unknown", reason=reason, message=message, now=now
            )
            told.append(Emit(event=warning(view.cluster, reason, message, by=_BY, now=now)))
    return said, tuple(told)


def _taints(cluster: Obj, said: Sequence[Condition], now: datetime) -> list[Made] | None:
    """Return the taints a cluster should have, or None where it has them."""
    available = conditions.find(said, AVAILABLE)
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
    return (Ref(_VERSION, CLUSTER.kind, "", name),) if name else ()


def _of_a_namespace(world: World, change: Change) -> Iterable[Ref]:
    # Its coming and going matters, and for clusters only.
    both = change.before is not None and change.after is not None
    return () if both else _cluster_named(meta.labels(change.obj).get(NAMESPACE_LABEL, ""))


def _of_a_lease(world: World, change: Change) -> Iterable[Ref]:
    return _cluster_named(meta.namespace(change.obj))


CLUSTERS: Controller[View] = Controller(
    name="managedclusters",
    watches=(
        Watch(selects=only(*CLUSTER), api_version=_VERSION, concerns=itself),
        Watch(selects=only(*_NAMESPACE), concerns=_of_a_namespace, metadata_only=True),
        Watch(selects=only(*_LEASE), concerns=_of_a_lease, named=LEASE_NAME),
    ),
    gather=gather,
    plan=plan,
    manager="registration-controller",
)
