"""What running a hub takes: the least rights, as rules of a ClusterRole."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.core.rights import Rights
from lamina.families.manifestwork.names import CLUSTER_GROUP, REVISION, WORK_GROUP
from lamina.objects.types import Obj

_SEE = ("get", "list", "watch")
_OURS = (f"{WORK_GROUP}/", f"{CLUSTER_GROUP}/")


def rights(objects: Iterable[Obj]) -> Rights:
    """Return what running a hub takes that has these objects; where there is nothing of a hub, nothing is needed."""
    needed = Rights()
    if not any(str(one.get("apiVersion") or "").startswith(_OURS) for one in objects):
        return needed
    sets = "manifestworkreplicasets"
    needed.add(WORK_GROUP, (sets,), (*_SEE, "patch"))
    needed.add(WORK_GROUP, (f"{sets}/status",), ("patch",))
    # Revisions name their replica set as one whose deletion they hold up.
    needed.add(WORK_GROUP, (f"{sets}/finalizers",), ("update",))
    needed.add(WORK_GROUP, ("manifestworks",), (*_SEE, "create", "update", "patch", "delete"))
    seen = ("managedclusters", "managedclustersets", "managedclustersetbindings", "addonplacementscores")
    needed.add(CLUSTER_GROUP, ("placements", *seen), _SEE)
    needed.add(CLUSTER_GROUP, ("placementdecisions",), (*_SEE, "create", "patch", "delete"))
    spoken = ("placements", "placementdecisions", *seen[:3])
    needed.add(CLUSTER_GROUP, tuple(f"{one}/status" for one in spoken), ("patch",))
    # Decisions name their placement as one whose deletion they hold up.
    needed.add(CLUSTER_GROUP, ("placements/finalizers",), ("update",))
    needed.add(CLUSTER_GROUP, ("managedclusters",), ("patch",))
    needed.add("", ("namespaces",), (*_SEE, "create"))
    needed.add("coordination.k8s.io", ("leases",), (*_SEE, "create"))
    needed.add(REVISION.group, ("controllerrevisions",), (*_SEE, "create", "patch", "delete"))
    needed.add("", ("events",), ("create", "get", "patch"))
    return needed
