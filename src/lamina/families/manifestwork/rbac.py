"""The least rights of a hub and of an agent on its hub, as rules of roles."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.core import csr
from lamina.core.rbac import Rights
from lamina.core.rollout.revision_object import CONTROLLER_REVISION
from lamina.families.manifestwork.agent.labels import APPLIED_CLEANUP, WORK_CLEANUP
from lamina.families.manifestwork.labels import CLEANUP, CLUSTER_GROUP, WORK_GROUP
from lamina.families.manifestwork.placement.managedcluster import LEASE, LEASE_NAME
from lamina.objects.types import Obj

_READ = ("get", "list", "watch")
_CLUSTERS = ("managedclusters", "managedclustersets", "managedclustersetbindings")


def rights(objects: Iterable[Obj] = (), *, schedules: bool = True, registers: bool = True) -> Rights:
    """
    Return the permissions of a hub.

    They do not depend on the objects: a hub treats all of a kind alike, and
    watches its kinds before there are objects.
    """
    needed = Rights()
    sets = "manifestworkreplicasets"
    needed.add(WORK_GROUP, (sets,), (*_READ, "patch"))
    needed.add(WORK_GROUP, (f"{sets}/status",), ("patch",))
    # Revisions block the deletion of their replica set.
    needed.add(WORK_GROUP, (f"{sets}/finalizers",), ("update",))
    # A template may have an executor, and writing such a work needs the right to use it.
    needed.add(WORK_GROUP, ("manifestworks",), (*_READ, "create", "update", "patch", "delete", "execute-as"))
    needed.add(CLUSTER_GROUP, ("placements", "placementdecisions"), _READ)
    needed.add(CONTROLLER_REVISION.group, ("controllerrevisions",), (*_READ, "create", "patch", "delete"))
    needed.add("", ("events",), ("create", "get", "patch"))
    if schedules:
        needed.join(_scheduling())
    if registers:
        needed.join(_registering())
    return needed


def edits(objects: Iterable[Obj] = ()) -> Rights:
    """Return the rights to edit replica sets."""
    needed = Rights()
    needed.add(WORK_GROUP, ("manifestworkreplicasets",), ("update", "patch"))
    return needed


def _scheduling() -> Rights:
    """Return the rights of the placement controller."""
    needed = Rights()
    needed.add(CLUSTER_GROUP, (*_CLUSTERS, "addonplacementscores"), _READ)
    needed.add(CLUSTER_GROUP, ("placementdecisions",), ("create", "patch", "delete"))
    needed.add(CLUSTER_GROUP, ("placements/status", "placementdecisions/status"), ("patch",))
    # Decisions block the deletion of their placement.
    needed.add(CLUSTER_GROUP, ("placements/finalizers",), ("update",))
    return needed


def _registering() -> Rights:
    """Return the rights of the registration controllers."""
    needed = Rights()
    needed.add(CLUSTER_GROUP, _CLUSTERS, _READ)
    needed.add(CLUSTER_GROUP, tuple(f"{one}/status" for one in _CLUSTERS), ("patch",))
    needed.add(CLUSTER_GROUP, ("managedclusters",), ("patch",))
    needed.add(CLUSTER_GROUP, ("managedclustersets",), ("create",))
    needed.add("", ("namespaces",), (*_READ, "create"))
    needed.add(LEASE.group, ("leases",), (*_READ, "create"))
    # Renewals of the certificates of agents are approved.
    needed.add(csr.REQUEST.group, ("certificatesigningrequests",), _READ)
    needed.add(csr.REQUEST.group, ("certificatesigningrequests/approval",), ("update",))
    needed.add(csr.REQUEST.group, ("signers",), ("approve",), names=(csr.CLIENT_SIGNER,))
    return needed


def is_finalizer(text: str) -> bool:
    """Say whether a finalizer is one that the hub or an agent sets."""
    return text in (CLEANUP, WORK_CLEANUP, APPLIED_CLEANUP)


def agent_rights(cluster: str) -> tuple[Rights, Rights]:
    """Return the rights of an agent on its hub: cluster-wide, and in the namespace of its cluster."""
    wide, inside = Rights(), Rights()
    wide.add(CLUSTER_GROUP, ("managedclusters",), _READ, names=(cluster,))
    wide.add(CLUSTER_GROUP, ("managedclusters/status",), ("patch",), names=(cluster,))
    # New kinds are discovered by a watch on definitions.
    wide.add("apiextensions.k8s.io", ("customresourcedefinitions",), _READ)
    # It patches works to set and remove its finalizer.
    inside.add(WORK_GROUP, ("manifestworks",), (*_READ, "patch"))
    inside.add(WORK_GROUP, ("manifestworks/status",), ("patch",))
    inside.add(LEASE.group, ("leases",), (*_READ, "patch"), names=(LEASE_NAME,))
    return wide, inside
