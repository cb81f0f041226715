"""What running a hub takes: the least rights, as rules of a ClusterRole."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.core.rights import Rights
from lamina.families.manifestwork.names import CLUSTER_GROUP, REVISION, WORK_GROUP
from lamina.objects.types import Obj

_SEE = ("get", "list", "watch")
_CLUSTERS = ("managedclusters", "managedclustersets", "managedclustersetbindings")


def rights(objects: Iterable[Obj] = (), *, schedules: bool = True, registers: bool = True) -> Rights:
    """
    Return what running a hub takes.

    It follows from no object: what a hub does to one it does to any, and it
    watches its kinds before there is one.
    """
    needed = Rights()
    sets = "manifestworkreplicasets"
    needed.add(WORK_GROUP, (sets,), (*_SEE, "patch"))
    needed.add(WORK_GROUP, (f"{sets}/status",), ("patch",))
    # Revisions name their replica set as one whose deletion they hold up.
    needed.add(WORK_GROUP, (f"{sets}/finalizers",), ("update",))
    # Whoever writes a work that is applied in somebody's name is asked whether it may: a template may have one.
    needed.add(WORK_GROUP, ("manifestworks",), (*_SEE, "create", "update", "patch", "delete", "execute-as"))
    needed.add(CLUSTER_GROUP, ("placements", "placementdecisions"), _SEE)
    needed.add(REVISION.group, ("controllerrevisions",), (*_SEE, "create", "patch", "delete"))
    needed.add("", ("events",), ("create", "get", "patch"))
    if schedules:
        needed.join(_scheduling())
    if registers:
        needed.join(_registering())
    return needed


def _scheduling() -> Rights:
    """Return what choosing clusters takes."""
    needed = Rights()
    needed.add(CLUSTER_GROUP, (*_CLUSTERS, "addonplacementscores"), _SEE)
    needed.add(CLUSTER_GROUP, ("placementdecisions",), ("create", "patch", "delete"))
    needed.add(CLUSTER_GROUP, ("placements/status", "placementdecisions/status"), ("patch",))
    # Decisions name their placement as one whose deletion they hold up.
    needed.add(CLUSTER_GROUP, ("placements/finalizers",), ("update",))
    return needed


def _registering() -> Rights:
    """Return what looking after clusters and their sets takes."""
    needed = Rights()
    needed.add(CLUSTER_GROUP, _CLUSTERS, _SEE)
    needed.add(CLUSTER_GROUP, tuple(f"{one}/status" for one in _CLUSTERS), ("patch",))
    needed.add(CLUSTER_GROUP, ("managedclusters",), ("patch",))
    needed.add("", ("namespaces",), (*_SEE, "create"))
    needed.add("coordination.k8s.io", ("leases",), (*_SEE, "create"))
    return needed
