"""What running an agent takes on its hub: the least rights, in its own namespace and beyond it."""

from __future__ import annotations

from lamina.core.rights import Rights
from lamina.families.manifestwork.names import CLUSTER_GROUP, WORK_GROUP
from lamina.families.manifestwork.placement.clusters import LEASE_NAME

_SEE = ("get", "list", "watch")


def in_its_namespace() -> Rights:
    """Return what an agent may do in the namespace of the hub that carries its cluster's name."""
    needed = Rights()
    # It holds a work until what was applied of it is gone, which is a finalizer.
    needed.add(WORK_GROUP, ("manifestworks",), (*_SEE, "patch"))
    needed.add(WORK_GROUP, ("manifestworks/status",), ("patch",))
    needed.add("coordination.k8s.io", ("leases",), (*_SEE, "patch"), names=(LEASE_NAME,))
    return needed


def beyond_it(cluster: str) -> Rights:
    """Return what an agent may do with what has no namespace: hear of its own cluster, and say how it is."""
    needed = Rights()
    needed.add(CLUSTER_GROUP, ("managedclusters",), _SEE, names=(cluster,))
    needed.add(CLUSTER_GROUP, ("managedclusters/status",), ("patch",), names=(cluster,))
    # Which kinds there are is heard of where definitions may be watched.
    needed.add("apiextensions.k8s.io", ("customresourcedefinitions",), _SEE)
    return needed
