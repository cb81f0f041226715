"""The kinds, labels, annotations, finalizers and field managers of this family; they are those of upstream."""

from __future__ import annotations

from lamina.core.phases.conventions import Conventions
from lamina.objects.types import GroupKind

GROUP = "package-operator.run"
API_VERSION = f"{GROUP}/v1alpha1"

SET, CLUSTER_SET = GroupKind(GROUP, "ObjectSet"), GroupKind(GROUP, "ClusterObjectSet")
DEPLOYMENT = GroupKind(GROUP, "ObjectDeployment")
CLUSTER_DEPLOYMENT = GroupKind(GROUP, "ClusterObjectDeployment")
PHASE, CLUSTER_PHASE = GroupKind(GROUP, "ObjectSetPhase"), GroupKind(GROUP, "ClusterObjectSetPhase")
SLICE, CLUSTER_SLICE = GroupKind(GROUP, "ObjectSlice"), GroupKind(GROUP, "ClusterObjectSlice")

SETS, DEPLOYMENTS = (SET, CLUSTER_SET), (DEPLOYMENT, CLUSTER_DEPLOYMENT)
PHASES, SLICES = (PHASE, CLUSTER_PHASE), (SLICE, CLUSTER_SLICE)

REVISION = f"{GROUP}/revision"
"""On managed objects, an annotation: the number of the revision that wrote the object last."""
CACHED = f"{GROUP}/cache"
"""On managed objects, a label with the value `True`."""
PACKAGE, INSTANCE = f"{GROUP}/package", f"{GROUP}/instance"
"""Labels of a set that are copied to its objects."""
HASH = f"{GROUP}/hash"
"""On sets, an annotation: the hash of the template they were made from."""
OWNING_DEPLOYMENT = f"{GROUP}/object-deployment"
"""On sets, a label: the name of their deployment."""
PAUSED_BY_PARENT = f"{GROUP}/paused-by-parent"
"""On sets, an annotation: the deployment paused them, so it may resume them."""
PHASE_CLASS = f"{GROUP}/phase-class"
"""On ObjectSetPhases, a label: which controller serves them."""
DEFAULT_CLASS = "default"
"""The class of ObjectSetPhases that are served on the cluster that has them."""
OWNERS = f"{GROUP}/owners"
"""On objects of another cluster, an annotation: their owners, as JSON."""
DELETION_POLICY = f"{GROUP}/deletion-policy"
"""In a manifest, an annotation: with `Orphan` the object stays when its set is archived or deleted."""
MANAGED_BY, BOXCUTTER = "app.kubernetes.io/managed-by", "boxcutter"
"""On objects of ObjectSetPhases, a label of upstream and its value, which is not set any more."""

TEARDOWN = f"{GROUP}/cached"
"""The finalizer that holds a set or a phase until its objects are deleted."""
METRICS = f"{GROUP}/metrics"
"""A finalizer that upstream sets, which is removed from sets that are archived or deleted."""

MANAGER = "package-operator"
"""The field manager of all revisions: only one shared manager removes fields that a revision no longer has."""
LEGACY_MANAGERS = ("package-operator-manager", "remote-phase-manger")
"""Field managers of earlier releases of upstream, the second spelled as it is there."""

CONVENTIONS = Conventions(
    manager=MANAGER,
    former_managers=LEGACY_MANAGERS,
    revision=REVISION,
    mark=CACHED,
    owners=OWNERS,
    inherited_labels=(PACKAGE, INSTANCE),
    tolerated_labels={MANAGED_BY: BOXCUTTER},
    owner="set",
    cluster_owner=CLUSTER_SET.kind,
)
