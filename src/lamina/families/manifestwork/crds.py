"""The definitions of this family's kinds: those of a hub, and those of a spoke."""

from __future__ import annotations

from lamina.families.manifestwork.kinds import clusters, sets, works
from lamina.objects.types import Made


def definitions() -> tuple[Made, ...]:
    """Return the definitions, in the order they are to be made."""
    return (*hub_definitions(), *spoke_definitions())


def hub_definitions() -> tuple[Made, ...]:
    return (
        clusters.managed_cluster(),
        clusters.managed_cluster_set(),
        clusters.managed_cluster_set_binding(),
        clusters.add_on_placement_score(),
        clusters.placement(),
        clusters.placement_decision(),
        works.manifest_work(),
        sets.replica_set(),
    )


def spoke_definitions() -> tuple[Made, ...]:
    return (works.applied_manifest_work(), clusters.cluster_claim())
