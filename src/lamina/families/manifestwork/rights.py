"""What running a hub takes: the least rights, as rules of a ClusterRole."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.core.rights import Rights
from lamina.families.manifestwork.names import CLUSTER_GROUP, REVISION, WORK_GROUP
from lamina.objects.types import Obj

_SEE = ("get", "list", "watch")


def rights(objects: Iterable[Obj] = (), *, schedules: bool = True) -> Rights:
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
    return needed


def _scheduling() -> Rights:
    """Return what choosing clusters and looking after them takes."""
    needed = Rights()
    seen = ("managedclusters", "managedclustersets", "managedclustersetbindings", "addonplacementscores")
    needed.add(CLUSTER_GROUP, seen, _SEE)
    needed.add(CLUSTER_GROUP, ("placementdecisions",), ("create", "patch", "delete"))
    spoken = ("placements", "placementdecisions", *seen[:3])
    needed.add(CLUSTER_GROUP, tuple(f"{one}/status" for one in spoken), ("patch",))
    # Decisions name their placement as one whose deletion they hold up.
    needed.add(CLUSTER_GROUP, ("placements/finalizers",), ("update",))
    needed.add(CLUSTER_GROUP, ("managedclusters",), ("patch",))
    needed.add("", ("namespaces",), (*_SEE, "create"))
    needed.add("coordination.k8s.io", ("leases",), (*_SEE, "create"))
    return needed
