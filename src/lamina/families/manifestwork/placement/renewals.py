"""
Approves the renewal of an agent's client certificate.

The first certificate of a cluster is approved by an administrator. A renewal is
requested with the certificate that is in use, so the server has recorded its user as
the requester: it is approved if it asks for that same user and for the groups of the
cluster, and if the hub still accepts the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from lamina.core import csr
from lamina.core.model.controller import Controller, Watch, itself, only
from lamina.core.model.plan import Plan, Replace, one_stage
from lamina.core.model.queries import Answers
from lamina.core.model.world import Change, World
from lamina.families.manifestwork.labels import CLUSTER, CLUSTER_NAME
from lamina.families.manifestwork.placement.managedcluster import VERSION, cluster_ref
from lamina.objects import meta
from lamina.objects.types import Obj, Ref

_USERS = "system:open-cluster-management:"
_ALL_CLUSTERS = f"{_USERS}managed-clusters"


class View(Struct, frozen=True, kw_only=True):
    """A request that is not approved yet, and the cluster it is labelled with."""

    request: Obj
    cluster: Obj | None


def group_of(cluster: str) -> str:
    """Return the group of the agents of a cluster on its hub."""
    return f"{_USERS}{cluster}"


def name_problem(cluster: str) -> str:
    """Return why no cluster may have a name; empty if one may."""
    if group_of(cluster) == _ALL_CLUSTERS:
        return f"its group on the hub would be {_ALL_CLUSTERS}, which is that of all clusters"
    return ""


def is_renewal(cluster: str, request: Obj) -> bool:
    """Say whether a request was sent with a certificate of the cluster that it is for."""
    return csr.requested_by(request).startswith(f"{group_of(cluster)}:")


def mismatch(cluster: str, request: Obj) -> str:
    """Return why a request is not one for the agent of a cluster; empty if it is one."""
    if not csr.is_for_a_client(request):
        return f"it is not for the signer {csr.CLIENT_SIGNER} and the usage {csr.CLIENT_AUTH}"
    subject = csr.subject(request)
    if subject is None:
        return "its subject cannot be read"
    prefix = f"{group_of(cluster)}:"
    if not subject.user.startswith(prefix) or subject.user == prefix:
        return f"it is for the user {subject.user}, and not for one of {prefix}*"
    if not subject.groups <= {group_of(cluster), _ALL_CLUSTERS}:
        more = sorted(subject.groups - {group_of(cluster), _ALL_CLUSTERS})
        return f"it is for the groups {', '.join(more)}, too"
    sender = csr.requested_by(request)
    if sender.startswith(_USERS) and not is_renewal(cluster, request):
        return f"it was sent by {sender}, which is the agent of another cluster"
    return ""


def gather(world: World, ref: Ref) -> View | None:
    request = world.get(ref)
    if request is None or not csr.is_pending(request) or CLUSTER_NAME not in meta.labels(request):
        return None
    return View(request=request, cluster=world.get(cluster_ref(meta.labels(request)[CLUSTER_NAME])))


def plan(view: View, answers: Answers, now: datetime) -> Plan:
    """Approve a request of an accepted cluster for the certificate it was sent with."""
    request, cluster = view.request, view.cluster
    if (
        cluster is None
        or meta.is_deleting(cluster)
        or not (cluster.get("spec") or {}).get("hubAcceptsClient")
    ):
        return Plan(because="the hub has not accepted its cluster")
    if wrong := mismatch(meta.name(cluster), request):
        return Plan(because=f"it is no request of an agent: {wrong}")
    subject = csr.subject(request)
    if subject is None or subject.user != csr.requested_by(request):
        return Plan(because="it is not requested with the certificate that it renews")
    message = f"renewal by {subject.user}"
    approval = Replace(
        obj=csr.approved(request, reason="AutoApproved", message=message), subresource="approval"
    )
    return one_stage("approve", [approval], because=message)


def _of_a_cluster(world: World, change: Change) -> Iterable[Ref]:
    name = meta.name(change.obj)
    return [meta.ref(one) for one in world.every(csr.REQUEST) if meta.labels(one).get(CLUSTER_NAME) == name]


def _acceptance(cluster: Obj) -> object:
    return (cluster.get("spec") or {}).get("hubAcceptsClient")


def _by_acceptance(world: World, change: Change) -> Iterable[Ref]:
    return () if change.preserves(_acceptance) else _of_a_cluster(world, change)


RENEWALS: Controller[View] = Controller(
    name="certificate-renewals",
    watches=(
        Watch(selects=only(*csr.REQUEST), api_version=csr.REQUEST_VERSION, enqueue=itself),
        Watch(selects=only(*CLUSTER), api_version=VERSION, enqueue=_by_acceptance),
    ),
    gather=gather,
    plan=plan,
    manager="registration-controller",
)
