"""The kinds, labels, annotations and finalizers of this family; they are those of upstream."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.objects import meta
from lamina.objects.types import GroupKind, Obj

WORK_GROUP = "work.open-cluster-management.io"
CLUSTER_GROUP = "cluster.open-cluster-management.io"

REPLICA_SET = GroupKind(WORK_GROUP, "ManifestWorkReplicaSet")
REPLICA_SET_VERSION = f"{WORK_GROUP}/v1alpha1"
"""The version that is stored, watched and written into owner references; v1 is served too, with the same schema."""
WORK = GroupKind(WORK_GROUP, "ManifestWork")
WORK_VERSION = f"{WORK_GROUP}/v1"
APPLIED_WORK = GroupKind(WORK_GROUP, "AppliedManifestWork")
PLACEMENT = GroupKind(CLUSTER_GROUP, "Placement")
PLACEMENT_VERSION = f"{CLUSTER_GROUP}/v1beta1"
DECISION = GroupKind(CLUSTER_GROUP, "PlacementDecision")
CLUSTER = GroupKind(CLUSTER_GROUP, "ManagedCluster")
CLUSTER_SET = GroupKind(CLUSTER_GROUP, "ManagedClusterSet")
CLUSTER_SET_BINDING = GroupKind(CLUSTER_GROUP, "ManagedClusterSetBinding")
CLUSTER_CLAIM = GroupKind(CLUSTER_GROUP, "ClusterClaim")
SCORE = GroupKind(CLUSTER_GROUP, "AddOnPlacementScore")

CLUSTER_NAME = "open-cluster-management.io/cluster-name"
"""On certificate signing requests: the cluster whose agent has sent it."""

OWNER = f"{WORK_GROUP}/manifestworkreplicaset"
"""On works and revisions: `<namespace>.<name>` of the replica set."""
OWNER_HASH = f"{WORK_GROUP}/ownerkey-hash"
"""On works that upstream created: a hash of their owner, which an annotation names."""
OWNER_NOTE = f"{WORK_GROUP}/manifestworkreplicaset-owner"
"""The annotation with the owner: `<namespace>/<name>`."""
PLACED_BY = f"{WORK_GROUP}/placementname"
"""On works: the placement that selected the cluster."""
HASH = f"{WORK_GROUP}/controller-hash"
"""On works and revisions: the hash of the revision."""
DISPATCHED = f"{WORK_GROUP}/dispatch-time"
"""On works, an annotation: when the hub wrote the current spec."""
GENERATION = f"{WORK_GROUP}/generation"
"""On revisions, an annotation: the generation of the replica set that they are a snapshot of."""
CLEANUP = f"{WORK_GROUP}/manifest-work-cleanup"
"""The finalizer that holds a replica set until its works are deleted."""

SET_LABEL = f"{CLUSTER_GROUP}/clusterset"
PLACEMENT_LABEL = f"{CLUSTER_GROUP}/placement"
GROUP_INDEX = f"{CLUSTER_GROUP}/decision-group-index"
GROUP_NAME = f"{CLUSTER_GROUP}/decision-group-name"

MANAGER = "manifestworkreplicaset"
"""The field manager of the hub, and the source of its events."""
MANIFEST_LIMIT = 512_000
"""The largest number of bytes that the manifests of a work may have, unless another is set."""


def owner_key(namespace: str, name: str) -> str:
    """Return the value of the owner label of works and revisions."""
    return f"{namespace}.{name}"


def owner_of(key: str) -> tuple[str, str]:
    """Return namespace and name of an owner; only names may have dots, so the first dot separates them."""
    namespace, _, name = key.partition(".")
    return namespace, name


def by_placement(obj: Obj) -> Iterable[str]:
    """Return the key of decisions in the index by their placement."""
    placement = meta.labels(obj).get(PLACEMENT_LABEL)
    return (f"{meta.namespace(obj)}/{placement}",) if placement else ()
