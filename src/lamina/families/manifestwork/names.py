"""The names this family is known by on a cluster: whoever ran the original finds each of them again."""

from __future__ import annotations

from lamina.objects.types import GroupKind

WORK_GROUP = "work.open-cluster-management.io"
CLUSTER_GROUP = "cluster.open-cluster-management.io"

REPLICA_SET = GroupKind(WORK_GROUP, "ManifestWorkReplicaSet")
REPLICA_SET_VERSION = f"{WORK_GROUP}/v1alpha1"
"""The version that is stored, watched and written into owner references; v1 is served too, and is the same."""
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
REVISION = GroupKind("apps", "ControllerRevision")
REVISION_VERSION = "apps/v1"

OWNER = f"{WORK_GROUP}/manifestworkreplicaset"
"""On works and revisions: `<namespace>.<name>` of the replica set."""
OWNER_HASH = f"{WORK_GROUP}/ownerkey-hash"
"""On works that the original made: a digest of whose they are. Whose, an annotation says."""
OWNER_NOTE = f"{WORK_GROUP}/manifestworkreplicaset-owner"
"""That annotation: `<namespace>/<name>`."""
PLACED_BY = f"{WORK_GROUP}/placementname"
"""On works: the placement that selected the cluster."""
HASH = f"{WORK_GROUP}/controller-hash"
"""On works and revisions: the mark of the revision."""
DISPATCHED = f"{WORK_GROUP}/dispatch-time"
"""On works, an annotation: when the hub wrote the present spec."""
GENERATION = f"{WORK_GROUP}/generation"
"""On revisions, an annotation: the generation of the replica set they were taken of."""
CLEANUP = f"{WORK_GROUP}/manifest-work-cleanup"
"""The finalizer that holds a replica set until its works are dealt with."""

PLACEMENT_LABEL = f"{CLUSTER_GROUP}/placement"
GROUP_INDEX = f"{CLUSTER_GROUP}/decision-group-index"
GROUP_NAME = f"{CLUSTER_GROUP}/decision-group-name"

MANAGER = "manifestworkreplicaset"
"""What the hub calls itself: in events, and to the server."""


def owner_key(namespace: str, name: str) -> str:
    """Return what works and revisions carry as the label of their owner."""
    return f"{namespace}.{name}"


def owner_of(key: str) -> tuple[str, str]:
    """Return namespace and name of an owner. Namespaces have no dot, names may: the first one divides."""
    namespace, _, name = key.partition(".")
    return namespace, name
