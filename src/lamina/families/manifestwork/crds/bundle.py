"""The CustomResourceDefinitions of this family: those of a hub, and those of a managed cluster."""

from __future__ import annotations

from lamina.families.manifestwork.crds import clusters, manifestwork, replicaset
from lamina.objects.types import Made


def definitions() -> tuple[Made, ...]:
    """Return the definitions, in the order they are to be created."""
    return (*hub_definitions(), *spoke_definitions())


def hub_definitions() -> tuple[Made, ...]:
    return (
        clusters.managed_cluster(),
        clusters.managed_cluster_set(),
        clusters.managed_cluster_set_binding(),
        clusters.add_on_placement_score(),
        clusters.placement(),
        clusters.placement_decision(),
        manifestwork.manifest_work(),
        replicaset.replica_set(),
    )


def spoke_definitions() -> tuple[Made, ...]:
    return (manifestwork.applied_manifest_work(), clusters.cluster_claim())
